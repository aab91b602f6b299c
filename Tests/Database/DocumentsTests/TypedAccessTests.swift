import TestSupport

@Suite("Typed accessors") struct TypedAccessTests {
  private let databases = TestDatabases()

  private static let body: JSONValue = [
    "string": "text", "int": 7, "double": 2.75, "negative": -2.75, "true": true, "false": false,
    "null": .null,
    "zero": 0, "date": "2018-05-12T09:30:00.250Z", "array": [1, "two", [3], ["four": 4]],
    "dictionary": ["lat": 51.5, "name": "Rīga"], "huge": 1e300, "big": .uint(.max),
  ]

  /// The defaults of the 2.1 guide, on whatever holds the properties.
  private func check(_ properties: some KeyedProperties) {
    expect(properties.string(forKey: "string"), equals: "text")
    expect(properties.string(forKey: "int") == nil)
    expect(properties.string(forKey: "missing") == nil)
    let kinds = ["int", "double", "negative", "true", "false", "null", "zero", "string", "missing", "array"]
    expect(kinds.map { properties.int(forKey: $0) }, equals: [7, 2, -2, 1, 0, 0, 0, 0, 0, 0])
    expect(properties.int(forKey: "huge"), equals: .max)
    // An unsigned integer is read exactly or refused.
    expect(properties.int(forKey: "big"), equals: 0)
    let unsigned = ["big", "int", "double", "negative", "true", "false", "huge", "string", "missing"].map {
      properties.uint(forKey: $0)
    }
    expect(unsigned, equals: [.max, 7, 2, 0, 1, 0, .max, 0, 0])
    expect(properties.value(forKey: "big")?.uint, equals: .max)
    expect(properties.value(forKey: "big")?.int == nil)
    expect(properties.value(forKey: "negative")?.uint == nil)
    let doubles = ["int", "double", "true", "false", "string", "missing"].map {
      properties.double(forKey: $0)
    }
    expect(doubles, equals: [7, 2.75, 1, 0, 0, 0])
    let booleans = ["int", "double", "zero", "true", "false", "null", "string", "missing"]
      .map { properties.boolean(forKey: $0) }
    expect(booleans, equals: [true, true, false, true, false, false, false, false])
    let date = properties.date(forKey: "date")
    expect(date, equals: Date(timeIntervalSince1970: 1_526_117_400.25))
    let noDates = ["string", "int", "missing"].map { properties.date(forKey: $0) }
    expect(noDates, equals: [nil, nil, nil])
    let kept = ["null", "int", "missing"].map { properties.contains(key: $0) }
    expect(kept, equals: [true, true, false])
    expect(properties.array(forKey: "dictionary") == nil)
    expect(properties.dictionary(forKey: "array") == nil)
    expect(properties.blob(forKey: "dictionary") == nil)
    expect(Set(properties.keys), equals: Set(Self.body.object?.keys ?? []))
  }

  private func check(_ items: some IndexedProperties) {
    let ints = (-1...4).map { items.int(at: $0) }
    expect(ints, equals: [0, 1, 0, 0, 0, 0])
    let unsigned = (-1...2).map { items.uint(at: $0) }
    expect(unsigned, equals: [0, 1, 0, 0])
    expect(items.string(at: 1), equals: "two")
    expect(items.string(at: 9) == nil)
    expect(items.double(at: 0), equals: 1)
    expect(items.boolean(at: 0))
    expect(items.array(at: 2) != nil)
    expect(items.dictionary(at: 3) != nil)
    expect(items.date(at: 1) == nil)
  }

  @Test("convert, and have the documented defaults", arguments: someEngines)
  func defaults(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var mutable = MutableDocument(id: "a", Self.body)
    check(mutable)
    try check(#require(mutable.array(forKey: "array")))
    try database.save(&mutable)
    let document = try #require(try database.document("a"))
    check(document)
    try check(#require(document.array(forKey: "array")))
    let dictionary = try #require(document.dictionary(forKey: "dictionary"))
    expect(dictionary.double(forKey: "lat"), equals: 51.5)
    expect(dictionary["name"].string, equals: "Rīga")
    expect(dictionary.map(\.key).sorted(), equals: ["lat", "name"])
    try expect(dictionary.value(), equals: ["lat": 51.5, "name": "Rīga"])
    let array = try #require(document.array(forKey: "array"))
    expect(array.map(\.intValue), equals: [1, 0, 0, 0])
    try expect(array.values(), equals: [1, "two", [3], ["four": 4]])
    expect(array[3].dictionary(forKey: "four") == nil)
    expect(array[3]["four"].int, equals: 4)
  }

  @Test("nested arrays and dictionaries are changed in place", arguments: someEngines)
  func nested(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var hotel = MutableDocument(id: "hotel", ["type": "hotel"])
    hotel["geo"]["lat"] = 51.5
    hotel["geo"].set(-0.1, forKey: "lon")
    hotel["likes"].append("Alice")
    hotel["likes"].append("Carol")
    hotel["likes"].insert("Bob", at: 1)
    hotel["likes"].insert("nobody", at: 9)
    hotel["reviews"].append(["stars": 4] as JSONValue)
    hotel["reviews"][0]["stars"] = 5
    hotel.set(Date(timeIntervalSince1970: 0), forKey: "built")
    hotel.set([1, 2, 3], forKey: "rooms")
    hotel.set(.null, forKey: "owner")
    expect(hotel["rooms"].remove(at: 1), equals: 2)
    expect(hotel["rooms"].remove(at: 5) == nil)
    expect(hotel.remove("type"), equals: "hotel")
    expect(hotel.remove("type") == nil)
    let expected: JSONValue = [
      "geo": ["lat": 51.5, "lon": -0.1], "likes": ["Alice", "Bob", "Carol"], "reviews": [["stars": 5]],
      "built": "1970-01-01T00:00:00.000Z", "rooms": [1, 3], "owner": .null,
    ]
    expect(hotel.body, equals: expected)
    try database.save(&hotel)
    let document = try #require(try database.document("hotel"))
    try expect(document.value(), equals: expected)
    // A copy of what was read changes by itself.
    var copy = try document.toMutable()
    copy["geo"]["lat"] = 0
    expect(document["geo"]["lat"].double, equals: 51.5)
    expect(hotel["geo"]["lat"], equals: 51.5)
    expect(copy != hotel)
  }

  @Test("nil removes a property, and null is written as null", arguments: someEngines)
  func removing(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      var hotel = MutableDocument(
        id: "hotel",
        [
          "name": "Apple Droid", "fax": "1", "phone": "2", "geo": ["lat": 51.5, "lon": 1], "site": .null,
          "tags": ["a", .null],
        ])
      expect(hotel["site"] == nil && hotel["missing"] == nil && hotel["fax"] != nil)
      hotel["fax"] = nil
      hotel.set(nil, forKey: "phone")
      hotel["geo"]["lon"] = nil
      hotel["geo"]["alt"] = .null
      let missing: String? = nil
      hotel.set(missing, forKey: "name")
      hotel["name2"] = missing?.jsonValue
      hotel["geo"].set(missing, forKey: "lat")
      // The removal of what isn't there adds nothing.
      hotel["nothing"]["nested"] = nil
      hotel["nothing"]["nested"].remove("deep")
      hotel["tags"]["x"]["y"] = nil
      hotel["tags"][1].remove("z")
      let some: String? = "Ķīpsala"
      hotel.set(some, forKey: "street")
      hotel["city"] = some?.jsonValue
      hotel.set(["a": 1, "b": "x"], forKey: "mixed")
      hotel.set([nil, 1] as [Int?], forKey: "rooms")
      hotel["on purpose"] = .null
      let expected: JSONValue = [
        "geo": ["alt": .null], "site": .null, "tags": ["a", .null], "street": "Ķīpsala", "city": "Ķīpsala",
        "mixed": ["a": 1, "b": "x"], "rooms": [.null, 1], "on purpose": .null,
      ]
      expect(hotel.body, equals: expected)
      try database.save(&hotel)
      let stored = try #require(try database.document("hotel"))
      try expect(stored.value(), equals: expected)
      expect(stored.contains(key: "on purpose") && !stored.contains(key: "fax"))
      var object: JSONObject = ["a": 1, "b": .null]
      object["a"] = nil
      expect(object, equals: ["b": .null])
    }
  }

  @Test("integers beyond 64 bits aren't cut")
  func wideIntegers() {
    expect(JSONValue(UInt64.max), equals: .uint(.max))
    expect(JSONValue(Int64.min), equals: .int(.min))
    expect(JSONValue(Int128(1) << 70), equals: .double(0x1p70))
    expect(JSONValue(-(Int128(1) << 70)), equals: .double(-0x1p70))
    expect(JSONValue(exactly: Int128(1) << 70), equals: Optional.none)
    expect(JSONValue(exactly: UInt128(UInt64.max)), equals: .uint(.max))
  }

  @Test("documents and their values print as canonical JSON", arguments: someEngines)
  func printing(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      var hotel = MutableDocument(id: "h", ["b": [1, .null, 2.5], "a": ["z": "é\n", "y": true]])
      let json = #"{"a":{"y":true,"z":"é\n"},"b":[1,null,2.5]}"#
      expect("\(hotel)", equals: json)
      expect(String(reflecting: hotel), equals: "h (not saved) \(json)")
      try database.save(&hotel)
      let stored = try #require(try database.document("h"))
      expect("\(stored)", equals: json)
      expect(String(reflecting: stored), equals: "h \(stored.revisionID) \(json)")
      expect("\(stored["b"])", equals: "[1,null,2.5]")
      expect("\(stored["a"]["z"])", equals: #""é\n""#)
      expect("\(stored["none"])", equals: "(missing)")
      expect(stored.array(forKey: "b").map { "\($0)" }, equals: "[1,null,2.5]")
      expect(stored.dictionary(forKey: "a").map { "\($0)" }, equals: #"{"y":true,"z":"é\n"}"#)
      expect("\(hotel["b"][2])", equals: "2.5")
      expect(hotel["a"].object.map { "\($0)" }, equals: #"{"y":true,"z":"é\n"}"#)
      expect("\(JSONValue.double(.nan))".hasPrefix("(no JSON: "))
    }
  }

  @Test("documents are equal when their IDs and contents are", arguments: someEngines)
  func equality(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["n": 1, "m": ["x"]])
    let first = try #require(try database.document("a"))
    try database.save("a", ["n": 2])
    let second = try #require(try database.document("a"))
    try database.save("a", ["m": ["x"], "n": 1])
    let third = try #require(try database.document("a"))
    try database.save("b", ["n": 1, "m": ["x"]])
    let other = try #require(try database.document("b"))
    expect(first == third && first.revisionID != third.revisionID)
    expect(first != second && first != other)
    expect(Set([first, second, third]).count, equals: 2)
    let (mutable, changed) = (try first.toMutable(), try second.toMutable())
    try expect(mutable, equals: third.toMutable())
    expect(mutable != changed)
  }

  @Test("generated IDs are UUIDs; reserved names and IDs are refused by name", arguments: someEngines)
  func identifiers(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    var document = MutableDocument()
    expect(UUID(uuidString: document.id) != nil)
    expect(MutableDocument().id != document.id)
    for name in ["_id", "_rev", "_deleted", "_anything"] {
      document.body = [:]
      document[name] = 1
      do {
        try database.save(&document)
        Issue.record("\(name) was saved")
      } catch let error as DocumentError {
        expect(error.code, equals: .reservedProperty)
        expect(error.message.contains("\"\(name)\""))
        expect(error.documentID, equals: document.id)
      }
    }
    // Further in they are the user's own.
    document.body = ["nested": ["_id": 1]]
    try database.save(&document)
    try expect(documentCode { try database.save("_local", [:]) }, equals: .invalidDocumentID)
  }

  @Test("dates are read as ISO-8601 has them, and written with milliseconds in UTC")
  func dates() {
    let read: [(String, Double?)] = [
      ("1970-01-01T00:00:00Z", 0), ("1970-01-01", 0), ("1970-01", 0), ("2000-02-29T12:00:00Z", 951_825_600),
      ("2018-05-12T09:30:00+02:00", 1_526_110_200), ("2018-05-12 09:30", 1_526_117_400),
      ("2018-05-12T09:30:00.123456-0330", 1_526_130_000.123456), ("1969-12-31T23:59:59.999z", -0.001),
      ("0001-01-01T00:00:00Z", -62_135_596_800), ("9999-12-31T23:59:59Z", 253_402_300_799),
      ("2001-02-29", nil), ("2018-13-01", nil), ("2018-05-12T", nil), ("2018-05-12T09", nil),
      ("2018-05-12T25:00Z", nil), ("2018-05-12T09:30:00.Z", nil), ("2018-05-12T09:30:00Zx", nil), ("", nil),
      ("12 May 2018", nil), ("2018-5-12", nil), ("2018-05-12T09:30:00+2", nil),
    ]
    for (text, expected) in read {
      let found = JSONValue.string(text).date?.timeIntervalSince1970
      expect((found == nil), equals: (expected == nil), "\(text)")
      expect(abs((found ?? 0) - (expected ?? 0)) < 0.000_001, "\(text)")
    }
    withSeed { random in
      let formatter = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
      for round in 0..<2_000 {
        let milliseconds = Int64.random(in: -62_135_596_800_000..<253_402_300_800_000, using: &random)
        let date = Date(timeIntervalSince1970: Double(milliseconds) / 1000)
        let text = JSONValue(date).string ?? ""
        // Foundation turns to the Julian calendar before 1582; it takes 25 ms a text.
        if round < 20, milliseconds > -12_000_000_000_000 {
          let parsed = (try? formatter.parse(text)) ?? .distantPast
          expect(abs(parsed.timeIntervalSince(date)) < 0.000_1, "\(text)")
        }
        expect(JSONValue.string(text).date, equals: date, "\(text)")
      }
    }
    expect(JSONValue(Date(timeIntervalSince1970: 1e15)).isNull)
  }

  @Test("nil is what is missing or null, in documents, nested, and in rows", arguments: someEngines)
  func nilProperties(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.save("a", ["name": "x", "none": .null, "inner": ["none": .null, "list": [.null, 1]]])
    let document = try #require(try database.document("a"))
    let mutable = try document.toMutable()
    expect(document["fax"] == nil && document["none"] == nil && document["name"] != nil)
    expect(mutable["fax"] == nil && mutable["none"] == nil && mutable["name"] != nil)
    expect(
      document["inner"]["none"] == nil && document["inner"]["fax"]["deep"] == nil && document["inner"] != nil)
    expect(document["inner"]["list"][0] == nil && document["inner"]["list"][1] != nil)
    expect(document.contains(key: "none") && !document.contains(key: "fax"))
    let row = try #require(try database.query("SELECT name, none, fax FROM _").run().first)
    expect(row["name"] != nil && row["none"] == nil && row["fax"] == nil)
  }
}
