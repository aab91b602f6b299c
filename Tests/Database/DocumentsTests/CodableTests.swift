import TestSupport

@Suite("Codable documents") struct CodableTests {
  private struct Hotel: Codable, Hashable {
    enum Kind: String, Codable { case hostel, palace }
    struct Geo: Codable, Hashable { var lat, lon: Double }
    var name: String
    var kind: Kind
    var geo: Geo?
    var rooms: [Int]
    var prices: [String: Double]
    var opened: Date
    var photo: Data
    var site: URL
    var token: UUID
    var extra: JSONValue
    var big: UInt64
    var nothing: String?
    var owners: [Geo?]
  }

  private class Base: Codable { var a = 1 }
  private final class Derived: Base {
    var b = 2
    private enum Keys: CodingKey { case b }
    override init() { super.init() }
    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Keys.self)
      b = try container.decode(Int.self, forKey: .b)
      try super.init(from: container.superDecoder())
    }
    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Keys.self)
      try container.encode(b, forKey: .b)
      try super.encode(to: container.superEncoder())
    }
  }

  private var hotel: Hotel {
    Hotel(
      name: "Šķūnis", kind: .palace, geo: .init(lat: 57, lon: 24.1), rooms: [1, 2, 3],
      prices: ["low": 10, "high": 20.5], opened: Date(timeIntervalSince1970: 1_000_000.5),
      photo: Data([0, 255, 1]), site: URL(filePath: "/x"), token: UUID(), extra: ["x": [1, 2.5, .null, "s"]],
      big: .max, nothing: nil, owners: [nil, .init(lat: 1, lon: 2)])
  }

  @Test("a date that has no text is an error, and isn't stored as null")
  func farDates() throws {
    for seconds in [Double.nan, .infinity, -1e12, 1e12] {
      let date = Date(timeIntervalSince1970: seconds)
      #expect(throws: EncodingError.self) { try DocumentEncoder().encode(["opened": date]) }
      #expect(throws: EncodingError.self) { try DocumentEncoder().encode(date) }
    }
    let last = Date(timeIntervalSince1970: 253_402_300_799)
    try expect(DocumentEncoder().encode([last]), equals: ["9999-12-31T23:59:59.000Z"])
  }

  @Test("a number that is too large for a float is an error")
  func largeFloats() throws {
    let decoder = DocumentDecoder()
    #expect(throws: DecodingError.self) { try decoder.decode([Float].self, from: [.double(1e300)]) }
    try expect(decoder.decode([Float].self, from: [.double(1e38), 1]), equals: [1e38, 1])
  }

  @Test("a type goes in and comes out the same", arguments: someEngines)
  func roundTrip(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let hotel = hotel
      var document = try MutableDocument(id: "h", encoding: hotel)
      expect(document.date(forKey: "opened"), equals: hotel.opened)
      expect(document["photo"], equals: .data([0, 255, 1]))
      expect(!document.contains(key: "nothing"))
      try expect(document.decode(Hotel.self), equals: hotel)
      try database.save(&document)
      let stored = try #require(try database.document("h"))
      let decoded: Hotel = try stored.decode()
      expect(decoded, equals: hotel)
      try expect(stored["geo"].decode(Hotel.Geo.self), equals: hotel.geo)
      try expect(stored["missing"].decode(Hotel.Geo.self) == nil)
      // What came as JSON text has its data in base64.
      let json = String(decoding: try stored.json(), as: UTF8.self)
      try database.save("j", DocumentBody(json: json))
      try expect(database.document("j")?.decode(Hotel.self), equals: hotel)
      try document.encode(Hotel.Geo(lat: 1, lon: 2), forKey: "geo")
      expect(document["geo"], equals: ["lat": 1.0, "lon": 2.0])
    }
  }

  @Test("classes and nested containers")
  func classes() throws {
    let derived = Derived()
    (derived.a, derived.b) = (5, 6)
    let value = try DocumentEncoder().encode(derived)
    expect(value, equals: ["b": 6, "super": ["a": 5]])
    let decoded = try DocumentDecoder().decode(Derived.self, from: value)
    expect(decoded.a == 5 && decoded.b == 6)
  }

  @Test("what doesn't fit says where")
  func errors() throws {
    func path(_ body: () throws -> Void) -> String {
      do {
        try body()
        return "nothing"
      } catch let error as DecodingError {
        switch error {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .dataCorrupted(let context):
          let path = context.codingPath.map(\.stringValue).joined(separator: ".")
          return "\(path): \(context.debugDescription)"
        case .keyNotFound(let key, _): return "no \(key.stringValue)"
        @unknown default: return "?"
        }
      } catch { return "\(error)" }
    }
    let decoder = DocumentDecoder()
    let found = [
      path { _ = try decoder.decode(Hotel.Geo.self, from: ["lat": 1]) },
      path { _ = try decoder.decode([String: [Int]].self, from: ["a": [1, "x"]]) },
      path { _ = try decoder.decode([Int8].self, from: [300]) },
      path { _ = try decoder.decode(Hotel.Geo.self, from: [1]) },
      path { _ = try decoder.decode([Int].self, from: [2.0, 2.5]) },
    ]
    expect(
      found,
      equals: [
        "no lon", #"a.Index 1: expected Int, found the string "x""#,
        "Index 0: expected Int8, found an integer",
        ": expected Dictionary<String, JSONValue>, found an array", "Index 1: expected Int, found a double",
      ])
    #expect(throws: EncodingError.self) { try DocumentEncoder().encode([Double.nan]) }
    #expect(throws: EncodingError.self) { try MutableDocument(encoding: Double.infinity) }
  }

  @Test("values go through other encoders too")
  func foundation() throws {
    let value: JSONValue = [
      "a": [1, 2.5, .null, true, "x", .uint(.max)], "b": ["c": -3], "d": .data([1, 2, 3]),
    ]
    let json = try JSONEncoder().encode(value)
    let read = try JSONDecoder().decode(JSONValue.self, from: json)
    var expected = value
    expected["d"] = "AQID"
    expect(read, equals: expected)
  }

  @Test("decimals are numbers, which queries find", arguments: someEngines)
  func decimals(_ engine: EngineName) throws {
    struct Item: Codable, Equatable {
      var price: Decimal
      var others: [Decimal?]
      var named: [String: Decimal]
    }
    func decimal(_ text: String) throws -> Decimal { try #require(Decimal(string: text)) }
    let item = Item(
      price: try decimal("12.5"), others: [try decimal("9.99"), nil, try decimal("-3")],
      named: ["big": try decimal("18446744073709551615"), "small": try decimal("0.000001")])
    let encoded = try DocumentEncoder().encode(item)
    expect(encoded["price"] == .double(12.5) && encoded["others"][0] == .double(9.99))
    expect(encoded["others"][2] == .int(-3) && encoded["named"]["big"] == .uint(.max))
    let databases = TestDatabases()
    let database = try databases.open(engine)
    try database.save("a", .value(encoded))
    try expect(database.document("a")?.decode(Item.self), equals: item)
    let rows = try database.query("SELECT price FROM _ WHERE price BETWEEN 10 AND 20").run()
    try expect(rows.decode(as: Decimal.self), equals: [item.price])
    // Every decimal that a double shows is read as it is shown.
    for text in ["0.1", "1e16", "123456789.123456", "-0.3", "1e-7"] {
      let double = try #require(Double(text))
      try expect(
        DocumentDecoder().decode(Decimal.self, from: .double(double)), equals: decimal(text), "\(text)")
    }
    for text in ["0.12345678901234567890", "123456789012345678901234567890"] {
      let error = #expect(throws: EncodingError.self) { try DocumentEncoder().encode([decimal(text)]) }
      expect("\(String(describing: error))".contains("store it as a string"))
    }
    #expect(throws: EncodingError.self) { try DocumentEncoder().encode([Decimal.nan]) }
    for value: JSONValue in [.double(1e300), "12.5", true, .null] {
      #expect(throws: DecodingError.self) { try DocumentDecoder().decode(Decimal.self, from: value) }
    }
    // What earlier releases stored.
    let members: JSONValue = [
      "exponent": -1, "isCompact": true, "isNegative": false, "length": 1,
      "mantissa": [125, 0, 0, 0, 0, 0, 0, 0],
    ]
    try expect(DocumentDecoder().decode(Decimal.self, from: members), equals: item.price)
  }
}
