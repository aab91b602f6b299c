import TestSupport

/// The README's Swift compiles and does what it says.
@Suite struct ReadmeTests {
  private static let readme = URL(filePath: #filePath).deletingLastPathComponent()
    .appending(path: "../../../README.md").standardizedFileURL

  /// The lines of the first screen, but for the directory and for where they print.
  private func firstLines(in directory: String, print: (Any...) -> Void) throws {
    let db = try Database.open("first", in: directory, options: .init(engine: .lmdb))
    try db.save("hotel_1", ["type": "hotel", "name": "Apple Droid", "country": "France"])
    let hotels = try db.query("SELECT name FROM _ WHERE country = $country")
    for row in try hotels.run(["country": "France"]) { print(row["name"].string ?? "-") }
    try db.close()
  }

  /// The example, line by line, but for the directory and for where it prints.
  private func example(in directory: String, print: (Any...) -> Void) throws {
    let travel = try Database.open("travel", in: directory, options: .init(engine: .lmdb))
    try travel.inBatch {
      var hotel = MutableDocument(id: "hotel_1", ["type": "hotel", "name": "Apple Droid"])
      hotel["geo"]["lat"] = 51.5
      try travel.save(&hotel)
    }
    print(try travel.document("hotel_1")?["geo"]["lat"].double ?? 0)
    try travel.read { snapshot in
      let name = try snapshot.key("name")
      try snapshot.forEachDocument { document in
        print(document.id, document[name]?.string ?? "-")
        return true
      }
    }
    for change in try travel.changes(since: 0) { print(change.sequence, change.documentID) }
    try travel.createIndex("byType", on: ["type", "name"])
    let hotels = try travel.query("SELECT name FROM _ WHERE type = $type ORDER BY name LIMIT 10")
    for row in try hotels.run(["type": "hotel"]) { print(row["name"].string ?? "-") }
    try travel.close()
  }

  @Test func theExampleRuns() throws {
    try Tool.run { tool in
      var printed: [String] = []
      try example(in: tool.directory) { printed.append($0.map { "\($0)" }.joined(separator: " ")) }
      expect(printed, equals: ["51.5", "hotel_1 Apple Droid", "1 hotel_1", "Apple Droid"])
      printed = []
      try firstLines(in: tool.directory) { printed.append($0.map { "\($0)" }.joined(separator: " ")) }
      expect(printed, equals: ["Apple Droid"])
    }
  }

  @Test func theExamplesAreThoseInTheReadme() throws {
    let text = try String(contentsOf: Self.readme, encoding: .utf8)
    let blocks = text.split(separator: "```swift\n").filter { $0.hasPrefix("import Touchstone\n") }
    expect(blocks.count, equals: 2)
    let source = try String(contentsOfFile: #filePath, encoding: .utf8)
    for block in blocks {
      let shown = try #require(block.split(separator: "```").first).split(separator: "\n").dropFirst(2)
      for line in shown {
        expect(source.contains("\(line.trimmingCharacters(in: .whitespaces))\n"), "\(line)")
      }
    }
  }
}
