import Bytes
import CICU
import Fleece
import TestSupport
import Testing

@testable import Views

/// Random keys, compared with a comparison that encodes nothing.
@Suite("Order of view keys: random values") struct KeysRandomTests {
  @Test("byte order is the documented order", arguments: ViewCollation.allCases)
  func order(_ collation: ViewCollation) throws {
    var random = SeededGenerator(seed: testSeed)
    let encoder = try ViewKeyEncoder(collation)
    let comparison = try KeyComparison(collation)
    for _ in 0..<(isShort ? 5_000 : 20_000) {
      let left = KeyValue.any(&random)
      let right = random.once(in: 2) ? left.changed(&random) : KeyValue.any(&random)
      let (leftBytes, rightBytes) = (
        try encoder.bytes(left.json(&random)), try encoder.bytes(right.json(&random))
      )
      let wanted = comparison.compare(left, right)
      let found = compareBytes(leftBytes, rightBytes).signum()
      expect(found, equals: wanted, "\(left) and \(right) (seed \(testSeed))")
      expect(wanted == 0 || !rightBytes.starts(with: leftBytes), "\(left) begins \(right)")
      for (value, bytes) in [(left, leftBytes), (right, rightBytes)] {
        let length = try (bytes + [0x68, 0x00, 0x41]).withSpan { try ViewKeyEncoder.length(of: $0) }
        expect(length, equals: bytes.count, "\(value)")
      }
      for level in 1...3 {
        let prefix = leftBytes.withSpan { ViewKeyEncoder.groupPrefix(of: $0, level: level) }
        let isSame = comparison.compare(left.group(level), right.group(level)) == 0
        expect(
          rightBytes.starts(with: leftBytes[..<prefix]), equals: isSame, "\(left), \(right), level \(level)")
      }
    }
  }

  @Test("JSON text, values and stored values have the same keys", arguments: ViewCollation.allCases)
  func sources(_ collation: ViewCollation) throws {
    var random = SeededGenerator(seed: testSeed)
    let encoder = try ViewKeyEncoder(collation)
    let body = BodyEncoder()
    for _ in 0..<5_000 {
      // Values and stored values have their members in the order of the names.
      let value = JSONValue.object(["v": KeyValue.any(&random).value])
      let wanted = try encoder.bytes(value["v"].jsonForTests)
      try expect(encoder.bytes(value["v"] as JSONValue), equals: wanted)
      let keys = SharedKeysBuilder(.empty)
      try body.encode(value, keys: keys)
      let bytes = [UInt8](body.fleece)
      let sharedKeys = keys.snapshot()
      var key = ByteBuffer()
      try bytes.withUnsafeBytes { bytes in
        let root = try #require(FleeceReader.root(of: bytes))
        let stored = try #require(root.value(of: "v", sharedKeys: sharedKeys))
        try encoder.append(stored, sharedKeys: sharedKeys, to: &key)
      }
      expect([UInt8](key.bytes), equals: wanted, "\(value) (seed \(testSeed))")
    }
  }

  @Test("texts are JSON exactly if the parser of documents says so")
  func parser() throws {
    var random = SeededGenerator(seed: testSeed)
    let encoder = try ViewKeyEncoder(.raw)
    let parts = Array(#"[]{},:"\/ -+.0123456789eEtruefalsnbu"#.utf8) + [0x09, 0x0A, 0x0D, 0x1F]
    var accepted = 0
    for _ in 0..<30_000 {
      var text = Array(KeyValue.any(&random).json(&random, isASCII: true).utf8)
      for _ in 0..<random.below(3) where !text.isEmpty {
        let place = random.below(text.count)
        switch random.below(3) {
        case 0: text[place] = random.pick(parts)
        case 1: text.insert(random.pick(parts), at: place)
        default: text.remove(at: place)
        }
      }
      let value = try? text.withUnsafeBytes { try JSONValue(json: $0) }
      let key = try? encoder.bytes(json: text)
      // Half of a surrogate pair is no fault here.
      if key != nil, value == nil, String(decoding: text, as: UTF8.self).lowercased().contains("\\ud") {
        continue
      }
      expect(
        (key != nil), equals: (value != nil), "\(String(decoding: text, as: UTF8.self)) (seed \(testSeed))")
      accepted += key == nil ? 0 : 1
    }
    expect(accepted > 5_000)
  }

  @Test("what can't be a key is refused, and nothing is appended")
  func refusals() throws {
    for collation in ViewCollation.allCases {
      let encoder = try ViewKeyEncoder(collation)
      let deep = String(repeating: "[", count: 201) + String(repeating: "]", count: 201)
      let long = "\"" + String(repeating: "a", count: ViewKeyEncoder.maximumBytes) + "\""
      let huge = "\"" + String(repeating: "a", count: 5 << 20) + "\""
      let many = "[" + Array(repeating: "1", count: 3 << 20).joined(separator: ",") + "]"
      let texts = [
        "", " ", "[", "[1", "[1,", "[1,]", "{\"a\"", "{\"a\":", "{1:2}", "nul", "1 2", "01", "1e999", "\"a",
      ]
      for text in texts + [deep, long, huge, many] {
        var key = ByteBuffer()
        key.append(7)
        #expect(throws: ViewKeyError.self) {
          try Array(text.utf8).withUnsafeBytes { try encoder.append(json: $0, to: &key) }
        }
        expect([UInt8](key.bytes), equals: [7])
      }
      #expect(throws: ViewKeyError.notFinite) { try encoder.bytes(JSONValue.double(.infinity)) }
      #expect(throws: ViewKeyError.notFinite) { try encoder.bytes(JSONValue.double(.nan)) }
      #expect(throws: ViewKeyError.tooDeep(limit: 200)) { try encoder.bytes(deep) }
      // The deepest is fine, and a long one: sort keys have some bytes for the levels.
      _ = try encoder.bytes(String(deep.dropFirst().dropLast()))
      let fits = "\"" + String(repeating: "a", count: ViewKeyEncoder.maximumBytes / 10 * 9) + "\""
      try expect(encoder.bytes(fits).count <= ViewKeyEncoder.maximumBytes)
    }
  }

  @Test("bytes that aren't keys have no length")
  func damage() throws {
    var random = SeededGenerator(seed: testSeed)
    let encoder = try ViewKeyEncoder(.unicode)
    for _ in 0..<5_000 {
      let whole = try encoder.bytes(KeyValue.any(&random).json(&random))
      let part = Array(whole.prefix(random.below(whole.count)))
      #expect(throws: ViewKeyError.damaged) { try part.withSpan { try ViewKeyEncoder.length(of: $0) } }
      let noise = random.bytes(random.below(12))
      if let length = try? noise.withSpan({ try ViewKeyEncoder.length(of: $0) }) {
        expect(length <= noise.count)
      }
      let prefix = noise.withSpan { ViewKeyEncoder.groupPrefix(of: $0, level: 2) }
      expect(prefix <= noise.count)
    }
  }

  @Test("encoders of several threads give the same keys")
  func threads() throws {
    var random = SeededGenerator(seed: testSeed)
    let texts = (0..<500).map { _ in KeyValue.any(&random).json(&random) }
    let encoder = try ViewKeyEncoder(.unicode)
    let wanted = try texts.map { try encoder.bytes($0) }
    try onThreads(8) { _ in
      for _ in 0..<5 {
        let encoder = try ViewKeyEncoder(.unicode)
        let keys = try texts.map { try encoder.bytes($0) }
        expect(keys, equals: wanted)
      }
    }
  }

  @Test("the version is that of ICU's data, and of the rules")
  func versions() throws {
    let root = try ViewKeyEncoder(.root).collatorVersion
    let data = root.prefix { $0 != " " }
    expect(data.split(separator: ".").count == 4 && root == data + " root 2")
    try expect(ViewKeyEncoder(.unicode).collatorVersion.hasPrefix(data + " guide "))
    try expect(ViewKeyEncoder(.ascii).collatorVersion == "" && ViewKeyEncoder(.raw).collatorVersion == "")
  }
}

extension [UInt8] {
  /// Calls `body` with the bytes.
  fileprivate func withSpan<Result>(_ body: (RawSpan) throws -> Result) rethrows -> Result {
    try body(span.bytes)
  }
}

private func compareBytes(_ left: [UInt8], _ right: [UInt8]) -> Int {
  left.withUnsafeBytes { left in right.withUnsafeBytes { Bytes.compareBytes(left, $0) } }
}

/// A JSON value whose objects have their members in order.
indirect enum KeyValue: CustomStringConvertible {
  case null, bool(Bool), int(Int64), uint(UInt64), double(Double), string(String), array([KeyValue])
  case object([(String, KeyValue)])

  var description: String {
    var random = SeededGenerator(seed: 1)
    return json(&random)
  }

  static func any(_ random: inout SeededGenerator, depth: Int = 0) -> KeyValue {
    switch random.below(depth < 3 ? 12 : 8) {
    case 0: return .null
    case 1: return .bool(random.once(in: 2))
    case 2: return .int(Int64(bitPattern: random.next()) >> Int64(random.below(64)))
    case 3: return .uint(random.next() >> UInt64(random.below(64)))
    case 4:
      let double = Double(bitPattern: random.next())
      return .double(double.isFinite ? double : -0.0)
    case 5:
      let near = random.pick([0, 1, 9_007_199_254_740_992, 9_223_372_036_854_775_808, 1.8446744073709552e19])
      let double = random.pick([near, near.nextUp, near.nextDown, near / 8])
      return .double(random.once(in: 2) ? -double : double)
    case 6, 7: return .string(text(&random))
    case 8, 9, 10: return .array((0..<random.below(4)).map { _ in any(&random, depth: depth + 1) })
    default:
      return .object((0..<random.below(3)).map { _ in (text(&random), any(&random, depth: depth + 1)) })
    }
  }

  private static let characters: [String] = [
    "a", "A", "b", "B", "z", "0", "9", " ", "_", "-", "~", "`", "^", "\"", "\\", "/", "\n", "\u{0}", "\u{1}",
    "\u{2}", "\u{7F}", "é", "e\u{301}", "ä", "ß", "ss", "\u{323}", "\u{307}", "中", "😀", "\u{AC00}",
    "\u{1100}",
    "\u{1161}", "\u{FFFF}", "\u{FFFE}", "\u{FFFD}", "\u{E000}", "\u{10FFFF}", "\u{200D}", "ÿ", "\u{1FEF}",
  ]

  private static func text(_ random: inout SeededGenerator) -> String {
    (0..<(random.once(in: 20) ? 300 : random.below(5))).map { _ in random.pick(characters) }.joined()
  }

  /// A value that differs little.
  func changed(_ random: inout SeededGenerator) -> KeyValue {
    switch self {
    case .null, .bool: return random.once(in: 2) ? self : .any(&random)
    case .int(let value):
      return random.once(in: 2) ? .double(Double(value)) : .int(value &+ Int64(random.below(3)))
    case .uint(let value):
      return random.once(in: 2) ? .double(Double(value)) : .uint(value &- UInt64(random.below(3)))
    case .double(let value): return .double(random.pick([value, -value, value.nextUp, value.rounded()]))
    case .string(let text):
      switch random.below(4) {
      case 0: return .string(text.uppercased())
      case 1: return .string(String(text.dropLast()))
      case 2: return .string(text + random.pick(Self.characters))
      default: return self
      }
    case .array(var items):
      guard !items.isEmpty, !random.once(in: 3) else { return .array(items + [.any(&random, depth: 2)]) }
      let index = random.below(items.count)
      items[index] = items[index].changed(&random)
      return .array(random.once(in: 4) ? Array(items.dropLast()) : items)
    case .object(var members):
      guard !members.isEmpty, !random.once(in: 3) else { return .object(members + [("x", .null)]) }
      let index = random.below(members.count)
      members[index].1 = members[index].1.changed(&random)
      return .object(random.once(in: 4) ? members.reversed() : members)
    }
  }

  /// What tells a key's group at a level.
  func group(_ level: Int) -> KeyValue {
    if case .array(let items) = self { .array(Array(items.prefix(level))) } else { self }
  }

  /// The value, whose members have no order.
  var value: JSONValue {
    switch self {
    case .null: .null
    case .bool(let value): .bool(value)
    case .int(let value): .int(value)
    case .uint(let value): .uint(value)
    case .double(let value): .double(value)
    case .string(let value): .string(value)
    case .array(let items): .array(items.map(\.value))
    case .object(let members): .object(JSONObject(members.map { ($0.0, $0.1.value) }))
    }
  }

  /// A JSON text, with any spaces and escapes.
  func json(_ random: inout SeededGenerator, isASCII: Bool = false) -> String {
    func space(_ random: inout SeededGenerator) -> String {
      random.once(in: 6) ? random.pick([" ", "\n", "\t \r"]) : ""
    }
    func quoted(_ text: String, _ random: inout SeededGenerator) -> String {
      var json = "\""
      for scalar in text.unicodeScalars {
        if scalar.value < 0x20 || scalar == "\"" || scalar == "\\" || (isASCII && !scalar.isASCII)
          || random.once(in: 8)
        {
          for unit in String(scalar).utf16 {
            let digits = String(unit, radix: 16, uppercase: random.once(in: 2))
            json += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
          }
        } else {
          json.unicodeScalars.append(scalar)
        }
      }
      return json + "\""
    }
    let text: String
    switch self {
    case .null: text = "null"
    case .bool(let value): text = "\(value)"
    case .int(let value): text = "\(value)"
    case .uint(let value): text = "\(value)"
    case .double(let value): text = "\(value)"
    case .string(let value): text = quoted(value, &random)
    case .array(let items):
      text =
        "[" + items.map { $0.json(&random, isASCII: isASCII) }.joined(separator: ",") + space(&random) + "]"
    case .object(let members):
      let texts = members.map {
        space(&random) + quoted($0.0, &random) + space(&random) + ":" + $0.1.json(&random, isASCII: isASCII)
      }
      text = "{" + texts.joined(separator: ",") + space(&random) + "}"
    }
    return space(&random) + text + space(&random)
  }
}

/// The documented order, from values themselves.
final class KeyComparison {
  private let collation: ViewCollation
  private let icu: OpaquePointer?

  init(_ collation: ViewCollation) throws {
    self.collation = collation
    var status = icu_status(0)
    switch collation {
    case .ascii, .raw: icu = nil
    case .root: icu = icu_collator_open("", ICU_CASES, 0, &status)
    case .unicode:
      let rules = Array("&[before 1]'_'<'`'<'^'".utf16)
      icu = icu_collator_open_rules(rules, Int32(rules.count), &status)
    }
    try #require(icu_failed(status) == 0)
  }

  deinit { if let icu { icu_collator_close(icu) } }

  private func rank(_ value: KeyValue) -> Int {
    let isRaw = collation == .raw
    return switch value {
    case .null: isRaw ? 2 : 0
    case .bool(false): 1
    case .bool(true): isRaw ? 3 : 2
    case .int, .uint, .double: isRaw ? 0 : 3
    case .string: isRaw ? 6 : 4
    case .array: 5
    case .object: isRaw ? 4 : 6
    }
  }

  func compare(_ left: KeyValue, _ right: KeyValue) -> Int {
    guard rank(left) == rank(right) else { return rank(left) < rank(right) ? -1 : 1 }
    switch (left, right) {
    case (.null, .null), (.bool, .bool): return 0
    case (.string(let left), .string(let right)): return compare(left, right)
    case (.array(let left), .array(let right)):
      for (left, right) in zip(left, right) {
        let order = compare(left, right)
        if order != 0 { return order }
      }
      return (left.count - right.count).signum()
    case (.object(let left), .object(let right)):
      for (left, right) in zip(left, right) {
        let (names, values) = (compare(left.0, right.0), compare(left.1, right.1))
        if names != 0 || values != 0 { return names != 0 ? names : values }
      }
      return (left.count - right.count).signum()
    case (.double(let left), .double(let right)): return left == right ? 0 : left < right ? -1 : 1
    default:
      let (left, right) = (parts(left), parts(right))
      if left.whole != right.whole { return left.whole < right.whole ? -1 : 1 }
      return left.fraction == right.fraction ? 0 : left.fraction < right.fraction ? -1 : 1
    }
  }

  private func compare(_ left: String, _ right: String) -> Int {
    guard let icu else {
      // By code points, which is the order of UTF-8. U+FFFF is above all.
      func weight(_ bytes: Slice<UnsafeBufferPointer<UInt8>>) -> Int {
        let scalar = String(decoding: bytes.prefix(4), as: UTF8.self).unicodeScalars.first
        return scalar.map { $0.value == 0xFFFF ? .max : Int($0.value) } ?? -1
      }
      var (left, right) = (left, right)
      return left.withUTF8 { left in
        right.withUTF8 { right in
          // Texts of tests are long, and the first code point that differs decides.
          var place = 0
          while place < min(left.count, right.count), left[place] == right[place] { place += 1 }
          if place == min(left.count, right.count) { return (left.count - right.count).signum() }
          while left[place] & 0xC0 == 0x80 { place -= 1 }
          let (a, b) = (weight(left[place...]), weight(right[place...]))
          return a == b ? 0 : a < b ? -1 : 1
        }
      }
    }
    let (left, right) = (left.utf8.map { CChar(bitPattern: $0) }, right.utf8.map { CChar(bitPattern: $0) })
    return Int(icu_collator_compare(icu, left, Int32(left.count), right, Int32(right.count))).signum()
  }

  /// The part below a number and what is above it. Beyond 2^100 no integer is near, and the fraction is the number.
  private func parts(_ value: KeyValue) -> (whole: Int128, fraction: Double) {
    switch value {
    case .int(let value): return (Int128(value), 0)
    case .uint(let value): return (Int128(value), 0)
    case .double(let value):
      if value >= 0x1p100 { return (.max, value) }
      if value <= -0x1p100 { return (.min, value) }
      return (Int128(value.rounded(.down)), value - value.rounded(.down))
    default: return (0, 0)
    }
  }
}
