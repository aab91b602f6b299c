// The text of bodies, compared with that of a writer that does the simplest thing.

import Bytes
import Fleece
import TestTools

/// Canonical JSON, byte by byte, of a value in memory.
private func naiveText(_ value: JSONValue) -> String {
  switch value {
  case .null: return "null"
  case .bool(let bool): return bool ? "true" : "false"
  case .int(let integer): return "\(integer)"
  case .uint(let integer): return "\(integer)"
  case .double(let double): return double.description
  case .string(let string): return naiveText(string)
  case .data(let bytes): return "\"\(Data(bytes).base64EncodedString())\""
  case .array(let items): return "[\(items.map(naiveText).joined(separator: ","))]"
  case .object(let members):
    let sorted = members.map { ($0.key, $0.value) }
      .sorted { $0.0.utf8.lexicographicallyPrecedes($1.0.utf8) }
    return "{\(sorted.map { "\(naiveText($0.0)):\(naiveText($0.1))" }.joined(separator: ","))}"
  default: preconditionFailure("a random value has no such part")
  }
}

private func naiveText(_ string: String) -> String {
  var text = "\""
  for scalar in string.unicodeScalars {
    switch scalar {
    case "\"": text += "\\\""
    case "\\": text += "\\\\"
    case "\n": text += "\\n"
    case "\r": text += "\\r"
    case "\t": text += "\\t"
    case "\0"..<" ", "\u{7F}":
      text += "\\u00" + (scalar.value < 16 ? "0" : "") + String(scalar.value, radix: 16)
    default: text.unicodeScalars.append(scalar)
    }
  }
  return text + "\""
}

@Suite struct NaiveJSONTests {
  /// The same value with no shared names, with all, and with some in another order than that of their bytes.
  private func bodies(of value: JSONValue, _ random: inout SeededGenerator) throws -> [(Encoded, SharedKeys)]
  {
    let some = (0...40).filter { _ in Bool.random(using: &random) }.shuffled(using: &random).map {
      "name\($0)"
    }
    return try [fullTable(), SharedKeysBuilder(.empty), SharedKeysBuilder(SharedKeys(keys: some))].map {
      keys in
      let encoded = try encode(value, keys)
      return (encoded, keys.snapshot())
    }
  }

  @Test func randomValuesHaveTheNaiveText() throws {
    var random = SeededGenerator(seed: 49)
    for _ in 0..<3000 {
      let value = randomValue(&random)
      let naive = naiveText(value)
      for (encoded, keys) in try bodies(of: value, &random) {
        try expect(text(of: encoded.fleece, keys), equals: naive)
        let inOrder = try text(of: encoded.fleece, keys, canonical: false)
        expect(inOrder.utf8.count, equals: naive.utf8.count)
        try expect(naiveText(JSONValue(json: inOrder)), equals: naive, "in the order of the body")
      }
    }
  }

  @Test func aTextIsAppendedToWhateverIsThere() throws {
    var random = SeededGenerator(seed: 50)
    for _ in 0..<500 {
      let value = randomValue(&random)
      let naive = Array(naiveText(value).utf8)
      for (encoded, keys) in try bodies(of: value, &random) {
        let before = [UInt8](repeating: 0x78, count: Int.random(in: 0...300, using: &random))
        var buffer = ByteBuffer(capacity: 64)
        before.withUnsafeBytes { buffer.append($0) }
        try encoded.fleece.withUnsafeBytes { bytes in
          try #require(FleeceReader.root(of: bytes)).writeJSON(sharedKeys: keys, into: &buffer)
        }
        expect(Array(buffer.bytes), equals: before + naive)
      }
    }
  }

  /// Objects with more members than are sorted by insertion, and with names that are stored as strings too.
  @Test func largeObjectsHaveTheNaiveText() throws {
    var random = SeededGenerator(seed: 51)
    for count in [31, 32, 33, 64, 300, 2047, 2048, 2100] {
      let names = (0..<count).map { "\(UInt8.random(in: 0...255, using: &random))-\($0)" }
      let value = JSONValue.object(JSONObject(names.map { ($0, .string($0)) }))
      let shared = Array(names.shuffled(using: &random).prefix(2048))
      for keys in [SharedKeysBuilder(try SharedKeys(keys: shared)), SharedKeysBuilder(.empty)] {
        let encoded = try encode(value, keys)
        try expect(text(of: encoded.fleece, keys.snapshot()), equals: naiveText(value))
      }
    }
  }

  @Test func stringsOfAllLengthsAndEscapesHaveTheNaiveText() throws {
    var random = SeededGenerator(seed: 52)
    for length in [0, 1, 14, 15, 16, 17, 127, 128, 129, 2000, 5000] {
      for escapes in [0, 1, 2, 10, length] {
        var bytes = [UInt8](repeating: 0x61, count: length)
        for _ in 0..<(length == 0 ? 0 : escapes) {
          bytes[Int.random(in: 0..<length, using: &random)] = [0x22, 0x5C, 0x0A, 0x01, 0x7F].randomElement(
            using: &random)!
        }
        let value = JSONValue.array([.string(String(decoding: bytes, as: UTF8.self)), .int(1)])
        try expect(text(of: encode(value).fleece), equals: naiveText(value))
      }
    }
  }

  /// What can still be read of a damaged body is written as it is read.
  @Test func damagedBodiesHaveTheTextOfWhatIsRead() throws {
    var random = SeededGenerator(seed: 53)
    var readable = 0
    for _ in 0..<4000 {
      let value = randomValue(&random, depth: 1)
      for (encoded, keys) in try bodies(of: value, &random) {
        var bytes = encoded.fleece
        for _ in 0..<Int.random(in: 1...3, using: &random) {
          bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
        }
        guard bytes.withUnsafeBytes({ FleeceReader.root(of: $0) != nil }), let read = try? decode(bytes, keys)
        else { continue }
        readable += 1
        try expect(text(of: bytes, keys), equals: naiveText(read))
      }
    }
    expect(readable > 3000, "many damaged bodies can be read")
  }
}
