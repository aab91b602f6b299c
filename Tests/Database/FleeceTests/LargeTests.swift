// Sizes: long strings, many items, wide objects, and an encoder that serves small documents after large ones.

import Fleece
import TestTools

@Suite struct LargeTests {
  @Test func twentyMegabyteStrings() throws {
    let long = String(repeating: "0123456789abcde\"", count: 20 << 16)
    let keys = SharedKeysBuilder(.empty)
    let value: JSONValue = ["a": .string(long), "b": 1, "c": [.string(long), "short", "short"]]
    let encoded = try encode(value, keys)
    try check(encoded.fleece, keys: keys.count)
    try expect(decode(encoded.fleece, keys.snapshot()), equals: value)
    try expect(encode(json: encoded.json).json.utf8.count, equals: encoded.json.utf8.count)
    try expect(text(of: encoded.fleece, keys.snapshot()), equals: encoded.json)
  }

  @Test(arguments: [2046, 2047, 2048, 70_000]) func collectionsOfManyItems(count: Int) throws {
    var members = JSONObject()
    for index in 0..<count { members["not.shared.\(index)"] = .array([JSONValue(index), "repeated"]) }
    let value: JSONValue = [.object(members), .array((0..<count).map { .string("item \($0 % 100)") })]
    let encoded = try encode(value)
    try check(encoded.fleece)
    try expect(decode(encoded.fleece), equals: value)
    try expect(text(of: encoded.fleece), equals: encoded.json)
    try expect(encode(json: encoded.json).fleece, equals: encoded.fleece)
  }

  /// A collection turns wide when a target is out of reach; every distance around the edge is tried.
  @Test func distancesAroundTheNarrowReach() throws {
    for padding in 32_700..<32_800 {
      let value: JSONValue = [
        "first string of the document", .string(String(repeating: "p", count: padding)), 5, "first",
      ]
      let encoded = try encode(value)
      try check(encoded.fleece)
      try expect(decode(encoded.fleece), equals: value)
    }
    // Repeated strings that are far apart.
    var items: [JSONValue] = []
    for index in 0..<5000 {
      items.append("repeated")
      items.append(.string("filling number \(index)"))
    }
    try expect(decode(encode(.array(items)).fleece), equals: .array(items))
  }

  @Test func smallDocumentsAfterALargeOne() throws {
    let encoder = BodyEncoder()
    let keys = SharedKeysBuilder(.empty)
    let large = "[" + Array(repeating: #"{"name":"value"}"#, count: 400_000).joined(separator: ",") + "]"
    for _ in 0..<2 {
      try Array(large.utf8).withUnsafeBytes { try encoder.encode(json: $0, keys: keys) }
      expect(encoder.canonicalJSON.count, equals: large.utf8.count)
      for text in [#"{"name":"value"}"#, "{}", #"["a"]"#] {
        try Array(text.utf8).withUnsafeBytes { try encoder.encode(json: $0, keys: keys) }
        expect(String(decoding: encoder.canonicalJSON, as: UTF8.self), equals: text)
      }
    }
  }
}
