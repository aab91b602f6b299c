import FullText
import TestTools

@Suite struct MatchErrorTests {
  private func error(_ text: String) throws -> MatchError? {
    let analyzer = try analyzer(.english)
    do {
      _ = try MatchQuery(parsing: text, columns: ["title"], analyzer: analyzer)
      return nil
    } catch { return error }
  }

  @Test(arguments: [
    ("a1 OR ", 7, "expected a word, a phrase or \"(\", found the end"),
    ("OR dog", 1, "expected a word, a phrase or \"(\", found OR"),
    ("dog OR OR cat", 8, "found OR"),
    ("dog AND", 8, "found the end"),
    ("NOT dog", 1, "expected a word before NOT"),
    ("dog AND NOT cat", 9, "expected a word before NOT"),
    ("dog NOT", 8, "found the end"),
    ("dog NEAR", 9, "found the end"),
    ("NEAR dog", 1, "found NEAR"),
    ("dog NEAR (cat)", 10, "not a group"),
    ("(dog) NEAR cat", 7, "not groups"),
    ("dog \"cat", 5, "the quotation mark isn't closed"),
    ("“dog” (cat", 7, "the parenthesis isn't closed"),
    ("dog) cat", 4, "expected a word or the end, found \")\""),
    ("()", 2, "found \")\""),
    ("(dog OR )", 9, "found \")\""),
    ("title:", 7, "expected a word or a phrase after \"title:\""),
    ("title:(dog)", 7, "expected a word or a phrase after \"title:\""),
    ("dog OR -", 9, "found the end"),
    ("é OR", 5, "found the end"),
  ])
  func mistakesHaveAPlaceAndWhatWasExpected(_ text: String, _ column: Int, _ message: String) throws {
    let error = try #require(try error(text), "\(text) is accepted")
    expect(error.code, equals: .syntax)
    expect(error.column, equals: column, "\(text): \(error)")
    expect(error.message.contains(message), "\(text): \(error)")
    expect(error.description.hasPrefix("column \(column) "))
  }

  @Test func depthAndTermsAreBounded() throws {
    func nested(_ depth: Int) -> String {
      String(repeating: "(", count: depth) + "dog" + String(repeating: ")", count: depth)
    }
    try expect(error(nested(MatchQuery.depthLimit)) == nil)
    try expect(error(nested(MatchQuery.depthLimit + 1))?.code, equals: .tooDeep)
    try expect(error(nested(100_000))?.column, equals: MatchQuery.depthLimit + 1)
    try expect(error(String(repeating: "dog ", count: MatchQuery.termLimit)) == nil)
    let many = try error(String(repeating: "dog ", count: MatchQuery.termLimit + 1))
    expect(many?.code, equals: .tooManyTerms)
    expect(many?.column, equals: MatchQuery.termLimit * 4 + 1)
    try expect(error("\"" + String(repeating: "dog ", count: 2_000) + "\"")?.code, equals: .tooManyTerms)
    try expect(error(String(repeating: "dog NOT ", count: 900) + "cat") == nil)
  }
}
