import Foundation
import Query
import TestSupport
import Testing
import Touchstone

/// Parameters of any type that has a JSON form.
@Suite("Parameters") struct QueryParameterTests {
  private func value(_ database: Database, _ parameters: [String: any JSONConvertible]) throws -> JSONValue? {
    try database.query("SELECT $p AS p").run(parameters)[0]["p"].jsonValue()
  }

  @Test("a parameter is any value that has a JSON form", arguments: someEngines)
  func types(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let date = Date(timeIntervalSince1970: 1.5)
      let blob = try database.makeBlob(Array("hello".utf8), contentType: "text/plain")
      let wanted: [(any JSONConvertible, JSONValue)] = [
        (date, "1970-01-01T00:00:01.500Z"), (blob, blob.jsonValue), (Data([1, 2]), .data([1, 2])),
        (UInt64.max, .uint(.max)), (UInt8(7), 7), (Float(0.5), 0.5), (true, true), ("text", "text"),
        ([date], ["1970-01-01T00:00:01.500Z"]),
        (["a": ["b": date]], ["a": ["b": "1970-01-01T00:00:01.500Z"]]),
        (Int?.none, .null), (Int?.some(3), 3), ([1, nil], [1, .null]), (JSONValue.null, .null),
        (JSONObject(["a": 1]), ["a": 1]),
      ]
      for (given, json) in wanted {
        try expect(value(database, ["p": given]), equals: json, "\(given)")
      }
    }
  }

  @Test("literals of every form need no annotation") func literals() throws {
    try withDatabase(.sqlite) { database in
      let date = Date(timeIntervalSince1970: 0)
      try database.save("a", ["d": JSONValue(date), "n": 1, "type": "hotel"])
      let query = try database.query(
        "SELECT META().id FROM _ WHERE type = $type AND d >= $d AND n = $n AND [$type, 1] = $list")
      let type = "hotel"
      try expect(
        query.run(["type": type, "d": date, "n": 1, "list": JSONValue.array(["hotel", 1])]).count, equals: 1)
      try expect(query.run(["type": "hotel", "d": "1970", "n": 1, "list": ["hotel", 1]]).count, equals: 1)
      try expect(query.run(as: String.self, ["type": "x", "d": date, "n": 1, "list": [1]]), equals: [])
      let byType = try database.query("SELECT META().id FROM _ WHERE type = $type")
      try expect(byType.run(["type": "hotel"]).count, equals: 1)
      try expect(byType.run(["type": type]).count, equals: 1)
      try expect(byType.run(as: String.self, ["type": type]), equals: ["a"])
      let since = try database.query("SELECT META().id FROM _ WHERE d >= $since AND n = $n")
      try expect(since.run(["since": date, "n": 1]).count, equals: 1)
      let known: [String: JSONValue] = ["type": "hotel"]
      try expect(byType.run(known).count, equals: 1)
      let mixed: [String: any JSONConvertible] = ["since": date, "n": UInt64(1)]
      try expect(since.run(mixed).count, equals: 1)
      var count = 0
      try since.forEach(mixed) { _ in
        count += 1
        return true
      }
      try since.forEach(["since": date, "n": 1]) { _ in
        count += 1
        return true
      }
      expect(count, equals: 2)
      try expect(!since.explain(analyze: true, ["since": date, "n": 1]).description.isEmpty)
      try database.write { transaction in
        let rows = try transaction.run(since, ["since": date, "n": 1])
        expect(rows.count, equals: 1)
        try expect(transaction.run(byType, ["type": "hotel"]).count, equals: 1)
        try expect(transaction.run(since, as: String.self, ["since": date, "n": 1]), equals: ["a"])
        try expect(transaction.run(byType, as: String.self, ["type": "hotel"]), equals: ["a"])
      }
    }
  }

  @Test("asynchronous runs take the same literals") func asynchronous() async throws {
    let directory = TemporaryDirectory()
    let database = try Database.open("test", in: directory.path)
    let date = Date(timeIntervalSince1970: 0)
    try database.save("a", ["d": JSONValue(date), "n": 1])
    let query = try database.query("SELECT META().id FROM _ WHERE d >= $since AND n = $n")
    #expect(try await query.run(["since": date, "n": 1]).count == 1)
    #expect(try await query.run(["since": "1970", "n": 1]).count == 1)
    #expect(try await query.run(as: String.self, ["since": date, "n": 1]) == ["a"])
    #expect(try await query.run(as: String.self, ["since": "1970", "n": 1]) == ["a"])
    let count = Counter()
    try await query.forEach(["since": date, "n": 1]) { _ in count.add() }
    expect(count.value, equals: 1)
    #expect(try await !query.explain(["since": date, "n": 1]).description.isEmpty)
    try database.close()
  }
}
