import Foundation
import TestSupport
import Testing

@testable import Query
@testable import Touchstone

private struct Geo: Codable, Equatable {
  var lat: Double
  var lon: Double
}

private struct Hotel: Codable, Equatable {
  var id: String
  var name: String
  var stars: Int?
  var opened: Date?
  var geo: Geo?
}

private struct Name: Codable, Equatable {
  var name: String
}

private enum Kind: String, Decodable { case hotel, city }

private struct Whole: Decodable {
  var doc: Name
}

private struct Pair: Decodable {
  var hotel: Name
  var city: Name?
  var name: String
}

/// Rows as values of `Decodable` types.
@Suite("Rows of a type") struct RowDecodingTests {
  private static let documents = [
    (
      "h1",
      #"{"type":"hotel","name":"Apple","stars":3,"opened":"2020-01-02T03:04:05.000Z","geo":{"lat":1.5,"lon":2}}"#
    ),
    ("h2", #"{"type":"hotel","name":"Berry","city":"c1","id":"of the body"}"#),
    ("c1", #"{"type":"city","name":"Lund","tags":["a","b"]}"#),
  ]
  private static let apple = Hotel(
    id: "h1", name: "Apple", stars: 3, opened: Date(timeIntervalSince1970: 1_577_934_245),
    geo: Geo(lat: 1.5, lon: 2))

  private func withHotels(_ engine: EngineName, _ body: (Database) throws -> Void) throws {
    try withDatabase(engine) { database in
      try database.fill(Self.documents)
      try body(database)
    }
  }

  @Test("members come from columns, and from the members of *", arguments: someEngines)
  func members(_ engine: EngineName) throws {
    try withHotels(engine) { database in
      let berry = Hotel(id: "h2", name: "Berry")
      for text in [
        "SELECT META().id AS id, * FROM _ WHERE type = 'hotel' ORDER BY name",
        "SELECT *, META().id AS id FROM _ WHERE type = 'hotel' ORDER BY name",
        "SELECT META().id, * FROM test WHERE type = 'hotel' ORDER BY name",
        "SELECT META(h).id, h.* FROM _ AS h WHERE h.type = 'hotel' ORDER BY h.name",
        "SELECT META().id, name, stars, opened, geo FROM _ WHERE type = 'hotel' ORDER BY name",
      ] {
        let query = try database.query(text)
        try expect(query.run(as: Hotel.self), equals: [Self.apple, berry], "\(text)")
        try expect(query.run().decode(as: Hotel.self), equals: [Self.apple, berry], "\(text)")
        try expect(query.run()[1].decode(Hotel.self), equals: berry, "\(text)")
        try expect(query.run(as: Hotel?.self), equals: [Self.apple, berry], "\(text)")
        let members = try query.run(as: [String: JSONValue].self)
        expect(members.map { $0["id"] }, equals: ["h1", "h2"], "\(text)")
        try expect(query.run(as: JSONValue.self)[0]["name"], equals: "Apple", "\(text)")
      }
    }
  }

  @Test("a named column hides a member of *, also when it is missing")
  func precedence() throws {
    try withHotels(.sqlite) { database in
      func name(_ text: String) throws -> String? {
        let rows = try database.query(text + " FROM _ WHERE META().id = 'h1'").run(
          as: [String: JSONValue].self)
        return rows[0]["name"]?.string
      }
      try expect(name("SELECT *, 'other' AS name"), equals: "other")
      try expect(name("SELECT 'other' AS name, *"), equals: "other")
      try expect(name("SELECT nothing AS name, *") == nil)
      // An alias of the star counts as the name of a column, and its members are there too.
      try expect(name("SELECT * AS doc"), equals: "Apple")
      let whole = try database.query("SELECT * AS doc FROM _ WHERE META().id = 'h1'").run(as: Whole.self)
      expect(whole.map(\.doc), equals: [Name(name: "Apple")])
    }
  }

  @Test("the documents of a join are members, and the first one's members come first")
  func joins() throws {
    try withHotels(.sqlite) { database in
      let pairs = try database.query(
        """
        SELECT * FROM _ AS hotel LEFT JOIN _ AS city ON META(city).id = hotel.place
        WHERE hotel.type = 'hotel' ORDER BY hotel.name
        """
      ).run(as: Pair.self)
      expect(pairs.map(\.hotel.name), equals: ["Apple", "Berry"])
      expect(pairs.map(\.city), equals: [nil, nil])
      expect(pairs.map(\.name), equals: ["Apple", "Berry"])
      let joined = try database.query(
        """
        SELECT h.* AS hotel, c.*, 'x' AS city FROM _ AS h JOIN _ AS c ON META(c).id = h.city
        """
      ).run(as: [String: JSONValue].self)
      expect(joined.count == 1 && joined[0]["name"] == "Berry" && joined[0]["tags"] == ["a", "b"])
      expect(joined[0]["hotel"]?["name"] == "Berry" && joined[0]["city"] == "x")
      // A document may have a member that is named as the only star's column is.
      try database.save("n", ["test": "own"])
      let own = try database.query("SELECT * FROM test WHERE META().id = 'n'").run(as: [String: String].self)
      expect(own, equals: [["test": "own"]])
    }
  }

  @Test("a type with a single value takes the only column", arguments: someEngines)
  func singleValues(_ engine: EngineName) throws {
    try withHotels(engine) { database in
      func all<Value: Decodable>(_ column: String, _ type: Value.Type, _ id: String = "h1") throws -> [Value]
      {
        try database.query("SELECT \(column) FROM _ WHERE META().id = $id").run(as: type, ["id": .string(id)])
      }
      let names = try all("name", String.self)
      expect(names, equals: ["Apple"])
      try expect(all("stars", Int.self), equals: [3])
      try expect(all("stars", UInt8?.self), equals: [3])
      try expect(all("stars", Double.self), equals: [3])
      try expect(all("stars", Int?.self, "h2"), equals: [nil])
      try expect(all("stars > 2", Bool.self), equals: [true])
      try expect(all("opened", Date.self), equals: [Self.apple.opened])
      try expect(all("opened", Date?.self, "h2"), equals: [nil])
      try expect(all("tags", [String].self, "c1"), equals: [["a", "b"]])
      try expect(all("18446744073709551615", UInt64.self), equals: [.max])
      try expect(all("'aGk='", Data.self), equals: [Data("hi".utf8)])
      try expect(all("'http://a.b/c'", URL.self), equals: [URL(string: "http://a.b/c")])
      try expect(all("type", Kind.self), equals: [.hotel])
      try expect(all("geo", Geo?.self, "h2"), equals: [nil])
      try expect(database.query("SELECT name FROM _ WHERE name = 'nothing'").run(as: String.self), equals: [])
      try expect(database.query("EXPLAIN SELECT name FROM _").run(as: String.self).isEmpty, equals: false)
    }
  }

  private func failure(_ database: Database, _ text: String, _ type: (some Decodable).Type) throws
    -> DecodingError.Context
  {
    let rows = try database.query(text).run()
    var found: DecodingError.Context?
    do { _ = try rows.decode(as: type) } catch let error as DecodingError {
      switch error {
      case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
        .dataCorrupted(let context):
        found = context
      @unknown default: break
      }
    }
    return try #require(found, "\(text)")
  }

  @Test("an error names the row and the column") func errors() throws {
    try withHotels(.sqlite) { database in
      let hotels = " FROM _ WHERE type = 'hotel' ORDER BY name"
      let type = try failure(database, "SELECT META().id, name, city AS stars" + hotels, Hotel.self)
      expect(type.codingPath.map(\.stringValue) == ["Index 1", "stars"] && type.codingPath[0].intValue == 1)
      expect(type.debugDescription.hasPrefix(#"row 1, column "stars": expected Int"#), "\(type)")
      let missing = try failure(database, "SELECT META().id, stars" + hotels, Hotel.self)
      expect(
        missing.debugDescription, equals: #"row 0, there is no column "name"; the columns are id, stars"#)
      let inside = try failure(database, "SELECT META().id, name, {'lat': 1} AS geo" + hotels, Hotel.self)
      expect(inside.codingPath.map(\.stringValue), equals: ["Index 0", "geo"])
      expect(inside.debugDescription, equals: #"row 0, column "geo": there is no property "lon""#)
      let single = try failure(database, "SELECT stars" + hotels, Int.self)
      expect(single.codingPath.map(\.stringValue), equals: ["Index 1", "stars"])
      let item = try failure(database, "SELECT ['a', 1]" + hotels, [String].self)
      expect(item.codingPath.map(\.stringValue), equals: ["Index 0", "$1", "Index 1"])
      let columns = try failure(database, "SELECT name, stars" + hotels, String.self)
      expect(columns.debugDescription.contains("the row has 2 columns: name, stars"), "\(columns)")
      let row = try database.query("SELECT name" + hotels).run()[0]
      #expect(throws: DecodingError.self) { try row.decode(Int.self) }
    }
  }
}
