import FullText
import FullTextReference
import TestTools

/// Documents that are counted from 1, one text a column.
func reference(
  _ documents: [[String]], columns: [String], _ options: TextAnalysisOptions = .init(), weights: [Double] = []
) throws -> ReferenceIndex {
  var index = try ReferenceIndex(columns: columns, options: options, weights: weights)
  for (number, texts) in documents.enumerated() { index.set("\(number + 1)", texts) }
  return index
}

@Suite struct MatchExampleTests {
  private static let documents = [
    ["linux kernel", "the quick database engine"],
    ["databases", "linux applications and replication of a database"],
    ["couchbase", "couchbase database sqlite library"],
  ]

  private func rows(_ query: String, _ options: TextAnalysisOptions = .init()) throws -> [String] {
    try reference(Self.documents, columns: ["title", "body"], options).search(query).map(\.id).sorted()
  }

  @Test(arguments: [
    ("lin*", "1 2"), ("'lin*'", "1 2"), ("title:linux database", "1"), ("title: linux", "1"),
    ("\"linux applications\"", "2"), ("linux OR couchbase library", "1 2 3"), ("database NOT linux", "3"),
    ("(couchbase OR quick) AND database", "1 3"), ("couchbase and database", ""),
    ("database NEAR/2 replication", "2"), ("database NEAR/1 replication", ""),
    ("replication NEAR database", "2"), ("^linux", "1 2"), ("foo:linux", ""), ("TITLE:linux", "1"),
    ("\"lin* app*\"", "2"), ("-linux", "1 2"), ("linux - kernel", "1"), ("full-text", ""), ("", ""),
    ("  ", ""), ("-", ""), ("\"\"", ""), ("title:\"linux kernel\"", "1"), ("body:\"linux kernel\"", ""),
    ("\"^linux applications\"", "2"), ("^applications", ""), ("linux kernel OR sqlite", "1 3"),
    ("database NOT linux NOT sqlite", ""), ("(database NOT linux) OR kernel", "1 3"),
    ("and", "2"), ("linux  \n AND\tdatabase", "1 2"), ("LINUX", "1 2"), ("near", ""), ("OR*", ""),
    ("NEAR/x OR linux", "1 2"),
  ])
  func theExamplesOfTheSpecHold(_ query: String, _ expected: String) throws {
    try expect(rows(query).joined(separator: " "), equals: expected)
  }

  @Test func stopWordsAreAsIfTheyWerentThere() throws {
    let english = TextAnalysisOptions(language: .english)
    try expect(rows("couchbase and database", english), equals: ["3"])
    for query in [
      "the OR linux", "the linux", "linux NOT the", "linux NEAR the", "\"the linux\"", "(the) linux",
    ] {
      try expect(rows(query, english), equals: ["1", "2"], "\(query)")
    }
    for query in ["the", "the OR and", "the NOT linux", "\"of a\"", "(the) AND (of)", "the NEAR of"] {
      try expect(rows(query, english), equals: [], "\(query)")
    }
    // A stop word with a star is a word, and takes no part in "the".
    try expect(rows("th*", english), equals: [])
    try expect(rows("a*", english), equals: ["2"])
    // Phrases match across them.
    try expect(rows("\"replication database\"", english), equals: ["2"])
    try expect(rows("\"replication of the database\"", english), equals: ["2"])
  }

  @Test func prefixesAreStemmed() throws {
    let english = TextAnalysisOptions(language: .english)
    for query in ["database", "databases", "datab*", "database*"] {
      try expect(rows(query, english), equals: ["1", "2", "3"], "\(query)")
    }
    let index = try reference([["generalization of news"]], columns: ["text"], english)
    try expect(index.search("generaliz*").isEmpty)
    try expect(index.search("general*").count, equals: 1)
    try expect(index.search("generalize").count, equals: 1)
    try expect(index.search("new").isEmpty)
  }

  @Test func nearCountsTheTermsBetween() throws {
    let words = "one two three four five six seven eight nine ten eleven twelve"
    let index = try reference([[words], ["two one"]], columns: ["text"])
    func rows(_ query: String) throws -> [String] { try index.search(query).map(\.id).sorted() }
    try expect(rows("one NEAR twelve"), equals: ["1"])
    try expect(rows("one NEAR/9 twelve"), equals: [])
    try expect(rows("two NEAR/1 one"), equals: ["1", "2"])
    try expect(rows("two NEAR/0 one"), equals: ["1", "2"])
    try expect(rows("\"one tw*\""), equals: ["1"])
    try expect(rows("zzz OR one AND two"), equals: ["1", "2"])
    try expect(rows("\"one two\" NEAR/2 \"four five\""), equals: ["1"])
    try expect(rows("\"one two\" NEAR/0 \"four five\""), equals: [])
    try expect(rows("one NEAR/3 five NEAR/3 nine"), equals: ["1"])
    try expect(rows("one NEAR/3 five NEAR/2 nine"), equals: [])
    // Nothing is near itself.
    try expect(rows("one NEAR one"), equals: [])
    try expect(rows("\"two three\" NEAR \"three four\""), equals: [])
    try expect(rows("one NEAR/99999999999999999999999 twelve"), equals: ["1"])
  }

  @Test func wordsWithNothingBetweenArePhrases() throws {
    let index = try reference([["我在北京大学学习"], ["大学在北京"]], columns: ["text"])
    try expect(index.search("北京大学").map(\.id), equals: ["1"])
    try expect(index.search("北京 大学").map(\.id).sorted(), equals: ["1", "2"])
    try expect(index.search("text:北京大*").map(\.id), equals: ["1"])
    try expect(reference([["ภาษาไทยง่าย"]], columns: ["text"]).search("ไทย").count, equals: 1)
  }

  @Test func emojiAndAccentsAreFound() throws {
    let index = try reference([["café 👩‍👩‍👧 noir"], ["cafe\u{301}"], ["cafe"]], columns: ["text"])
    try expect(index.search("CAFÉ").map(\.id).sorted(), equals: ["1", "2"])
    try expect(index.search("\"café noir\"").map(\.id), equals: ["1"])
    let ignoring = try reference([["café"], ["cafe"]], columns: ["text"], .init(ignoresAccents: true))
    try expect(ignoring.search("cafe").count, equals: 2)
  }

  @Test func theRowsOfTheOriginalsTestMatch() throws {
    let index = try reference(
      [["it was a dark"], ["and STöRMy night."], ["a dog whøse ñame was “Dog”"], ["was barking."]],
      columns: ["text"], TextAnalysisOptions(language: .english, ignoresAccents: true, stopWords: .none))
    try expect(index.search("stormy OR dog").map(\.id).sorted(), equals: ["2", "3"])
    try expect(index.search("(was NOT barking) OR dog").map(\.id).sorted(), equals: ["1", "3"])
    try expect(index.search("dog name").map(\.id), equals: ["3"])
    try expect(index.search("whose").isEmpty)
  }

  @Test func ranksAreThoseOfTheFormula() throws {
    let index = try reference(
      [["cat", "cat dog"], ["", "dog dog dog bird"], ["", ""]], columns: ["title", "body"], weights: [3, 1])
    let ranks = try index.search("cat OR dog")
    // N 2, lengths 3 and 4; cat: n 1, weighted 3 + 1; dog: n 2, 1 and 3.
    expect(ranks.map(\.id), equals: ["1", "2"])
    let catIDF = 0.693147180559945
    let dogIDF = 0.182321556793955
    func term(_ idf: Double, _ f: Double, _ length: Double) -> Double {
      idf * f * 2.2 / (f + 1.2 * (0.25 + 0.75 * length / 3.5))
    }
    expect(abs(ranks[0].rank - term(catIDF, 4, 3) - term(dogIDF, 1, 3)) < 1e-12)
    expect(abs(ranks[1].rank - term(dogIDF, 3, 4)) < 1e-12)
  }
}
