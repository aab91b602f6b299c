// JSON text out: the canonical form's escapes, numbers and order.

import Bytes
import Fleece
import TestTools

@Suite struct JSONOutTests {
  @Test func escapesAreTheCanonicalOnes() throws {
    let all = String(String.UnicodeScalarView((0..<0x80).compactMap(Unicode.Scalar.init)))
    var expected = "\""
    for scalar in all.unicodeScalars {
      switch scalar {
      case "\"": expected += "\\\""
      case "\\": expected += "\\\\"
      case "\n": expected += "\\n"
      case "\r": expected += "\\r"
      case "\t": expected += "\\t"
      case "\0"..<" ", "\u{7F}": expected += String(format: "\\u%04x", scalar.value)
      default: expected.unicodeScalars.append(scalar)
      }
    }
    expected += "\""
    try expect(encode(.string(all)).json, equals: expected)
    try expect(text(of: encode(.string(all)).fleece), equals: expected)
    try expect(encode(json: #""a\/b\u00e9\ud83d\ude00""#).json, equals: "\"a/bé😀\"")
  }

  /// The block-wise scan must see an escape at every place of a block, in the last block, and none after the end.
  @Test func escapesAreFoundAtEveryPosition() throws {
    for length in 0...50 {
      for position in 0..<length {
        for special in ["\"", "\\", "\u{1}", "\u{7F}", "\u{80}", "\u{1F}", " "] {
          let string =
            String(repeating: "a", count: position) + special
            + String(repeating: "b", count: length - position - 1)
          let foundation = try #require(
            String(data: JSONEncoder().encode([string]), encoding: .utf8)
          ).replacingOccurrences(of: "\u{7F}", with: "\\u007f")
          let encoded = try encode([.string(string), "\n"])
          expect(encoded.json, equals: foundation.dropLast() + #","\n"]"#)
          try expect(text(of: encoded.fleece), equals: encoded.json)
        }
      }
    }
  }

  @Test func doublesAreTheShortestThatReadBack() throws {
    var random = SeededGenerator(seed: 1)
    var doubles: [Double] = [
      0, -0.0, 1, -1, 0.1, 1e15, 1e16, 1e17, 9007199254740992, 18014398509481984, 18014398509481988, 1e-4,
      9.999e-5, 1e-5, .leastNonzeroMagnitude, .greatestFiniteMagnitude, .leastNormalMagnitude, 123456789.125,
      1e21, 1e22,
      1e23,
    ]
    for _ in 0..<50_000 {
      doubles.append(Double(bitPattern: random.next()))
      doubles.append(Double(Int64(bitPattern: random.next()) >> Int64(random.next() % 60)) / 1000)
      doubles.append(Double(random.next() >> (random.next() % 64)))
    }
    for double in doubles where double.isFinite {
      let json = try JSONValue.double(double).canonicalJSON()
      // Swift's own description is the reference: the same digits in the same form.
      expect(json, equals: double.description)
      expect(Double(json)?.bitPattern, equals: double.bitPattern)
    }
  }

  @Test func integersAreDecimal() throws {
    var random = SeededGenerator(seed: 2)
    for _ in 0..<20_000 {
      let bits = random.next() >> (random.next() % 64)
      try expect(JSONValue(bits).canonicalJSON(), equals: "\(bits)")
      try expect(JSONValue(Int64(bitPattern: bits)).canonicalJSON(), equals: "\(Int64(bitPattern: bits))")
    }
    var power: UInt64 = 1
    for _ in 0..<20 {
      for value in [power &- 1, power, power &+ 1] {
        try expect(JSONValue(value).canonicalJSON(), equals: "\(value)")
      }
      power = power &* 10
    }
  }

  @Test func dataAreBase64() throws {
    for count in 0..<20 {
      let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ 200) }
      let expected = "\"\(Data(bytes).base64EncodedString())\""
      let encoded = try encode(.data(bytes))
      expect(encoded.json, equals: expected)
      try expect(text(of: encoded.fleece), equals: expected)
      try expect(decode(encoded.fleece), equals: .data(bytes))
    }
  }

  @Test func outputIsBoundedWhateverTheBytesSay() throws {
    // Arrays of two pointers to the array before: 2^100 values in 600 bytes.
    var doubling = hex("6002 0001 0001")
    for _ in 0..<100 { doubling += hex("6002 8004 8005") }
    doubling += hex("8003")
    try check(doubling)
    #expect(throws: FleeceError.self) { try text(of: doubling) }
    #expect(throws: FleeceError.self) { try decode(doubling) }
    // One long string, pointed to a thousand times.
    var repeated = hex("4FF8 07") + Array(repeating: 0x61, count: 1016) + [0] + hex("63E8")
    for index in 0..<1000 {
      let units = 510 + 1 + index
      repeated += [0x80 | UInt8(units >> 8), UInt8(units & 0xFF)]
    }
    repeated += hex("83E9")
    try check(repeated)
    #expect(throws: FleeceError.self) { try text(of: repeated) }
  }

  @Test func nonCanonicalOutputKeepsTheBodysOrder() throws {
    let keys = SharedKeysBuilder(try SharedKeys(keys: ["z", "a"]))
    let encoded = try encode(json: #"{"a":1,"z":2,"b.c":3}"#, keys)
    try expect(text(of: encoded.fleece, keys.snapshot(), canonical: false), equals: #"{"z":2,"a":1,"b.c":3}"#)
    try expect(text(of: encoded.fleece, keys.snapshot()), equals: encoded.json)
  }

  @Test func bothOrdersHoldTheSameMembers() throws {
    // Names of each length in the table of shared keys, longer ones, and some that need escapes.
    let shared = (0...16).map { String("abcdefghijklmnop".prefix($0)) }
    let names =
      shared + (17...40).map { String(repeating: "n", count: $0) } + ["q\"", "é", "b\\", "\u{1}", "a.b"]
    var object = JSONObject()
    for (index, name) in names.enumerated() {
      object[name] = .object(JSONObject([(name, .int(Int64(index))), ("k", .string(name))]))
    }
    let keys = SharedKeysBuilder(try SharedKeys(keys: shared + ["k"]))
    let encoded = try encode(json: try JSONValue.object(object).canonicalJSON(), keys)
    let inOrder = try text(of: encoded.fleece, keys.snapshot(), canonical: false)
    try expect(JSONValue(json: inOrder), equals: .object(object))
    try expect(text(of: encoded.fleece, keys.snapshot()), equals: encoded.json)
    expect(inOrder.utf8.count, equals: encoded.json.utf8.count)
  }

  @Test func namesThatBeginAlikeHaveTheOrderOfTheirBytes() throws {
    var names: Set<String> = []
    for count in 0...18 {
      for end in ["", "\0", "\0\0", "\0b", "B", "b", "é", "\u{7F}"] {
        names.insert(String(repeating: "a", count: count) + end)
      }
    }
    let shared = names.sorted().filter { $0.utf8.count <= 16 && $0.allSatisfy { $0 == "a" || $0 == "b" } }
    for names in [Array(names), Array(names).filter { $0.utf8.count < 5 }] {
      let object = JSONObject(names.map { ($0, .string($0)) })
      // Half of those that can be shared are.
      let keys = SharedKeysBuilder(
        try SharedKeys(keys: shared.enumerated().filter { $0.offset % 2 == 0 }.map(\.element)))
      let encoded = try encode(json: try JSONValue.object(object).canonicalJSON(), keys)
      let written = try text(of: encoded.fleece, keys.snapshot())
      let sorted = names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }
      let members = try sorted.map { name in
        let name = try JSONValue.string(name).canonicalJSON()
        return "\(name):\(name)"
      }
      expect(written, equals: "{\(members.joined(separator: ","))}")
    }
  }

  @Test func nothingIsAppendedAfterAnError() throws {
    let keys = SharedKeysBuilder(.empty)
    let encoded = try encode(json: #"{"a":[1,2,{"b":1}]}"#, keys)
    let short = try SharedKeys(keys: ["a"])
    try encoded.fleece.withUnsafeBytes { bytes in
      let root = try #require(FleeceReader.root(of: bytes))
      for canonical in [true, false] {
        var output = ByteBuffer()
        output.append(UInt8(ascii: "x"))
        #expect(throws: FleeceError.self) {
          try root.writeJSON(sharedKeys: short, canonical: canonical, into: &output)
        }
        expect(output.count, equals: 1)
      }
    }
  }

  @Test func unknownSharedKeysAreNamed() throws {
    let keys = SharedKeysBuilder(.empty)
    let encoded = try encode(json: #"{"a":{"b":1}}"#, keys)
    let error = FleeceError.unknownSharedKey(number: 1, count: 1)
    let short = try SharedKeys(keys: ["a"])
    #expect(throws: error) { try text(of: encoded.fleece, short) }
    #expect(throws: error) { try decode(encoded.fleece, short) }
    #expect(throws: error) { try check(encoded.fleece, keys: 1) }
  }
}
