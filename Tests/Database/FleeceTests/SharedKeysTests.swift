// Shared keys: numbering, growth, rolling back, limits.

import Fleece
import TestTools

@Suite struct SharedKeysTests {
  @Test func namesAreNumberedInOrderOfFirstUse() throws {
    let keys = SharedKeysBuilder(.empty)
    expect(keys.snapshot() === SharedKeys.empty)
    try expect(encode(json: #"{"name":1,"age":2}"#, keys).sharedKeyCount, equals: 2)
    try expect(encode(json: #"{"name":1,"zip":[{"age":1}]}"#, keys).sharedKeyCount, equals: 3)
    try expect(encode(json: #"{"age":1}"#, keys).sharedKeyCount, equals: 1)
    try expect(encode(json: #"{"a.b":1}"#, keys).sharedKeyCount, equals: 0)
    let table = keys.snapshot()
    // Within a document names are met in canonical order.
    expect((0..<table.count).map { table.name(of: $0) }, equals: ["age", "name", "zip"])
    expect(
      table.number(of: "name") == 1 && table.number(of: "nam") == nil && table.number(of: "names") == nil)
    expect(table.name(of: 3) == nil && table.name(of: -1) == nil)
    expect(keys.snapshot() === table)
    let again = try table.encoded().withUnsafeBytes { try SharedKeys(fleece: $0) }
    expect((0..<3).allSatisfy { again.name(of: $0) == table.name(of: $0) } && again.count == 3)
  }

  @Test func onlyEligibleNamesAreShared() throws {
    let keys = SharedKeysBuilder(.empty)
    for name in ["@type", "a.b", "first name", "größe", "seventeen-bytes--", "a\\u0000", "\\u0000"] {
      try expect(encode(json: "{\"\(name)\":1}", keys).sharedKeyCount, equals: 0)
    }
    expect(keys.count, equals: 0)
    let eligible = ["name", "_id", "content_type", "a-b", "0", "sixteen-bytes---", ""]
    for name in eligible { _ = try encode([name: 1], keys) }
    expect(keys.count, equals: eligible.count)
    // Neither is a prefix of the other's bytes when both are padded with zeros.
    let encoded = try encode(json: #"{"":1,"\u0000":2,"0":3,"0\u0000":4}"#, keys)
    expect(encoded.json, equals: #"{"":1,"\u0000":2,"0":3,"0\u0000":4}"#)
    try expect(text(of: encoded.fleece, keys.snapshot()), equals: encoded.json)
  }

  @Test func theTableIsFullAt2048AndFurtherNamesAreStrings() throws {
    let keys = SharedKeysBuilder(.empty)
    var members = JSONObject()
    for index in 0..<3000 { members["key\(index)"] = JSONValue(index) }
    let encoded = try encode(.object(members), keys)
    expect(keys.count == 2048 && encoded.sharedKeyCount == 2048)
    try check(encoded.fleece, keys: 2048)
    let table = keys.snapshot()
    try expect(decode(encoded.fleece, table), equals: .object(members))
    try expect(text(of: encoded.fleece, table), equals: encoded.json)
    encoded.fleece.withUnsafeBytes { bytes in
      let root = FleeceReader.root(of: bytes)
      for index in 0..<3000 { expect(root?[Key("key\(index)", in: table)]?.int, equals: Int64(index)) }
      expect(root?[Key("key3000", in: table)] == nil)
    }
    let again = try table.encoded().withUnsafeBytes { try SharedKeys(fleece: $0) }
    expect(again.count, equals: 2048)
    expect((0..<2048).allSatisfy { again.name(of: $0) == table.name(of: $0) })
  }

  @Test func rollingBackForgetsWhatWasAdded() throws {
    let base = try SharedKeys(keys: ["one", "two"])
    let keys = SharedKeysBuilder(base)
    _ = try encode(["three": 1, "two": 2], keys)
    let three = keys.snapshot()
    _ = try encode(["four": 1, "five": 2], keys)
    expect(keys.count == 5 && keys.hasAdditions)
    keys.rollBack(to: 3)
    expect(keys.count, equals: 3)
    _ = try encode(["six": 1], keys)
    let six = keys.snapshot()
    expect(six.name(of: 3) == "six" && six.number(of: "four") == nil && six.count == 4)
    expect(three.count == 3 && three.number(of: "six") == nil && base.count == 2)
    keys.rollBack(to: 2)
    expect(!keys.hasAdditions && keys.snapshot() === base)
    _ = try encode(["seven": 1, "eight": 1], keys)
    expect(keys.snapshot().name(of: 2), equals: "eight")
  }

  @Test func badTablesAreRefused() throws {
    #expect(throws: FleeceError.self) { try SharedKeys(keys: ["a", "b", "a"]) }
    #expect(throws: FleeceError.self) { try SharedKeys(keys: ["a.b"]) }
    #expect(throws: FleeceError.self) { try SharedKeys(keys: (0...2048).map { "k\($0)" }) }
    for bytes in ["", "3000", "7000", "6001 0001 8002", "6002 4161 4161 8003", "6001 8001 8002"] {
      #expect(throws: FleeceError.self, "\(bytes)") {
        try hex(bytes).withUnsafeBytes { try SharedKeys(fleece: $0) }
      }
    }
    let none = try hex("6000").withUnsafeBytes { try SharedKeys(fleece: $0) }
    expect(none.count == 0 && none.encoded() == hex("6000"))
  }
}
