// JSON text in: what is refused and where, and what the edges become.

import Fleece
import TestTools

@Suite struct JSONInTests {
  static let refused: [(String, Int)] = [
    ("", 0), ("  ", 2), ("{", 1), ("[1,]", 3), (#"{"a":1,}"#, 7), (#"{"a" 1}"#, 5), ("{1:2}", 1),
    ("[1 2]", 3),
    ("01", 0), ("-", 1), ("1.", 2), ("1e", 2), (".5", 0), ("+1", 0), ("nul", 0), ("truex", 4), ("NaN", 0),
    ("Infinity", 0), (#"{"a":1}x"#, 7), ("[1]]", 3), (#""abc"#, 0), ("\"a\nb\"", 2), (#""\x""#, 1),
    (#""\u12""#, 1), (#""\ud800""#, 1), (#""\udc00""#, 1), (#""\ud800\u0041""#, 1), (#""\ud800\ud800""#, 1),
    (#""\ud800\ue000""#, 1), (#""a\udfff""#, 2), ("\u{FEFF}{}", 0), ("1e400", 0), ("[-1e999]", 1), ("'a'", 0),
    ("[1", 2), ("/**/1", 0), ("{\"a\":tru}", 5), ("\u{0}", 0), ("1\u{0}", 1),
  ]

  @Test(arguments: refused) func saysWhereTextStopsBeingJSON(text: String, offset: Int) throws {
    do {
      _ = try encode(json: text)
      Issue.record("accepted \(text.debugDescription)")
    } catch FleeceError.invalidJSON(_, let found) {
      expect(found, equals: offset)
    }
    #expect(throws: FleeceError.self) { try JSONValue(json: text) }
  }

  @Test(arguments: [
    "22FF22", "22C328 22", "22EDA080 22", "22F4908080 22", "22C0AF 22", "2261E9 22", "7B22FF223A317D",
  ])
  func refusesBadUTF8(text: String) throws {
    do {
      _ = try encode(jsonBytes: hex(text))
      Issue.record("accepted \(text)")
    } catch FleeceError.invalidJSON(let reason, let offset) {
      expect(reason, equals: "invalid UTF-8")
      expect(offset != nil)
    }
  }

  @Test("threads may parse while the process exits") func parsesAtExit() throws {
    let child = try startChild(.fleece, "fleece", "exit")
    try expect(child.wait(), equals: .exited(0))
    expect(child.outputText, equals: "parsed\nparsed\n", "\(child.errorText)")
  }

  @Test func everySurrogatePairIsJudgedRight() throws {
    for high in stride(from: 0xD7FF, through: 0xE001, by: 1) {
      for low in [0x0041, 0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000] {
        let text = String(format: "\"\\u%04x\\u%04x\"", high, low)
        let isHigh = (0xD800...0xDBFF).contains(high)
        let isLow = (0xDC00...0xDFFF).contains(low)
        let loneHigh = (0xD800...0xDFFF).contains(high) && !(isHigh && isLow)
        let loneLow = (0xD800...0xDFFF).contains(low) && !(isHigh && isLow)
        if loneHigh || loneLow {
          var isRefused = false
          do { _ = try encode(json: text) } catch is FleeceError { isRefused = true }
          expect(isRefused, "\(text)")
        } else {
          let bytes = try encode(json: text).fleece
          try check(bytes)
        }
      }
    }
  }

  @Test func integersKeepTheirValueAndLargerOnesBecomeDoubles() throws {
    let cases: [(String, JSONValue)] = [
      ("9223372036854775807", .int(.max)), ("-9223372036854775808", .int(.min)),
      ("9223372036854775808", .uint(1 << 63)), ("18446744073709551615", .uint(.max)),
      ("18446744073709551616", 18446744073709551616.0), ("-9223372036854775809", -9223372036854775809.0),
      ("123456789012345678901234567890", 1.2345678901234568e29), ("-0", 0), ("-0.0", .double(-0.0)),
      ("1E2", 100.0), ("1.0", 1.0), ("1", 1), ("1e-400", 0.0), ("-1e-400", .double(-0.0)),
      (
        #"[18446744073709551616,"18446744073709551616",1.5e3]"#,
        [18446744073709551616.0, "18446744073709551616", 1500.0]
      ),
      (#"{"\"99999999999999999999":99999999999999999999}"#, [#""99999999999999999999"#: 1e20]),
    ]
    for (text, value) in cases {
      let keys = SharedKeysBuilder(.empty)
      let encoded = try encode(json: text, keys)
      try expect(decode(encoded.fleece, keys.snapshot()), equals: value, "\(text)")
      try expect(JSONValue(json: text), equals: value, "\(text)")
      try expect(encode(value, keys).json, equals: encoded.json, "\(text)")
    }
    try expect(encode(json: "18446744073709551616").json, equals: "1.8446744073709552e+19")
    try expect(encode(json: "[1,1.0,-0.0,-0,0.1]").json, equals: "[1,1.0,-0.0,0,0.1]")
  }

  @Test func ofDuplicateNamesTheLastWins() throws {
    try expect(encode(json: #"{"b":0,"a":1,"a":2,"c":3,"a":4}"#).json, equals: #"{"a":4,"b":0,"c":3}"#)
    try expect(encode(json: #"{"a":1,"\u0061":2}"#).json, equals: #"{"a":2}"#)
    try expect(JSONValue(json: #"{"a":1,"a":2}"#), equals: ["a": 2])
    var members = (0..<100).map { #""k\#($0)":\#($0)"# }
    members += (0..<100).map { #""k\#($0)":"\#($0)""# }
    let encoded = try encode(json: "{" + members.joined(separator: ",") + "}")
    try expect(
      JSONValue(json: encoded.json),
      equals: .object(
        JSONObject(Dictionary(uniqueKeysWithValues: (0..<100).map { ("k\($0)", .string("\($0)")) }))))
    // A discarded member's names don't become shared keys.
    let keys = SharedKeysBuilder(.empty)
    try expect(encode(json: #"{"a":{"lost":1},"a":2}"#, keys).sharedKeyCount, equals: 1)
    expect(keys.count, equals: 1)
  }

  @Test func namesAreDifferentWhenTheirBytesAre() throws {
    let text = "{\"e\u{301}\":1,\"\u{E9}\":2,\"a\":1,\"a\\u0000\":2,\"\":3,\"\\u0000\":4}"
    let keys = SharedKeysBuilder(.empty)
    let encoded = try encode(json: text, keys)
    let value = try decode(encoded.fleece, keys.snapshot())
    expect(value.count, equals: 6)
    expect(value["e\u{301}"] == 1 && value["\u{E9}"] == 2 && value["a\0"] == 2 && value[""] == 3)
    try expect(encode(value, keys).json, equals: encoded.json)
    expect(encoded.json.hasPrefix(#"{"":3,"\u0000":4,"a":1,"a\u0000":2,"#))
  }

  @Test func nestingHasALimitEverywhere() throws {
    func nested(_ open: String, _ close: String, _ depth: Int) -> String {
      String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)
    }
    let limit = FleeceLimits.depth
    for (open, close) in [("[", "]"), (#"{"a":"#, "}")] {
      let keys = SharedKeysBuilder(.empty)
      let deepest = try encode(json: nested(open, close, limit), keys)
      try check(deepest.fleece, keys: keys.count)
      expect(deepest.json, equals: nested(open, close, limit))
      try expect(text(of: deepest.fleece, keys.snapshot()), equals: deepest.json)
      _ = try JSONValue(json: deepest.json)
      for depth in [limit + 1, limit + 2, 1023, 1024, 1025, 5000, 1_000_000] {
        #expect(throws: FleeceError.tooDeep(limit: limit)) { try encode(json: nested(open, close, depth)) }
        #expect(throws: FleeceError.tooDeep(limit: limit)) { try JSONValue(json: nested(open, close, depth)) }
      }
    }
    var value: JSONValue = 1
    for _ in 0..<limit { value = [value] }
    #expect(throws: Never.self) { try encode(value) }
    #expect(throws: FleeceError.tooDeep(limit: limit)) { try encode(["a": value]) }
  }

  @Test func deepBytesAreRefusedByValidationAndOutput() throws {
    // [1], and arrays around it, each pointing 2 or 4 bytes back.
    func nested(_ depth: Int) -> [UInt8] {
      var bytes = hex("6001 0001")
      let level = hex("6001 8003")
      for _ in 1..<depth { bytes += level }
      return bytes + hex("8002")
    }
    let limit = FleeceLimits.depth
    try check(nested(limit))
    #expect(throws: Never.self) { try decode(nested(limit)) }
    for depth in [limit + 1, 100_000] {
      #expect(throws: FleeceError.tooDeep(limit: limit)) { try check(nested(depth)) }
      #expect(throws: FleeceError.tooDeep(limit: limit)) { try decode(nested(depth)) }
      #expect(throws: FleeceError.tooDeep(limit: limit)) { try text(of: nested(depth)) }
    }
  }

  @Test func aFailedEncodingLeavesNothingBehind() throws {
    let keys = SharedKeysBuilder(try SharedKeys(keys: ["old"]))
    let encoder = BodyEncoder()
    try encoder.encode(["old": 1], keys: keys)
    var deep: JSONValue = ["deep-name": 1]
    for _ in 0..<FleeceLimits.depth { deep = ["level": deep] }
    #expect(throws: FleeceError.self) { try encoder.encode(deep, keys: keys) }
    expect(keys.count == 1 && !keys.hasAdditions && keys.snapshot() === keys.base)
    expect(encoder.fleece.isEmpty && encoder.canonicalJSON.isEmpty && encoder.sharedKeyCount == 0)
    #expect(throws: FleeceError.notFinite) { try encoder.encode(["new": .double(.nan)], keys: keys) }
    #expect(throws: FleeceError.notFinite) { try encoder.encode([.double(-.infinity)], keys: keys) }
    expect(keys.count, equals: 1)
    try encoder.encode(["old": [1, 2]], keys: keys)
    expect(String(decoding: encoder.canonicalJSON, as: UTF8.self), equals: #"{"old":[1,2]}"#)
  }

  @Test func anyValueMayBeAtTheTop() throws {
    for text in ["null", "true", "1", "1.5", #""x""#, #""a longer string than fits""#, "[]", "{}", "[1]"] {
      let encoded = try encode(json: text)
      expect(encoded.json, equals: text)
      try expect(decode(encoded.fleece), equals: JSONValue(json: text))
    }
    let encoder = BodyEncoder()
    try encoder.encode([1], keys: SharedKeysBuilder(.empty))
    expect(!encoder.isObject)
    try encoder.encode([:], keys: SharedKeysBuilder(.empty))
    expect(encoder.isObject)
  }
}
