import FullText
import TestTools

@Suite struct MatchQueryTests {
  private func parsed(_ text: String, _ columns: [String] = ["title", "body"]) throws -> MatchQuery {
    try MatchQuery(parsing: text, columns: columns, analyzer: analyzer())
  }

  @Test(arguments: [
    ("a b", "a AND b"),
    ("a OR b c", "a OR b AND c"),
    ("a NOT b c", "a NOT b AND c"),
    ("a NOT b NOT c", "a NOT (b OR c)"),
    ("a NOT b NEAR c", "a NOT b NEAR/10 c"),
    ("a NEAR/3 b NEAR c OR d", "a NEAR/3 b NEAR/10 c OR d"),
    ("(a OR b) c", "(a OR b) AND c"),
    ("((a AND (b AND c)))", "a AND b AND c"),
    ("a NOT (b NOT c)", "a NOT (b NOT c)"),
    ("(a NOT b) NOT c", "(a NOT b) NOT c"),
    ("title:A-b \"C d*\"", "title:a AND b AND \"c d*\""),
    ("^a* Body: \"^x y\"", "^a* AND body:\"^x y\""),
    ("\"a ^b\" \"one\"", "\"a b\" AND one"),
    ("title:OR", "title:or"),
    ("title: OR x", "title:or AND x"),
    ("nothing:a", "nothing AND a"),
    ("a\"b\"c", "a AND b AND c"),
    ("x²", "\"x ²\""),
    ("''", ""),
  ])
  func whatIsPrintedIsInFullAndParsedTheSame(_ text: String, _ printed: String) throws {
    try expect(parsed(text).description, equals: printed)
    try expect(parsed(printed).description, equals: printed)
  }

  @Test func termsAreCountedInTheOrderOfTheText() throws {
    let query = try MatchQuery(
      parsing: "title:linux the \"big kernel\" NOT old NEAR/4 engine*", columns: ["title"],
      analyzer: analyzer(.english))
    let linux = MatchPhrase([MatchTerm(Array("linux".utf8))], column: 0, firstTerm: 0)
    let kernel = MatchPhrase([MatchTerm(Array("big".utf8)), MatchTerm(Array("kernel".utf8))], firstTerm: 1)
    let old = MatchPhrase([MatchTerm(Array("old".utf8))], firstTerm: 3)
    let engine = MatchPhrase([MatchTerm(Array("engin".utf8), isPrefix: true)], firstTerm: 4)
    expect(
      query.expression,
      equals: .and([.phrase(linux), .not(.phrase(kernel), .near([old, engine], distances: [4]))]))
    expect(query.rankedPhrases, equals: [linux, kernel])
  }

  @Test func theLongestNameOfAColumnIsMeant() throws {
    let columns = ["a", "a.b", "name with blanks"]
    try expect(parsed("a.b:x", columns).description, equals: "a.b:x")
    try expect(parsed("a:x", columns).description, equals: "a:x")
    try expect(parsed("name with blanks: x y", columns).description, equals: "name with blanks:x AND y")
    try expect(parsed("name with x", columns).description, equals: "name AND with AND x")
  }

  @Test func randomQueriesSurvivePrinting() throws {
    var random = SeededGenerator(seed: testSeed)
    for round in 0..<3_000 {
      let text = randomQuery(&random)
      let query = try parsed(text)
      let again = try parsed(query.description)
      if again != query {
        Issue.record("seed \(testSeed), round \(round): \(text): \(query), then \(again)")
        return
      }
    }
  }
}

/// A query over the words `a` … `f`, `ab` … and the columns `title` and `body`.
func randomQuery(_ random: inout SeededGenerator, depth: Int = 0, forOriginal: Bool = false) -> String {
  func pick<Element>(_ options: [Element]) -> Element {
    options[Int.random(in: 0..<options.count, using: &random)]
  }
  func word() -> String {
    let word = pick(["a", "b", "c", "d", "e", "f", "ab", "ac", "abc", "be", "bed"])
    return Int.random(in: 0..<6, using: &random) == 0 ? word + "*" : word
  }
  func item() -> String {
    switch Int.random(in: 0..<10, using: &random) {
    case 0..<5: word()
    case 5: pick(["title:", "body:"]) + word()
    case 6: "^" + word()
    case 7 where !forOriginal: pick(["title: ", "body:"]) + "\"\(word()) \(word())\""
    default:
      "\"" + (0..<Int.random(in: 1...3, using: &random)).map { _ in word() }.joined(separator: " ") + "\""
    }
  }
  func near() -> String {
    if depth < 3, Int.random(in: 0..<5, using: &random) == 0 {
      return "(" + randomQuery(&random, depth: depth + 1, forOriginal: forOriginal) + ")"
    }
    var text = item()
    if forOriginal, Int.random(in: 0..<6, using: &random) == 0 {
      // To the original what overlaps is near, but for what ends at the same word.
      return word() + pick([" NEAR ", " NEAR/0 ", " NEAR/1 ", " NEAR/3 "]) + word()
    }
    while !forOriginal, Int.random(in: 0..<6, using: &random) == 0 {
      text += pick([" NEAR ", " NEAR/0 ", " NEAR/1 ", " NEAR/3 "]) + item()
    }
    return text
  }
  var text = near()
  for _ in 0..<Int.random(in: 0...2, using: &random) {
    text += pick([" AND ", " ", " OR ", " NOT "]) + near()
  }
  return text
}
