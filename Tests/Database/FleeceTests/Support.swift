// What the Fleece tests share: a seeded generator, random values, and the encoder in one call.

import Fleece
import TestTools

func hexText(_ bytes: [UInt8]) -> String {
  bytes.map { String(format: "%02X", $0) }.joined()
}

struct Encoded: Equatable {
  var fleece: [UInt8]
  var json: String
  var sharedKeyCount: Int
}

func encode(json: String, _ keys: SharedKeysBuilder = SharedKeysBuilder(.empty)) throws -> Encoded {
  try encode(jsonBytes: Array(json.utf8), keys)
}

func encode(jsonBytes: [UInt8], _ keys: SharedKeysBuilder = SharedKeysBuilder(.empty)) throws -> Encoded {
  let encoder = BodyEncoder()
  try jsonBytes.withUnsafeBytes { try encoder.encode(json: $0, keys: keys) }
  return result(of: encoder)
}

func encode(_ value: JSONValue, _ keys: SharedKeysBuilder = SharedKeysBuilder(.empty)) throws -> Encoded {
  let encoder = BodyEncoder()
  try encoder.encode(value, keys: keys)
  return result(of: encoder)
}

func result(of encoder: BodyEncoder) -> Encoded {
  Encoded(
    fleece: Array(encoder.fleece), json: String(decoding: encoder.canonicalJSON, as: UTF8.self),
    sharedKeyCount: encoder.sharedKeyCount)
}

func decode(_ bytes: [UInt8], _ keys: SharedKeys = .empty) throws -> JSONValue {
  try bytes.withUnsafeBytes {
    let root = try #require(FleeceReader.root(of: $0))
    return try root.jsonValue(sharedKeys: keys)
  }
}

func text(of bytes: [UInt8], _ keys: SharedKeys = .empty, canonical: Bool = true) throws -> String {
  try bytes.withUnsafeBytes {
    let root = try #require(FleeceReader.root(of: $0))
    return try root.json(sharedKeys: keys, canonical: canonical)
  }
}

func check(_ bytes: [UInt8], keys: Int = 0) throws {
  try bytes.withUnsafeBytes { try validate($0, sharedKeyCount: keys) }
}

/// A builder whose table is full with names that no document uses, so that names stay strings.
func fullTable() throws -> SharedKeysBuilder {
  SharedKeysBuilder(try SharedKeys(keys: (0..<2048).map { "unused-\($0)" }))
}

/// Values of all kinds, with a liking for the edges of each.
func randomValue(_ random: inout SeededGenerator, depth: Int = 0, withData: Bool = true) -> JSONValue {
  switch Int.random(in: 0..<(depth < 5 ? 12 : 9), using: &random) {
  case 0: return .null
  case 1: return .bool(Bool.random(using: &random))
  case 2: return .int(Int64.random(in: -3000...3000, using: &random))
  case 3:
    let bits = UInt64.random(in: 0...UInt64.max, using: &random) >> UInt64.random(in: 0...63, using: &random)
    return Bool.random(using: &random) ? JSONValue(bits) : JSONValue(Int64(bitPattern: bits))
  case 4:
    let double = Double(bitPattern: UInt64.random(in: 0...UInt64.max, using: &random))
    return .double(double.isFinite ? double : -0.0)
  case 5: return .double(Double(Int.random(in: -100_000...100_000, using: &random)) / 8)
  case 6: return .string(randomString(&random, upTo: 20))
  case 7: return .string(randomString(&random, upTo: Bool.random(using: &random) ? 300 : 2))
  case 8:
    guard withData else { return .double(0.1) }
    return .data(
      (0..<Int.random(in: 0...40, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) })
  case 9:
    return .array(
      (0..<Int.random(in: 0...6, using: &random)).map { _ in
        randomValue(&random, depth: depth + 1, withData: withData)
      })
  default:
    var members = JSONObject()
    for _ in 0..<Int.random(in: 0...(depth == 0 ? 50 : 8), using: &random) {
      members[randomName(&random)] = randomValue(&random, depth: depth + 1, withData: withData)
    }
    return .object(members)
  }
}

func randomString(_ random: inout SeededGenerator, upTo length: Int) -> String {
  let alphabets: [[Unicode.Scalar]] = [
    Array("abcdefghijklmnopqrstuvwxyz ".unicodeScalars),
    ["\"", "\\", "/", "\n", "\r", "\t", "\u{8}", "\u{C}", "\0", "\u{1F}", "\u{7F}", "a", "b"],
    ["é", "\u{301}", "e", "ß", "日", "本", "😀", "\u{FFFF}", "\u{D7FF}", "\u{E000}", "\u{10FFFF}"],
  ]
  var string = String.UnicodeScalarView()
  let alphabet = alphabets[Int.random(in: 0...2, using: &random)]
  for _ in 0..<Int.random(in: 0...length, using: &random) {
    string.append(alphabet[Int.random(in: 0..<alphabet.count, using: &random)])
  }
  return String(string)
}

func randomName(_ random: inout SeededGenerator) -> String {
  switch Int.random(in: 0..<4, using: &random) {
  case 0: return randomString(&random, upTo: 24)
  case 1: return "a-name-of-over-sixteen-bytes-\(Int.random(in: 0...20, using: &random))"
  default: return "name\(Int.random(in: 0...40, using: &random))"
  }
}

/// The same value as JSON text with members, spaces and number forms of the generator's choosing.
func shuffledText(_ value: JSONValue, _ random: inout SeededGenerator) throws -> String {
  let space = [" ", "", "\n", "\t", ""][Int.random(in: 0..<5, using: &random)]
  switch value {
  case .array(let items):
    let texts = try items.map { try shuffledText($0, &random) }
    return "[" + space + texts.joined(separator: "," + space) + "]"
  case .object(let members):
    let texts = try members.shuffled(using: &random).map {
      try JSONValue.string($0.key).canonicalJSON() + space + ":" + (try shuffledText($0.value, &random))
    }
    return "{" + texts.joined(separator: space + ",") + space + "}"
  default: return try value.canonicalJSON()
  }
}

/// Where the real data sets are, or nil: set TOUCHSTONE_DATA to run the tests that read them.
let dataFolder = environmentVariable("TOUCHSTONE_DATA").map { URL(fileURLWithPath: $0) }
