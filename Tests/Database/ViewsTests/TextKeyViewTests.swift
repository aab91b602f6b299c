import Bytes
import Fleece
import FullText
import FullTextReference
import StorageConformance
import TestSupport
import Testing
import Touchstone

@testable import Views

/// Texts as keys of views, and full-text queries.
@Suite("Views of texts") struct TextKeyViewTests {
  private let databases = TestDatabases()

  private func rows(
    _ view: View, _ text: String, _ change: (inout ViewQuery) -> Void = { _ in }
  ) throws -> ViewResults {
    var query = view.query()
    query.fullTextQuery = text
    change(&query)
    return try query.run()
  }

  private func ids(
    _ view: View, _ text: String, _ change: (inout ViewQuery) -> Void = { _ in }
  ) throws -> [String] { try rows(view, text, change).map { $0.documentID ?? "-" } }

  @Test("the worked texts of Couchbase Lite 1.x", arguments: someEngines)
  func worked(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    for (id, text) in [
      ("22222", "it was a dark"), ("44444", "and STöRMy night."), ("33333", "a dog whøse ñame was “Dog”"),
      ("55555", "was barking."), ("11111", "none"),
    ] { try database.save(id, ["text": .string(text)]) }
    let view = try database.view("texts")
    try view.setMap(version: "1", language: .english) { document, emit in
      if let text = document["text"]?.string, text != "none" { emit(TextKey(text), document.id) }
    }
    try expect(Set(try ids(view, "stormy OR dog")), equals: ["44444", "33333"])
    try expect(Set(try ids(view, "(was NOT barking) OR dog")), equals: ["33333", "22222"])
    try expect(ids(view, "whose"), equals: [])
    try expect(ids(view, "nothing"), equals: [])
    try expect(ids(view, ""), equals: [])
    let row = try #require(try rows(view, "dog name") { $0.fullTextSnippets = true }.first)
    let text = try #require(row.fullText)
    expect(text, equals: "a dog whøse ñame was “Dog”")
    expect(row.keyJSON == "null" && row.value == "33333" && row.documentID == "33333")
    expect(row.fullTextMatches.map(\.termIndex), equals: [0, 1, 0])
    expect(row.fullTextMatches.map { String(text[$0.range]) }, equals: ["dog", "ñame", "Dog"])
    expect(
      row.fullTextMatches.map { text.utf16.distance(from: text.startIndex, to: $0.range.lowerBound) },
      equals: [
        2, 12, 22,
      ])
    expect(row.snippet(before: "[", after: "]"), equals: "a [dog] whøse [ñame] was “[Dog]”")
    expect(row.boundingBox == nil && row.geometry == nil)
    // Without asking, and in rows of other queries, there is none.
    try expect(rows(view, "dog name").first?.snippet() == nil)
    let plain = try view.query().run()
    expect(plain.count == 4 && plain.allSatisfy { $0.fullText == nil && $0.fullTextMatches.isEmpty })
    // By sequence, without ranks.
    try expect(ids(view, "was") { $0.fullTextRanking = false }, equals: ["22222", "33333", "55555"])
    try expect(
      ids(view, "was") { ($0.fullTextRanking, $0.isDescending) = (false, true) },
      equals: [
        "55555", "33333", "22222",
      ])
    try expect(
      ids(view, "was") { ($0.fullTextRanking, $0.skip, $0.limit) = (false, 1, 1) }, equals: ["33333"])
    let error = #expect(throws: ViewError.self) { try ids(view, "\"dog") }
    expect(error?.code == .invalidArgument && error?.view == "texts")
    // The reducer isn't used, nor are keys.
    view.setReduce(.count)
    try expect(ids(view, "barking") { $0.keys = ["x"] }, equals: ["55555"])
    try expect(
      ids(view, "was") { $0.filter = { $0.fullTextMatches.count == 1 && $0.documentID != "55555" } }.count,
      equals: 2)
    try expect(database.check(), equals: [])
  }

  @Test("another language builds the view again")
  func language() throws {
    let database = try databases.open(try #require(someEngines.first))
    try database.save("a", ["text": "searching databases"])
    let view = try database.view("texts")
    let map: ViewMap = { document, emit in emit(TextKey(document["text"]?.string ?? ""), nil as JSONValue?) }
    try view.setMap(version: "1", map)
    try expect(ids(view, "searches"), equals: [])
    try expect(ids(view, "searching"), equals: ["a"])
    try expect(view.setMap(version: "1", language: .english, map))
    try expect(ids(view, "searches"), equals: ["a"])
    try expect(!view.setMap(version: "1", language: .english, map))
    try expect(database.check(), equals: [])
    // So does another version of the analysis.
    try expect(view.updateIndex().documents, equals: 0)
    try view.indexes.store.writingDerived { transaction in
      var record = try #require(try ViewRecord.read("texts", in: transaction))
      expect(record.language == .english && !record.analysis.isEmpty)
      record.analysis = Array("another".utf8)
      try record.write("texts", in: transaction)
    }
    try expect(view.updateIndex().documents, equals: 1)
    try expect(ids(view, "searches"), equals: ["a"])
    try expect(database.check(), equals: [])
  }

  private static let words = [
    "red", "green", "blue", "Ünder", "under", "naïve", "naive", "x", "yy", "zzz", "the", "of",
  ]

  private func text(_ random: inout SeededGenerator) -> String {
    (0..<Int.random(in: 0...12, using: &random)).map { _ in Self.words.randomElement(using: &random) ?? "" }
      .joined(separator: Bool.random(using: &random) ? " " : ", ")
  }

  private func query(_ random: inout SeededGenerator) -> String {
    func word() -> String { Self.words.randomElement(using: &random) ?? "" }
    return switch Int.random(in: 0..<6, using: &random) {
    case 0: "\(word()) \(word())"
    case 1: "\(word()) OR \(word()) OR \(word())"
    case 2: "\"\(word()) \(word())\""
    case 3: "\(word()) NOT \(word())"
    case 4: "\(word().prefix(2))*"
    default: word()
    }
  }

  @Test("random texts, changes and queries give what a list of texts gives", arguments: someEngines)
  func random(_ engine: EngineName) throws {
    var random = SeededGenerator(seed: testSeed)
    let database = try databases.open(engine)
    let view = try database.view("texts")
    func setMap(_ version: String) throws {
      try view.setMap(version: version) { document, emit in
        for item in try document.properties()["texts"]?.array ?? [] {
          emit(TextKey(item.string ?? ""), document.id)
        }
        // Another row with the same key, and one that isn't of a text.
        emit(JSONValue.null, 1)
        if document.id.hasSuffix("7") { emit(GeoPoint(x: 7, y: 7)) }
      }
    }
    try setMap("0")
    let options = TextAnalysisOptions(ignoresAccents: true, stopWords: .none)
    var texts: [String: [String]] = [:]
    for step in 0..<10 {
      try database.inBatch {
        for _ in 0..<(step == 0 ? 200 : 40) {
          let number = Int.random(in: 0..<250, using: &random)
          let id = number % 50 == 0 ? String(repeating: "é", count: 115) + "\(number)" : "d\(number)"
          switch Int.random(in: 0..<6, using: &random) {
          case 0 where texts[id] != nil:
            if Bool.random(using: &random) { try database.delete(id) } else { try database.purge(id) }
            texts[id] = nil
          default:
            let new = (0..<Int.random(in: 0...2, using: &random)).map { _ in text(&random) }
            try database.save(id, ["texts": .array(new.map { .string($0) })])
            texts[id] = new
          }
        }
      }
      if step == 5 { try setMap("1") }
      if step == 7 { view.indexes.memoryLimit.withLock { $0 = 4_000 } }
      if step == 8 { try view.deleteIndex() }
      var reference = try ReferenceIndex(columns: ["content"], options: options)
      for (id, texts) in texts {
        for (emission, text) in texts.enumerated() { reference.set("\(id)/\(emission)", [text]) }
      }
      for _ in 0..<20 {
        let query = query(&random)
        let wanted = try reference.search(query)
        let names = wanted.map { $0.id.split(separator: "/")[0] }.map(String.init)
        let limit = Int.random(in: 1...8, using: &random)
        let found = try ids(view, query)
        // Equal ranks may be rounded in another order.
        expect(found.sorted(), equals: names.sorted(), "\(query), step \(step) (seed \(testSeed))")
        expect(
          isSameOrder(found, wanted, names),
          "\(query): \(found) for \(wanted), step \(step) (seed \(testSeed))")
        try expect(
          ids(view, query) { $0.limit = limit }, equals: Array(found.prefix(limit)),
          "\(query) (seed \(testSeed))")
        try expect(
          ids(view, query) { $0.isDescending = true }, equals: found.reversed(), "\(query) (seed \(testSeed))"
        )
        for row in try rows(view, query) where !query.contains("NOT") {
          expect(!row.fullTextMatches.isEmpty, "\(query): \(row.fullText ?? "-")")
        }
      }
      try expect(database.check(), equals: [], "step \(step) (seed \(testSeed))")
    }
    try view.delete()
    let names = try view.indexes.store.read {
      try $0.storage.keyspaces().keys.filter { $0.hasPrefix("view.") }
    }
    expect(names.isEmpty)
  }

  /// Whether documents are where their ranks say. Those whose ranks differ by less than doubles are exact may be swapped.
  private func isSameOrder(_ found: [String], _ wanted: [ReferenceIndex.Result], _ names: [String]) -> Bool {
    var start = 0
    while start < wanted.count {
      var end = start + 1
      while end < wanted.count, abs(wanted[end].rank - wanted[start].rank) < 1e-9 { end += 1 }
      if found[start..<end].sorted() != names[start..<end].sorted() { return false }
      start = end
    }
    return true
  }

  @Test("a damaged index of texts is found by check")
  func check() throws {
    let database = try databases.open(try #require(someEngines.first))
    try database.save("a", ["text": "one"])
    let view = try database.view("texts")
    try view.setMap(version: "1") { document, emit in emit(TextKey(document["text"]?.string ?? "")) }
    try view.updateIndex()
    try expect(database.check(), equals: [])
    try view.indexes.store.writingDerived { transaction in
      for name in ["view.1.text", "view.1.text.blocks"] {
        try transaction.dropKeyspace(try #require(try transaction.keyspace(named: name)))
      }
    }
    let faults = try database.check().map(\.description)
    expect(!faults.isEmpty && faults.allSatisfy { $0.contains("view.1.text") }, "\(faults)")
  }
}
