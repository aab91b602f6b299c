// The format's published examples: read in both variants, and written where the encoder's choices are the same.

import Fleece
import TestTools

@Suite struct FormatExamplesTests {
  /// JSON, and its bytes as this encoder writes them.
  static let written: [(String, String)] = [
    ("null", "3000"), ("false", "3400"), ("true", "3800"), ("0", "0000"), ("128", "0080"), ("1234", "04D2"),
    ("-1234", "0B2E"), ("2047", "07FF"), ("-2048", "0800"), (#""""#, "4000"), (#""a""#, "4161"),
    ("[]", "6000"), ("{}", "7000"), ("-2049", "11FF F700 8002"), ("40000", "1940 9C00 8002"),
    ("-129", "0F7F"), ("14752572580778436181", "1F55 6677 8899 AABB CC00 8005"),
    ("0.5", "2400 0000 003F 8003"),
    ("3.141592653589793", "2800 182D 4454 FB21 0940 8005"), ("1e300", "2800 9C75 0088 3CE4 377E 8005"),
    (#""ab""#, "4261 6200 8002"), (#""é""#, "42C3 A900 8002"), (#""日""#, "43E6 97A5 8002"),
    (#""abcdefghijklmn""#, "4E61 6263 6465 6667 6869 6A6B 6C6D 6E00 8008"),
    (#""abcdefghijklmno""#, "4F0F 6162 6364 6566 6768 696A 6B6C 6D6E 6F00 8009"),
    ("[null]", "6001 3000 8002"), ("[[],{}]", "6002 6000 7000 8003"),
    (#"["a","hello"]"#, "4568 656C 6C6F 6002 4161 8005 8003"),
    (#"["a","hello","a","hello"]"#, "4568 656C 6C6F 6004 4161 8005 4161 8007 8005"),
    ("[1.0,-1,true]", "2400 0000 803F 6003 8004 0FFF 3800 8004"),
    ("[\"xxxxxxxxxxxxxxxxxxxx\"]", "4F14 " + String(repeating: "78", count: 20) + "6001 800C 8002"),
    (#"{"o-o":42}"#, "436F 2D6F 7001 8003 002A 8003"),
    (#"{"type":"t","type2":"type"}"#, "4474 7970 6500 4574 7970 6532 7002 8007 4174 8006 800A 8005"),
    (
      #"{"a":{"b":[1,2.5,null]},"c":"a"}"#,
      "2400 0000 2040 6003 0001 8005 3000 7001 4162 8006 7002 4161 8005 4163 4161 8005"
    ),
    (#"[{"x":1},{"x":2}]"#, "7001 4178 0001 7001 4178 0002 6002 8007 8005 8003"),
  ]

  @Test(arguments: written) func writesThePublishedBytes(json: String, bytes: String) throws {
    let encoded = try encode(json: json, fullTable())
    expect(hexText(encoded.fleece), equals: hexText(hex(bytes)))
    try check(encoded.fleece)
    try expect(decode(hex(bytes)), equals: JSONValue(json: json))
  }

  /// Forms that other encoders, or older ones, write.
  static let read: [(String, JSONValue)] = [
    ("5000", .data([])), ("1100 0800 8002", 2048), ("1240 9C00 8002", 40000), ("1244 3322 8002", 0x223344),
    ("134E 61BC 0000 8003", 12_345_678), ("2000 0000 003F 8003", 0.5), ("5301 0203 8002", .data([1, 2, 3])),
    ("6003 0001 0FFF 3800 8004", [1, -1, true]),
    ("7801 4161 0000 1240 9C00 8005", ["a": 40000]), ("7801 4366 6F6F 007B 0000 8005", ["foo": 123]),
    (
      "446E 616D 6500 434A 696D 4361 6765 7002 8003 001E 800A 8008 8005",
      ["name": "Jim", "age": 30]
    ),
    (
      """
      437A 6970 1258 6F01 446E 616D 6500 4341 6E6E 4474 6167 7300 6002 4161 4162 426F 6B00 7004 800E 800C 8005
      3800 800D 800B 8018 8017 8009
      """, ["zip": 94040, "name": "Ann", "tags": ["a", "b"], "ok": true]
    ),
    // Reserved bits set, small numbers in long forms.
    ("33FF", .null), ("35FF", false), ("1001 8001", 1), ("1801 8001", 1),
    ("17FF FFFF FFFF FFFF FFFF 8005", -1),
    // A pointer to a pointer, the second one wide.
    ("4261 6200 8000 0002 8002", "ab"),
  ]

  @Test(arguments: read) func readsOtherForms(bytes: String, value: JSONValue) throws {
    try expect(decode(hex(bytes)), equals: value)
    try check(hex(bytes))
  }

  @Test func readsAndWritesSharedKeys() throws {
    let table = hex("446E 616D 6500 4361 6765 6002 8006 8004 8003")
    let keys = try table.withUnsafeBytes { try SharedKeys(fleece: $0) }
    expect(keys.count == 2 && keys.name(of: 0) == "name" && keys.name(of: 1) == "age")
    expect(keys.encoded(), equals: table)
    let jim = hex("434A 696D 7002 0000 8004 0001 001E 8005")
    try expect(decode(jim, keys), equals: ["name": "Jim", "age": 30])
    try expect(text(of: jim, keys), equals: #"{"age":30,"name":"Jim"}"#)
    try expect(encode(json: #"{"name":"Jim","age":30}"#, SharedKeysBuilder(keys)).fleece, equals: jim)
    try check(jim, keys: 2)

    let names = try SharedKeys(keys: ["name"])
    let mixed = hex("434A 696D 4361 2E62 7002 0000 8006 8005 0001 8005")
    try expect(decode(mixed, names), equals: ["name": "Jim", "a.b": 1])
    try check(mixed, keys: 1)
    let encoded = try encode(json: #"{"name":"Jim","a.b":1}"#, SharedKeysBuilder(names))
    // The name that is first in canonical order is written first; integer keys lead the slots all the same.
    expect(encoded.fleece, equals: hex("4361 2E62 434A 696D 7002 0000 8004 8007 0001 8005"))
  }

  @Test func readsABlobDictionary() throws {
    let digest = "sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk="
    let bytes =
      hex("4540 7479 7065 4462 6C6F 6200 4F21") + Array(digest.utf8)
      + hex("00 4A74 6578 742F 706C 6169 6E00 7004 0000 801A 0001 0000 0002 800C 8025 8023 8009")
    let keys = try SharedKeys(keys: ["digest", "length", "content_type"])
    let blob: JSONValue = [
      "@type": "blob", "digest": .string(digest), "length": 0, "content_type": "text/plain",
    ]
    try expect(decode(bytes, keys), equals: blob)
    try check(bytes, keys: 3)
  }

  @Test func longCollectionsHaveAVarint() throws {
    let numbers = try encode(json: "[" + (0..<2047).map { "\($0)" }.joined(separator: ",") + "]").fleece
    expect(numbers.count, equals: 4100)
    expect(Array(numbers.prefix(8)), equals: hex("67FF 0000 0000 0001"))
    expect(Array(numbers.suffix(6)), equals: hex("07FD 07FE 8801"))
    let many = try encode(.array(Array(repeating: 1, count: 102_000))).fleece
    expect(Array(many.prefix(6)), equals: hex("67FF F18C 0600"))
    try check(many)
    try expect(decode(many), equals: .array(Array(repeating: 1, count: 102_000)))
  }

  @Test func farTargetsTakeWidePointers() throws {
    let long = String(repeating: "x", count: 70_000)
    let array = try encode(.array([.string(long)])).fleece
    expect(Array(array.prefix(5)), equals: hex("4FF0 A204 78"))
    expect(Array(array.suffix(8)), equals: hex("6801 8000 88BB 8003"))
    let root = try encode(.string(long)).fleece
    expect(Array(root.suffix(6)), equals: hex("8000 88BA 8002"))
    let shorter = String(repeating: "x", count: 40_000)
    let wide = try encode(.string(shorter)).fleece
    expect(Array(wide.suffix(6)), equals: hex("8000 4E22 8002"))
    // Older encoders reach it with a 15-bit distance.
    let legacy = Array(wide.dropLast(6)) + hex("CE22")
    for bytes in [root, wide, legacy] { try check(bytes) }
    try expect(decode(wide), equals: .string(shorter))
    try expect(decode(legacy), equals: .string(shorter))
  }

  static let rejected: [(String, String)] = [
    ("", "empty"), ("30", "odd"), ("3000 3000", "root not a pointer"), ("8001", "before the start"),
    ("8000", "distance 0"), ("6001 8001 8002", "item points at its own array"),
    ("6002 0001 8002", "second slot is the root"), ("4A61 6200 8002", "string too long"),
    ("4FFF FFFF FFFF FFFF FFFF FF7F 8006", "varint too long"),
    ("67FF 8080 8080 8080 8004", "varint never ends"), ("6001 1100 8002", "long integer in a narrow slot"),
    ("7001 3000 0001 8003", "key is null"), ("7002 4162 0001 4161 0002 8005", "keys out of order"),
    ("7002 4161 0001 4161 0002 8005", "a key twice"), ("7001 0800 3000 8003", "inheritance"),
    ("7001 0000 0001 8003", "unknown shared key"), ("3C00", "undefined"),
    ("6001 3C00 8002", "undefined item"),
    ("42FF FE00 8002", "not UTF-8"), ("43ED A080 8002", "a surrogate"), ("2000 0000 807F 8003", "infinity"),
    ("2800 0000 0000 0000 F87F 8005", "not a number"), ("6001 2400 8002", "double in a narrow slot"),
    ("6001 4261 8002", "long string in a narrow slot"), ("4FFF FFFF FF1F 8003", "length over 32 bits"),
    ("6001 7001 0001 8003", "collection within a slot"),
  ]

  @Test(arguments: rejected) func rejectsDamagedBytes(bytes: String, why: String) throws {
    #expect(throws: FleeceError.self, "\(why)") { try check(hex(bytes)) }
    touchEverything(hex(bytes), .empty)
  }
}
