import Bytes
import Fleece
import TestSupport
import Testing

@testable import Views

/// The orders that docs/view-keys.md promises, as tables.
@Suite("Order of view keys: tables") struct KeysOrderTests {
  private func encoded(_ json: String, _ collation: ViewCollation) throws -> [UInt8] {
    try ViewKeyEncoder(collation).bytes(json)
  }

  /// That each key is above the one before it.
  private func expectAscending(_ keys: [String], _ collations: [ViewCollation]) throws {
    for collation in collations {
      let bytes = try keys.map { try encoded($0, collation) }
      for index in bytes.indices.dropFirst() {
        let isAscending = bytes[index - 1].lexicographicallyPrecedes(bytes[index])
        expect(isAscending, "\(keys[index - 1]) < \(keys[index]) in \(collation)")
      }
    }
  }

  @Test("types have their order")
  func types() throws {
    let others = [
      "null", "false", "true", "-1", "0", "2.5", #""""#, #""a""#, "[]", "[null]", "{}", #"{"a":1}"#,
    ]
    try expectAscending(others, [.unicode, .root, .ascii])
    try expectAscending(
      ["-1", "0", "2.5", "false", "null", "true", "{}", #"{"a":1}"#, "[]", "[null]", #""""#, #""a""#], [.raw])
  }

  /// The ASCII characters that the guide lists, in its order.
  private static let guideOrder =
    "\t\n\r `^_-,;:!?.'\"()[]{}@*/\\&#%+<=>|~$0123456789aAbBcCdDeEfFgGhHiIjJkKlLmMnNoOpPqQrRsStTuUvVwWxXyYzZ"

  private func json(_ text: String) -> String { JSONValue.array([.string(text)]).jsonForTests }

  @Test("ASCII characters have the guide's order")
  func ascii() throws {
    expect(Self.guideOrder.utf8.count, equals: 98)
    let keys = Self.guideOrder.unicodeScalars.map { json(String($0)) }
    try expectAscending(keys, [.unicode])
    // And between letters, where the first difference decides.
    let letters = Self.guideOrder.unicodeScalars.filter { !$0.properties.isAlphabetic }
    try expectAscending(letters.map { json("a\($0)z") } + [json("aaa"), json("ab"), json("aB")], [.unicode])
    // In the root collation two of them are elsewhere.
    let root = Self.guideOrder.filter { $0 != "`" && $0 != "^" }
    try expectAscending(root.unicodeScalars.map { json(String($0)) }, [.root])
    try expectAscending([json("%"), json("`"), json("^"), json("+")], [.root])
  }

  @Test("control characters that aren't listed are ignored")
  func controls() throws {
    for code in Array(0...8) + Array(14...31) + [127] as [UInt8] {
      let control = String(UnicodeScalar(code))
      for collation in [ViewCollation.unicode, .root] {
        try expect(
          encoded(json("a\(control)b"), collation), equals: encoded(json("ab"), collation), "\(code)")
      }
    }
  }

  @Test("the sequences of the guide's tests")
  func sequences() throws {
    try expectAscending(
      [
        "null", "false", "true", "0", "2.5", "10", #"" ""#, #""_""#, #""~""#, #""a""#, #""A""#, #""b""#,
        #""ba""#,
        #""bb""#, #"["a"]"#, #"["b"]"#, #"["b","c"]"#, #"["b","c","a"]"#, #"["b","d"]"#, #"["b","d","e"]"#,
      ], [.unicode, .root])
    try expectAscending(
      [
        "0", "2.5", "10", "false", "null", "true", #"["a"]"#, #"["b"]"#, #"["b","c"]"#, #"["b","c","a"]"#,
        #"["b","d"]"#, #"["b","d","e"]"#, #"" ""#, #""A""#, #""B""#, #""_""#, #""a""#, #""aa""#, #""b""#,
        #""ba""#, #""bb""#, #""~""#,
      ], [.raw])
  }

  @Test(
    "pairs have the documented order",
    arguments: [
      (#""a""#, #""A""#, "<>>"), (#""A""#, #""aa""#, "<<<"), (#""B""#, #""a""#, "><<"),
      (#""~""#, #""1""#, "<>>"),
      (#""$""#, #""0""#, "<<<"), (#""_x""#, #""-x""#, "<>>"), ("10", "9", ">>>"), ("10", #""9""#, "<<<"),
      ("null", "0", "<<>"), ("[]", "[null]", "<<<"), (#"["x"]"#, #"["x",{}]"#, "<<<"),
      (#"["x",{}]"#, #"["x","zzz"]"#, ">><"), ("{}", #"{"a":1}"#, "<<<"), (#"{"a":1}"#, "[9]", ">><"),
    ])
  func pairs(_ left: String, _ right: String, _ orders: String) throws {
    for (collation, order) in zip([ViewCollation.unicode, .ascii, .raw], orders) {
      let (left, right) = (try encoded(left, collation), try encoded(right, collation))
      expect(left.lexicographicallyPrecedes(right), equals: (order == "<"), "\(collation)")
      expect(left != right)
    }
  }

  /// The answer of CouchDB 3.5 to a query of keys of every kind.
  private static let couchDB = [
    "null", "false", "true", "-10000000000", "-1", "0", "0.1", "1", "1.5", "10000000000", #""""#, #"" ""#,
    #""_""#, #""-""#, #""~""#, #""😀""#, #""1""#, #""10""#, #""2""#, #""a""#, #""A""#, #""ä""#, #""Ä""#,
    #""a b""#, #""aa""#, #""ab""#, #""b""#, #""B""#, #""e""#, #""é""#, #""f""#, #""ss""#, #""ß""#, #""z""#,
    #""中""#, "[]", "[1]", "[2]", "[10]", #"["a"]"#, #"["a",null]"#, #"["a",1]"#, #"["b"]"#, #"["b","a"]"#,
    "[[]]", "[{}]", "{}", #"{"a":1}"#, #"{"a":1,"b":1}"#, #"{"a":2}"#, #"{"b":1}"#, #"{"b":1,"a":1}"#,
  ]

  @Test("CouchDB's order is the root collation's")
  func couchDBKeys() throws {
    expect(Self.couchDB.count, equals: 52)
    let root = try ViewKeyEncoder(.root)
    for index in Self.couchDB.indices.dropFirst() {
      let (left, right) = (Self.couchDB[index - 1], Self.couchDB[index])
      let isAscending = try root.bytes(left).lexicographicallyPrecedes(root.bytes(right))
      expect(isAscending, "\(left) < \(right)")
    }
  }

  @Test("numbers are in exact order, and equal ones are equal keys")
  func numbers() throws {
    let ascending = [
      "-1e308", "-18446744073709551616", "-9223372036854777856", "-9223372036854775808",
      "-9223372036854775807",
      "-9007199254740993", "-9007199254740992", "-1.5", "-1", "-0.5", "-5e-324", "0", "5e-324", "0.1", "0.5",
      "1",
      "1.0000000000000002", "1.5", "2", "9007199254740991", "9007199254740992", "9007199254740993",
      "9223372036854775806", "9223372036854775807", "9223372036854775808", "9223372036854775809",
      "18446744073709551615", "18446744073709551616", "1e308",
    ]
    try expectAscending(ascending, ViewCollation.allCases)
    for equal in [
      ["0", "-0", "0.0", "-0.0", "0e5"], ["1", "1.0", "10e-1", "0.1e1"],
      ["9007199254740992", "9007199254740992.0"], ["9223372036854775808", "9223372036854775808.0"],
      // Integers beyond 64 bits are doubles.
      ["100", "1e2", "1E+2"], ["-9223372036854775808", "-9223372036854775809"],
      ["18446744073709551616", "18446744073709551616.0", "18446744073709551617"],
    ] {
      for collation in ViewCollation.allCases {
        try expect(Set(try equal.map { try encoded($0, collation) }).count, equals: 1, "\(equal)")
      }
    }
  }

  @Test("strings that are canonically equivalent are equal keys, and others aren't")
  func equivalence() throws {
    for collation in [ViewCollation.unicode, .root] {
      try expect(encoded(#""\u00e9""#, collation), equals: encoded(#""e\u0301""#, collation))
      try expect(encoded(#""\uac00""#, collation), equals: encoded(#""\u1100\u1161""#, collation))
      // Marks in another order, which only normalization finds. CouchDB opens its collator without.
      let isEqual = try encoded(#""a\u0323\u0307""#, collation) == encoded(#""a\u0307\u0323""#, collation)
      expect(isEqual, equals: (collation == .unicode))
      try expect(encoded(#""e""#, collation) != encoded(#""\u00e9""#, collation))
    }
    try expect(encoded(#""\u00e9""#, .ascii) != encoded(#""e\u0301""#, .ascii))
  }

  @Test("the root collation has CouchDB's order of marks, and a version of its own")
  func marks() throws {
    // As `ucol_open("")` of ICU orders them.
    let texts = [
      #""\u0300\u0327""#, #""\u0327""#, #""\u0327\u0300""#, #""a\u0300\u0327""#, #""a\u0327\u0300""#,
    ]
    let keys = try texts.map { try encoded($0, .root) }
    expect(Set(keys).count, equals: 5)
    expect(keys, equals: keys.sorted { $0.lexicographicallyPrecedes($1) })
    try expect(ViewKeyEncoder(.root).collatorVersion.hasSuffix(" root 2"))
  }

  @Test("U+FFFF is above all characters in every collation")
  func greatest() throws {
    for text in [
      "", "foo", "FOO", "fool", "foo😀", "foo中", "foo\u{10FFFF}", "foo\u{FFFE}", "foo\u{E000}", "foozzz",
    ] {
      for collation in ViewCollation.allCases {
        let isBelow = try encoded(json(text), collation).lexicographicallyPrecedes(
          encoded(json("foo\u{FFFF}"), collation))
        expect(isBelow, "\(text) in \(collation)")
        try expect(
          encoded(json("fop"), collation).lexicographicallyPrecedes(
            encoded(json("foo\u{FFFF}"), collation)), equals: false)
      }
    }
  }

  @Test("damaged text is U+FFFD")
  func damaged() throws {
    for collation in ViewCollation.allCases {
      let encoder = try ViewKeyEncoder(collation)
      let wanted = try encoder.bytes(#""a\ufffdb""#)
      try expect(encoder.bytes(#""a\ud800b""#), equals: wanted)
      try expect(encoder.bytes(#""a\udc00b""#), equals: wanted)
      try expect(encoder.bytes(json: Array(#""a"#.utf8) + [0xFF] + Array(#"b""#.utf8)), equals: wanted)
      try expect(encoder.bytes(json: Array(#""a"#.utf8) + [0xE2, 0x82] + Array(#"b""#.utf8)), equals: wanted)
      // A high surrogate before another escape.
      try expect(encoder.bytes(#""a\ud800\u0062""#), equals: wanted)
      try expect(encoder.bytes(#""\ud800\ud83d\ude00""#), equals: encoder.bytes(#""\ufffd😀""#))
    }
  }

  @Test(
    "a prefix match has the documented greatest key",
    arguments: [
      (#""foo""#, 1, #""foo\#u{FFFF}""#), ("[1]", 1, "[1,{}]"), (#"[1,"x"]"#, 2, #"[1,"x\#u{FFFF}"]"#),
      (#"[[1,"x"]]"#, 3, #"[[1,"x\#u{FFFF}"]]"#), ("5", 1, "5"), ("[]", 2, "[]"), (#""foo""#, 0, #""foo""#),
      ("[1]", 0, "[1]"), ("[]", 1, "[{}]"), ("null", 3, "null"), ("[5]", 2, "[5]"),
      (#"{"a":1}"#, 1, #"{"a":1}"#),
      (#"[["x"]]"#, 2, #"[["x",{}]]"#),
    ])
  func prefixMatch(_ key: String, _ level: Int, _ wanted: String) throws {
    try expect(
      ViewKeyEncoder.prefixMatch(try JSONValue(json: key), level: level),
      equals: (try JSONValue(json: wanted)))
  }

  @Test(
    "values have the documented bytes",
    arguments: [
      ("null", .root, "10"), ("null", .raw, "41"), ("false", .ascii, "18"), ("true", .ascii, "19"),
      ("false", .raw, "40"), ("true", .raw, "42"), ("-0.5", .unicode, "2efec01fffffffffffff"),
      ("1", .raw, "3102"),
      (#""a""#, .ascii, "506100"), (#""a\u0000\u0001\uffff""#, .raw, "4c6101010102ff00"),
      ("[1, []]", .ascii, "603102600000"), ("[1, []]", .raw, "4a31024a0000"),
      (#"{"a": null}"#, .ascii, "685061001000"), (#"{"a": null}"#, .raw, "484c61004100"),
    ] as [(String, ViewCollation, String)])
  func bytes(_ json: String, _ collation: ViewCollation, _ wanted: String) throws {
    try expect(hexadecimal(try encoded(json, collation)), equals: wanted)
  }

  @Test(
    "groups have the documented bytes",
    arguments: [("[1,2,3]", "6031023104"), ("[1,2]", "6031023104"), ("[1]", "60310200"), ("1", "3102")])
  func groups(_ json: String, _ wanted: String) throws {
    let key = try encoded(json, .ascii)
    let prefix = ViewKeyEncoder.groupPrefix(of: key.span.bytes, level: 2)
    expect(hexadecimal(key[..<prefix]), equals: wanted)
  }

  @Test("a prefix match finds what begins so")
  func prefixMatches() throws {
    for collation in ViewCollation.allCases {
      let encoder = try ViewKeyEncoder(collation)
      func finds(_ key: JSONValue, _ level: Int, _ other: String) throws -> Bool {
        let (lower, upper) = (
          try encoder.bytes(key), try encoder.bytes(ViewKeyEncoder.prefixMatch(key, level: level))
        )
        let other = try encoder.bytes(other)
        return !other.lexicographicallyPrecedes(lower) && !upper.lexicographicallyPrecedes(other)
      }
      try expect(finds("foo", 1, #""foo""#) && finds("foo", 1, #""foolish""#) && finds("foo", 1, #""foo😀""#))
      try expect(!finds("foo", 1, #""fong""#))
      try expect(finds([1, "x"], 2, #"[1,"xtc"]"#) && !finds([1, "x"], 2, #"[1,"y"]"#))
      // An object is above all strings in these collations only.
      if collation != .raw { try expect(finds([1], 1, #"[1,"x"]"#) && !finds([1], 1, "[2]")) }
    }
  }
}

extension ViewKeyEncoder {
  /// The encoded value of a JSON text.
  func bytes(json: [UInt8]) throws -> [UInt8] {
    var key = ByteBuffer(capacity: 64)
    try json.withUnsafeBytes { try append(json: $0, to: &key) }
    return [UInt8](key.bytes)
  }

  /// The encoded value of a JSON text.
  func bytes(_ json: String) throws -> [UInt8] { try bytes(json: Array(json.utf8)) }

  /// The encoded value.
  @_disfavoredOverload
  func bytes(_ value: JSONValue) throws -> [UInt8] {
    var key = ByteBuffer(capacity: 64)
    try append(value, to: &key)
    return [UInt8](key.bytes)
  }
}

extension JSONValue {
  /// The value's JSON.
  var jsonForTests: String { (try? canonicalJSON()) ?? "a value that isn't JSON" }
}
