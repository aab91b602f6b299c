import Fleece
import Foundation
import StorageConformance
import TestSupport
import Testing

@testable import ReplicationBLIP

@Suite("Deltas of JSON") struct JSONDeltaTests {
  private func value(_ json: String) throws -> JSONValue { try JSONValue(json: json) }

  @Test(
    "a delta has the form that Couchbase Lite sends",
    arguments: [
      // Old, new, delta.
      (#"{"a":1}"#, #"{"a":2}"#, #"{"a":2}"#),
      (#"{"a":1,"b":2}"#, #"{"a":1}"#, #"{"b":[]}"#),
      (#"{"a":1}"#, #"{"a":1,"b":"x"}"#, #"{"b":"x"}"#),
      (#"{"a":1}"#, #"{"a":null}"#, #"{"a":null}"#),
      (#"{"a":1}"#, #"{"a":1,"b":{"c":[1]}}"#, #"{"b":[{"c":[1]}]}"#),
      (#"{"num":1}"#, #"{"num":[1]}"#, #"{"num":[[1]]}"#),
      (#"{"num":1}"#, #"{"num":{"n":1}}"#, #"{"num":[{"n":1}]}"#),
      (#"{"n":{"x":1,"y":2}}"#, #"{"n":{}}"#, #"{"n":{"x":[],"y":[]}}"#),
      (#"{"n":{"y":{"z":[1,2]}}}"#, #"{"n":{"y":{"z":[1,20]}}}"#, #"{"n":{"y":{"z":{"1":20}}}}"#),
      (#"{"t":["a","b"]}"#, #"{"t":["a","b","c"]}"#, #"{"t":{"2-":["c"]}}"#),
      (#"{"t":["a","b","c"]}"#, #"{"t":["b","c"]}"#, #"{"t":{"0":"b","1":"c","2-":[]}}"#),
      (#"{"l":[{"n":1},{"n":2}]}"#, #"{"l":[{"n":1},{"n":3}]}"#, #"{"l":{"1":{"n":3}}}"#),
    ])
  func forms(_ old: String, _ new: String, _ delta: String) throws {
    let made = try #require(JSONDelta.make(from: value(old), to: value(new)))
    try expect(made, equals: value(delta))
    try expect(JSONDelta.apply(made, to: value(old)), equals: value(new))
  }

  @Test("long strings are edited, and never inside a character") func strings() throws {
    let old = String(repeating: "a", count: 300) + "original" + String(repeating: "b", count: 305)
    let new = String(repeating: "a", count: 300) + "CHANGED " + String(repeating: "b", count: 305)
    let delta = try #require(JSONDelta.make(from: .string(old), to: .string(new)))
    expect(delta, equals: ["300=8-8+CHANGED |305=", 0, 2])
    try expect(JSONDelta.apply(delta, to: .string(old)), equals: .string(new))
    let appended = try #require(JSONDelta.make(from: .string(old), to: .string(old + " and more")))
    expect(appended, equals: ["613=9+ and more|", 0, 2])
    // ü is C3 BC and ý is C3 BD: the first byte is equal.
    let text = String(repeating: "x", count: 80)
    let accents = try #require(
      JSONDelta.make(from: .string(text + "ü" + text), to: .string(text + "ý" + text)))
    expect(accents, equals: ["80=2-2+ý|80=", 0, 2])
    try expect(JSONDelta.apply(accents, to: .string(text + "ü" + text)), equals: .string(text + "ý" + text))
  }

  @Test(
    "what isn't a delta of the value is refused",
    arguments: [
      (#"{"a":1}"#, #"[]"#), (#"{"a":1}"#, #"{"a":{"b":1}}"#), (#"{"a":1}"#, #"{"a":["3=",0,2]}"#),
      (#"{"a":"abc"}"#, #"{"a":["4=",0,2]}"#), (#"{"a":"abc"}"#, #"{"a":["2=",0,2]}"#),
      (#"{"a":"abc"}"#, #"{"a":["3=9+x|",0,2]}"#), (#"{"a":"abc"}"#, #"{"a":["3=1+xy",0,2]}"#),
      (#"{"a":"abc"}"#, #"{"a":["99999999999999999999=",0,2]}"#), (#"{"a":"abc"}"#, #"{"a":["3",0,2]}"#),
      (#"{"a":"abc"}"#, #"{"a":["=",0,2]}"#), (#"{"a":"ü"}"#, #"{"a":["1=1-",0,2]}"#),
      (#"{"a":"abc"}"#, #"{"a":["3=",0,3]}"#), (#"{"a":[1,2]}"#, #"{"a":{"2":1}}"#),
      (#"{"a":[1,2]}"#, #"{"a":{"-1":1}}"#), (#"{"a":[1,2]}"#, #"{"a":{"0":[]}}"#),
      (#"{"a":[1,2]}"#, #"{"a":{"3-":[]}}"#), (#"{"a":[1,2]}"#, #"{"a":{"1-":2}}"#),
      (#"{"a":[1,2]}"#, #"{"a":[1,2]}"#), (#"{"a":[1,2]}"#, #"{"a":{"x":1}}"#),
    ])
  func refused(_ old: String, _ delta: String) throws {
    #expect(throws: JSONDelta.Mismatch.self) { try JSONDelta.apply(value(delta), to: value(old)) }
  }

  @Test("random values are made of each other by their deltas") func random() throws {
    var random = SeededGenerator(seed: 20)
    func string() -> String {
      let pieces = ["a", "ü", "𝄞", "|", "=", "longer piece of text ", "\u{0}", "\"", "e\u{301}"]
      return (0..<random.below(30)).map { _ in pieces[random.below(pieces.count)] }.joined()
    }
    func value(_ depth: Int) -> JSONValue {
      switch random.below(depth > 3 ? 6 : 8) {
      case 0: .null
      case 1: .bool(random.below(2) == 0)
      case 2: .int(Int64(random.below(5)))
      case 3: .double(Double(random.below(5)) / 2)
      case 4, 5: .string(string())
      case 6: .array((0..<random.below(5)).map { _ in value(depth + 1) })
      default: object(depth)
      }
    }
    func object(_ depth: Int) -> JSONValue {
      .object(JSONObject((0..<random.below(6)).map { _ in ("k\(random.below(6))", value(depth + 1)) }))
    }
    func mutated(_ old: JSONValue) -> JSONValue {
      switch old {
      case .array(var items) where !items.isEmpty && random.below(3) > 0:
        let index = random.below(items.count)
        switch random.below(3) {
        case 0: items.remove(at: index)
        case 1: items.insert(value(2), at: index)
        default: items[index] = mutated(items[index])
        }
        return .array(items)
      case .object(var members) where !members.isEmpty && random.below(3) > 0:
        let name = members.keys.sorted()[random.below(members.count)]
        if random.below(4) == 0 {
          members[name] = nil
        } else {
          members[name] = mutated(members[name] ?? .null)
        }
        return .object(members)
      case .string(let text) where random.below(2) == 0: return .string(text + string())
      default: return value(2)
      }
    }
    for _ in 0..<20_000 {
      let old = object(0)
      var new = old
      for _ in 0..<1 + random.below(3) { new = mutated(new) }
      guard let delta = JSONDelta.make(from: old, to: new) else {
        expect(old, equals: new)
        continue
      }
      // As it goes over the wire.
      let sent = try JSONValue(json: String(decoding: try delta.jsonText(), as: UTF8.self))
      try expect(JSONDelta.apply(sent, to: old), equals: new, "\(old) → \(new): \(delta)")
    }
  }
}
