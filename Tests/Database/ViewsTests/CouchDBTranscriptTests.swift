import Datasets
import Fleece
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Views

private let data = environmentVariable("TOUCHSTONE_DATA")

/// The view queries recorded with CouchDB 3.5, replayed.
@Suite(.enabled(if: data != nil, "TOUCHSTONE_DATA is not set: there are no recorded exchanges to replay"))
struct CouchDBTranscriptTests {
  private let databases = TestDatabases()

  /// The 2,000 documents of the recording: the first ones of each type. The first ten airlines have two leaves, and ten
  /// others are deleted. Documents that the recording shows have their recorded revisions.
  private func travel(_ engine: EngineName, _ exchanges: [RecordedExchange]) throws -> Database {
    let database = try databases.open(engine)
    let path = try #require(data) + "/travel-sample/travel-sample.jsonl.gz"
    let source = try JSONLinesSource(path: path)
    var known: [String: String] = [:]
    let pattern = try NSRegularExpression(pattern: #""_id":"([^"]+)","_rev":"(1-[0-9a-f]{32})""#)
    for exchange in exchanges {
      let text = exchange.answer as NSString
      for match in pattern.matches(in: exchange.answer, range: NSRange(location: 0, length: text.length)) {
        known[text.substring(with: match.range(at: 1))] = text.substring(with: match.range(at: 2))
      }
    }
    let design = try #require(exchanges.first { $0.path.last == "travel" && $0.method == "GET" })
    var body = try #require(try JSONValue(json: design.answer).object)
    body.removeValue(forKey: "_id")
    body.removeValue(forKey: "_rev")
    let designBody = body
    var left = ["airline": 187, "airport": 613, "hotel": 300, "landmark": 400, "route": 500]
    var airlines = 0
    try database.inBatch {
      try database.save("_design/travel", .value(.object(designBody)))
      while let record = try source.next() {
        let id = try #require(record.idString)
        let type = String(id.prefix { $0 != "_" })
        guard let count = left[type], count > 0 else { continue }
        left[type] = count - 1
        let first = known[id] ?? "1-00000000000000000000000000000000"
        let json = [UInt8](record.json)
        try database.apply(PulledRevision(id: id, history: [first], body: .json(json)))
        guard type == "airline" else { continue }
        if airlines < 10 {
          var object = try #require(try json.withUnsafeBytes { try JSONValue(json: $0) }.object)
          for letter in ["b", "c"] {
            object["callsign"] = .string("\(letter)-\(airlines)")
            let revision = "2-" + String(repeating: letter, count: 32)
            try database.apply(
              PulledRevision(id: id, history: [revision, first], body: .value(.object(object))))
          }
        } else if (20..<30).contains(airlines) {
          try database.delete(id)
        }
        airlines += 1
      }
    }
    return database
  }

  private func report(_ replays: [CouchDBReplay], _ name: String, _ engine: EngineName) {
    let differences = replays.flatMap(\.differences)
    for difference in differences { Issue.record("\(name) \(difference)") }
    print(
      "\(name), \(engine): \(replays.map(\.compared).reduce(0, +)) exchanges compared, "
        + "\(replays.map(\.equal).reduce(0, +)) of them equal byte by byte, \(differences.count) differ, "
        + "\(replays.map(\.comparison.rounded).reduce(0, +)) sums are rounded differently, not about views: "
        + "\(replays.flatMap(\.others))")
  }

  @Test("queries of 2,000 documents", arguments: someEngines)
  func queries(_ engine: EngineName) throws {
    let exchanges = try RecordedExchange.read("api-09-views.jsonl", below: try #require(data))
    let replay = CouchDBReplay(try travel(engine, exchanges))
    for exchange in exchanges { try replay.run(exchange) }
    report([replay], "api-09-views", engine)
    expect(replay.compared, equals: 123)
    try expect(replay.database.check(), equals: [])
  }

  @Test("queries between changes, wrong design documents, collation", arguments: someEngines)
  func changes(_ engine: EngineName) throws {
    let exchanges = try RecordedExchange.read("api-10-views-changing.jsonl", below: try #require(data))
    let replay = CouchDBReplay(try databases.open(engine))
    let collation = CouchDBReplay(try databases.open(engine))
    // The documents of this database aren't recorded. A text keeps the order of an object's members.
    let all = try #require(exchanges.first { $0.path.first == "p_coll" })
    let map = "function (doc) { emit(JSON.parse(doc.json), null); }"
    try collation.database.save("_design/d", ["views": ["k": ["map": .string(map)]]])
    for line in all.answer.split(whereSeparator: \.isNewline) where line.hasPrefix("{\"id\"") {
      let id = line.dropFirst(7).prefix { $0 != "\"" }
      let start = try #require(line.range(of: "\"key\":")).upperBound
      let end = try #require(line.range(of: ",\"value\":null}")).lowerBound
      try collation.database.save(String(id), ["json": .string(String(line[start..<end]))])
    }
    for exchange in exchanges { try (exchange.path.first == "p_coll" ? collation : replay).run(exchange) }
    report([replay, collation], "api-10-views-changing", engine)
    expect(replay.compared + collation.compared, equals: 65)
    for database in [replay.database, collation.database] { try expect(database.check(), equals: []) }
  }
}
