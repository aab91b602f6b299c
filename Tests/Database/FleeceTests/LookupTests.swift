// Properties and paths looked up in place, checked against a dictionary.

import Fleece
import TestTools

@Suite struct LookupTests {
  @Test(arguments: [0, 1, 2, 3, 7, 20, 100, 2046, 2047, 2048, 5000], [false, true])
  func everyPropertyIsFound(count: Int, wide: Bool) throws {
    let names = (0..<count).map { $0 % 3 == 0 ? "not.shared.\($0)" : "k\($0)" }
    var members = JSONObject()
    for (index, name) in names.enumerated() { members[name] = JSONValue(index) }
    // A long string makes the dictionary wide.
    if wide { members["k-long"] = .string(String(repeating: "x", count: 40_000)) }
    let keys = SharedKeysBuilder(.empty)
    let encoded = try encode(.object(members), keys)
    let table = keys.snapshot()
    encoded.fleece.withUnsafeBytes { bytes in
      guard let root = FleeceReader.root(of: bytes) else {
        Issue.record("no root")
        return
      }
      expect(root.count, equals: members.count)
      for (index, name) in names.enumerated() {
        expect(root[Key(name, in: table)]?.int, equals: Int64(index))
        expect(root.value(of: name, sharedKeys: table)?.int, equals: Int64(index))
      }
      for name in ["", "k", "k-1", "k1.", "not.shared.1", "not", "zzz", "\u{10FFFF}", "missing-shared"] {
        expect(root[Key(name, in: table)] == nil)
      }
      expect(Set(root.entries.compactMap { $0.name(in: table) }), equals: Set(members.keys))
    }
  }

  /// A step that remembers where the last object had its name finds what any other lookup finds.
  @Test func aStepFindsItsNameInObjectsOfAllShapes() throws {
    var random = SeededGenerator(seed: testSeed)
    let keys = SharedKeysBuilder(.empty)
    let names = (0..<12).map { "k\($0)" } + ["not shared"]
    var bodies: [Encoded] = []
    for number in 0..<400 {
      var members = JSONObject()
      // Most bodies have the shape of the one before.
      let shape = UInt64(number / 5) &* 0x9E37_79B9
      for (index, name) in names.enumerated() {
        let isOfShape = shape >> UInt64(index) & 1 == 1
        guard isOfShape || Int.random(in: 0..<9, using: &random) == 0 else { continue }
        members[name] = .int(Int64(number * 100 + index))
      }
      if number % 7 == 0 { members["wide"] = .string(String(repeating: "x", count: 40_000)) }
      bodies.append(try encode(.object(members), keys))
    }
    let table = keys.snapshot()
    for name in names {
      Array(name.utf8).withUnsafeBufferPointer { text in
        guard let start = text.baseAddress else { return }
        let plain = PathMove(name: start, count: text.count, in: table)
        var first = plain
        var second = plain
        for body in bodies {
          body.fleece.withUnsafeBytes { bytes in
            guard let root = FleeceReader.root(of: bytes) else {
              Issue.record("no root")
              return
            }
            let wanted = root.value(at: plain)?.int
            expect(root.value(at: &first)?.int, equals: wanted)
            expect(root.value(at: &second, sharedKeyCount: body.sharedKeyCount)?.int, equals: wanted)
          }
        }
      }
    }
  }

  @Test func aNameThatStandsAsAStringIsFoundThoughTheTableHasIt() throws {
    let bytes = try encode(json: #"{"name":"Jim","age":30}"#, fullTable()).fleece
    let table = try SharedKeys(keys: ["age", "name"])
    bytes.withUnsafeBytes {
      expect(FleeceReader.root(of: $0)?[Key("name", in: table)]?.string, equals: "Jim")
    }
  }

  @Test func undefinedReadsAsAbsent() throws {
    let bytes = hex("7002 4161 3C00 4162 0001 8005")
    bytes.withUnsafeBytes {
      let root = FleeceReader.root(of: $0)
      expect(root?.value(of: "a", sharedKeys: .empty) == nil)
      expect(root?.value(of: "b", sharedKeys: .empty)?.int, equals: 1)
      expect(root.map { Array($0.entries).count }, equals: 1)
    }
    try expect(text(of: bytes), equals: #"{"b":1}"#)
  }

  @Test func pathsLeadToNestedValues() throws {
    let keys = SharedKeysBuilder(.empty)
    let json =
      #"{"geo":{"lat":51.5,"a.b":{"[x]":7}},"reviews":[{"author":"Ann"},{"author":"Bob"}],"m":[[1,2],[3]]}"#
    let bytes = try encode(json: json, keys).fleece
    let table = keys.snapshot()
    try bytes.withUnsafeBytes {
      let root = try #require(FleeceReader.root(of: $0))
      func find(_ path: String) throws -> UnsafeValue? { root[try PropertyPath(path, in: table)] }
      try expect(find("geo.lat")?.double, equals: 51.5)
      try expect(find(#"geo.a\.b.\[x\]"#)?.int, equals: 7)
      try expect(find("reviews[0].author")?.string, equals: "Ann")
      try expect(find("reviews[-1].author")?.string, equals: "Bob")
      try expect(find("m[0][1]")?.int, equals: 2)
      try expect(find("")?.type, equals: .dict)
      for missing in [
        "geo.lon", "reviews[2]", "reviews[-3]", "geo[0]", "reviews.author", "geo.lat.x", "m[1][1]",
      ] {
        try expect(find(missing) == nil, "\(missing)")
      }
    }
    for bad in [".a", "a.", "a..b", "a[", "a[x]", "a[]", "a]", "a[1", "a[1]b", #"a\"#, "[1]x"] {
      #expect(throws: FleeceError.self, "\(bad)") { try PropertyPath(bad, in: table) }
    }
  }

  @Test func valuesAnswerForTheirKindOnly() throws {
    let keys = SharedKeysBuilder(.empty)
    let value: JSONValue = [.null, true, 7, -7, .uint(.max), 2.5, "s", .data([1]), [1], ["a": 1]]
    let bytes = try encode(value, keys).fleece
    try bytes.withUnsafeBytes {
      let items = Array(try #require(FleeceReader.root(of: $0)).items)
      expect(
        items.map(\.type), equals: [.null, .bool, .int, .int, .int, .double, .string, .data, .array, .dict])
      expect(items.map(\.int), equals: [nil, nil, 7, -7, nil, nil, nil, nil, nil, nil])
      expect(items.map(\.uint), equals: [nil, nil, 7, nil, .max, nil, nil, nil, nil, nil])
      expect(items.map(\.double), equals: [nil, nil, 7, -7, 0x1p64, 2.5, nil, nil, nil, nil])
      expect(items.map(\.bool), equals: [nil, true] + Array(repeating: nil, count: 8))
      expect(items.map(\.string), equals: Array(repeating: nil, count: 6) + ["s", nil, nil, nil])
      expect(items.map(\.count), equals: [0, 0, 0, 0, 0, 0, 0, 0, 1, 1])
    }
  }

  @Test func valuesInMemoryAreEditedInPlace() throws {
    var hotel: JSONValue = ["type": "hotel"]
    hotel["geo"]["lat"] = 51.5
    hotel["reviews"] = []
    hotel["reviews"][0]["author"] = "Ann"
    hotel["reviews"][1] = "second"
    hotel["reviews"][9] = "nowhere"
    expect(hotel, equals: ["type": "hotel", "geo": ["lat": 51.5], "reviews": [["author": "Ann"], "second"]])
    expect(hotel["geo"]["lat"].double == 51.5 && hotel["none"]["deeper"][3].isNull)
    expect(hotel.remove("geo"), equals: ["lat": 51.5])
    expect(hotel.remove("geo") == nil)
    expect(hotel.count, equals: 2)
    expect(JSONValue.int(1) != 1.0 && JSONValue.uint(5) == 5 && JSONValue.string("\u{E9}") != "e\u{301}")
  }
}
