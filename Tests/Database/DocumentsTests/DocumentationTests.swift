import TestSupport

@Suite("docs/ says what is") struct DocumentationTests {
  private static let tests = URL(filePath: #filePath).deletingLastPathComponent()

  private func text(_ name: String) throws -> String {
    try String(contentsOf: Self.tests.appending(path: name).standardizedFileURL, encoding: .utf8)
  }

  @Test("the example record is what is stored", arguments: someEngines)
  func exampleRecord(_ engine: EngineName) throws {
    let page = try text("../../../docs/documents.md")
    let example = try #require(page.components(separatedBy: "at sequence 1 is\n\n").dropFirst().first)
    // The bytes stand before the words, with at least two spaces between.
    var expected = ""
    for line in example.split(separator: "\n").prefix(4) {
      expected += line.trimmingCharacters(in: .whitespaces).components(separatedBy: "  ")[0]
        .replacingOccurrences(of: " ", with: "")
    }
    try withDatabase(engine) { database in
      try database.save("x", ["ans*wer": 42])
      let found = try database.engine.read { transaction in
        let docs = try #require(try transaction.keyspace(named: "docs"))
        return try #require(try transaction.bytes(Array("x".utf8), in: docs))
      }
      let hex = found.map { String(format: "%02X", $0) }.joined()
      let parts = expected.components(separatedBy: "…")
      expect(parts.count, equals: 2)
      expect(hex.hasPrefix(parts[0]) && hex.hasSuffix(parts[1]), "\(hex) instead of \(expected)")
      expect(hex.count, equals: parts[0].count + parts[1].count + 28)
    }
  }

  @Test("the three-way merge in docs/conflicts.md is the one that is tested")
  func mergeExample() throws {
    let source = try text("MergeExample.swift").components(separatedBy: "import Touchstone\n\n")[1]
    try expect(text("../../../docs/conflicts.md").contains("```swift\n" + source + "```"))
  }

  @Test("the three-way merge keeps what each side changed", arguments: someEngines)
  func merging(_ engine: EngineName) throws {
    let base: JSONValue = ["name": "a", "geo": ["lat": 1, "lon": 2], "old": true, "tags": ["x"]]
    let local: JSONValue = ["name": "b", "geo": ["lat": 9, "lon": 2], "old": true, "tags": ["y"]]
    let remote: JSONValue = ["name": "a", "geo": ["lat": 1, "lon": 7], "new": .null, "tags": ["z"]]
    let expected: JSONValue = ["name": "b", "geo": ["lat": 9, "lon": 7], "new": .null, "tags": ["z"]]
    func pulled(_ history: [String], _ body: JSONValue) -> PulledRevision {
      PulledRevision(id: "a", history: history, body: .value(body))
    }
    try withDatabase(engine) { database in
      try database.apply(pulled(["1-aa"], base))
      try database.save("a", .value(local), basedOn: RevisionID("1-aa"))
      try expect(database.apply(pulled(["2-bb", "1-aa"], remote), resolvingWith: MergingResolver()))
      try expect(database.document("a")?.value(), equals: expected)
      try expect(database.conflicts(of: "a").isEmpty)
    }
    try withDatabase(engine) { database in
      try database.apply(pulled(["1-aa"], base))
      try database.apply(pulled(["2-00", "1-aa"], local))
      try database.apply(pulled(["2-bb", "1-aa"], remote))
      let id = "a"
      let leaves = try database.conflicts(of: id)
      let base = try database.commonAncestor(of: leaves[0].id, and: leaves[1].id, in: id)?.body
      let merged = merge(base, leaves[1].body, leaves[0].body) ?? [:]
      try database.resolveConflict(of: id, keeping: leaves[0].id, merged: .value(merged))
      try expect(database.document("a")?.value(), equals: expected)
    }
  }
}
