import TestSupport

@testable import Query
@testable import Touchstone

/// The JSON text of rows, and what Swift types they decode as: the same as of documents.
@Suite struct RowTextTests {
  @Test("a row's JSON text is that of the document", arguments: someEngines)
  func textIsTheDocuments(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let all = String(String.UnicodeScalarView((0..<0x100).compactMap(Unicode.Scalar.init)))
      var body = JSONObject()
      // Each character in a value and in a name, at several places of a block of sixteen bytes.
      for (number, scalar) in (Array(all.unicodeScalars) + ["\u{2028}", "😀"]).enumerated() {
        let text = String(repeating: "a", count: number % 20) + String(Character(scalar)) + "b"
        body[text] = .string(text)
      }
      body["all"] = .string(all)
      body["numbers"] = [
        0, -1, .uint(.max), .int(.min), 1.0, -0.0, 0.1, 1e16, 1e-7, 1.7976931348623157e308, 5e-324,
      ]
      body["data"] = .data([0, 1, 2, 250, 251])
      body["nested"] = [["z": 1, "a": [.null, true, false], "": ["\u{8}\u{C}\u{7F}"]]]
      try database.save("x", .value(.object(body)))
      let text = String(decoding: try #require(try database.document("x")).json(), as: UTF8.self)
      expect(text.contains(#"\u0008"#) && text.contains(#"\u007f"#))
      let rows = try database.query("SELECT * FROM _").run()
      try expect(rows[0].json(), equals: "{\"_\":\(text)}")
      try expect(String(decoding: try rows.jsonLines(), as: UTF8.self), equals: "{\"_\":\(text)}\n")
      var value: [UInt8] = []
      try rows[0][0].writeJSON(into: &value)
      expect(String(decoding: value, as: UTF8.self), equals: text)
      // What is computed, and the names of columns.
      let names = body.keys.map { $0.replacingOccurrences(of: "`", with: "``") }.sorted()
      let columns = names.map { "`\($0)` AS `\($0)`" }.joined(separator: ", ")
      let row = try database.query("SELECT \(columns) FROM _").run()[0]
      try expect(JSONValue(json: row.json()), equals: JSONValue(json: text))
      for name in body.keys where name != "data" {
        let member = try JSONValue.object(JSONObject([(name, body[name] ?? .null)])).canonicalJSON()
        let quoted = name.replacingOccurrences(of: "`", with: "``")
        try expect(database.query("SELECT `\(quoted)` AS `\(quoted)` FROM _").run()[0].json(), equals: member)
        let object = try database.query("SELECT {$n: `\(quoted)`} AS o FROM _".replacing("$n", with: "'n'"))
          .run()[0]
        try expect(object["o"]["n"].jsonValue(), equals: JSONValue(json: member)[name])
      }
      // CONCAT writes arrays as the same text.
      let joined = try database.query("SELECT CONCAT('', [`all`]) AS c FROM _").run()[0]["c"].string
      try expect(joined, equals: JSONValue.array([.string(all)]).canonicalJSON())
    }
  }

  struct Everything: Codable, Equatable {
    struct Inner: Codable, Equatable {
      var when: Date
      var list: [UInt8?]
    }
    var when: Date
    var unsigned: UInt64
    var data: Data
    var url: URL
    var absent: Int?
    var null: Int?
    var double: Double
    var whole: Int
    var inner: Inner
  }

  @Test("rows and values decode as documents do", arguments: someEngines)
  func decoding(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let when = Date(timeIntervalSince1970: 1_500_000_000.5)
      let value = Everything(
        when: when, unsigned: .max, data: Data([1, 2, 250]),
        url: try #require(URL(string: "https://x.y/z?a=b")),
        absent: nil, null: nil, double: 1.0, whole: 7,
        inner: .init(when: when.addingTimeInterval(-1e9), list: [1, nil, 255]))
      var document = try MutableDocument(id: "x", encoding: value)
      document["null"] = JSONValue.null
      // A double that is whole is an integer, too.
      document["whole"] = 7.0
      try database.save(&document)
      try expect(database.document("x")?.decode(Everything.self), equals: value)
      try expect(database.query("SELECT * FROM _").run()[0][0].decode(Everything.self), equals: value)
      let columns = "SELECT `when`, unsigned, data, url, absent, `null`, double, whole, `inner` FROM _"
      try expect(database.query(columns).run()[0].decode(Everything.self), equals: value)
      try database.createIndex("i", on: ["unsigned", "`when`", "data", "url", "double", "whole"])
      let covered = try database.query("SELECT `when`, unsigned FROM _ WHERE unsigned > 1").run()
      struct Part: Decodable {
        var when: Date
        var unsigned: UInt64
      }
      let part = try covered[0].decode(Part.self)
      expect(part.when == value.when && part.unsigned == .max)
      expect(covered[0]["unsigned"].uint == .max && covered[0]["unsigned"].int == nil)
      // What doesn't fit is told by its path.
      struct Wrong: Decodable {
        struct Inner: Decodable { var list: String }
        var inner: Inner
      }
      let error = #expect(throws: DecodingError.self) {
        try database.query("SELECT `inner` FROM _").run()[0].decode(Wrong.self)
      }
      guard case .typeMismatch(_, let context)? = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      expect(context.codingPath.map(\.stringValue), equals: ["inner", "list"])
      try expect(database.query("SELECT absent FROM _").run()[0][0].decode(Int?.self) == nil)
    }
  }
}
