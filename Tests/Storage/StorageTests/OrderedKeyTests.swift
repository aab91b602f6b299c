import StorageConformance
import TestTools

@testable import Storage

/// A value as a test has it, compared in the plainest way.
private indirect enum Value: CustomStringConvertible {
  case missing, null, boolean(Bool), integer(Int64), unsigned(UInt64), double(Double)
  case string([UInt8]), bytes([UInt8]), array([Value]), object([([UInt8], Value)])

  var description: String {
    switch self {
    case .missing: "missing"
    case .null: "null"
    case .boolean(let value): "\(value)"
    case .integer(let value): "\(value)"
    case .unsigned(let value): "\(value)u"
    case .double(let value): "\(value)d"
    case .string(let value): "“\(value)”"
    case .bytes(let value): "bytes \(value)"
    case .array(let items): "\(items)"
    case .object(let members): "{\(members)}"
    }
  }

  var rank: Int {
    switch self {
    case .missing: 0
    case .null: 1
    case .boolean: 2
    case .integer, .unsigned, .double: 3
    case .string: 4
    case .array: 5
    case .object: 6
    case .bytes: 7
    }
  }

  func append(to key: inout OrderedKeyEncoder) throws {
    switch self {
    case .missing: key.appendMissing()
    case .null: key.appendNull()
    case .boolean(let value): key.append(value)
    case .integer(let value): key.append(value)
    case .unsigned(let value): key.append(value)
    case .double(let value): try key.append(value)
    case .string(let value): value.withUnsafeBytes { key.append(utf8: $0) }
    case .bytes(let value): value.withUnsafeBytes { key.append(bytes: $0) }
    case .array(let items):
      key.beginArray()
      for item in items { try item.append(to: &key) }
      key.endArray()
    case .object(let members):
      key.beginObject()
      for (name, value) in members {
        name.withUnsafeBytes { key.append(utf8: $0) }
        try value.append(to: &key)
      }
      key.endObject()
    }
  }

  /// Reads one value back, with the kinds of number that a key knows.
  static func read(_ decoder: inout OrderedKeyDecoder) throws -> Value {
    switch try decoder.next() {
    case .missing: return .missing
    case .null: return .null
    case .boolean(let value): return .boolean(value)
    case .number(.integer(let value)): return .integer(value)
    case .number(.unsigned(let value)): return .unsigned(value)
    case .number(.double(let value)): return .double(value)
    case .string(let text), .collationKey(let text): return .string(text.bytes)
    case .bytes(let text): return .bytes(text.bytes)
    case .beginArray, .beginObject: throw DeliberateFailure(reason: "use readTree")
    case .end: throw DeliberateFailure(reason: "an end")
    }
  }

  /// Reads one value of any kind back.
  static func readTree(_ decoder: inout OrderedKeyDecoder) throws -> Value {
    let before = decoder
    switch try decoder.next() {
    case .beginArray:
      var items: [Value] = []
      while decoder.remainder.first != 0 { items.append(try readTree(&decoder)) }
      _ = try decoder.next()
      return .array(items)
    case .beginObject:
      var members: [([UInt8], Value)] = []
      while decoder.remainder.first != 0 {
        guard case .string(let name) = try decoder.next() else { throw DeliberateFailure(reason: "no name") }
        members.append((name.bytes, try readTree(&decoder)))
      }
      _ = try decoder.next()
      return .object(members)
    default:
      decoder = before
      return try read(&decoder)
    }
  }
}

private struct DeliberateFailure: Error { var reason: String }

/// -1, 0 or 1: the order that docs/ordered-keys.md promises, worked out without any encoding.
private func compare(_ left: Value, _ right: Value) -> Int {
  guard left.rank == right.rank else { return left.rank < right.rank ? -1 : 1 }
  switch (left, right) {
  case (.boolean(let left), .boolean(let right)): return left == right ? 0 : left ? 1 : -1
  case (.string(let left), .string(let right)), (.bytes(let left), .bytes(let right)):
    return compare(left, right)
  case (.array(let left), .array(let right)):
    for (left, right) in zip(left, right) where compare(left, right) != 0 { return compare(left, right) }
    return compare(left.count, right.count)
  case (.object(let left), .object(let right)):
    for (left, right) in zip(left, right) {
      if compare(left.0, right.0) != 0 { return compare(left.0, right.0) }
      if compare(left.1, right.1) != 0 { return compare(left.1, right.1) }
    }
    return compare(left.count, right.count)
  default: return compareNumbers(left, right)
  }
}

private func compare<Number: Comparable>(_ left: Number, _ right: Number) -> Int {
  left < right ? -1 : left > right ? 1 : 0
}

private func compare(_ left: [UInt8], _ right: [UInt8]) -> Int {
  left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
}

/// By whole parts as wide integers, then by fractions: no rounding anywhere.
private func compareNumbers(_ left: Value, _ right: Value) -> Int {
  func parts(_ value: Value) -> (whole: Int128, fraction: Double) {
    switch value {
    case .integer(let value): return (Int128(value), 0)
    case .unsigned(let value): return (Int128(value), 0)
    case .double(let value):
      // Beyond 2^100 no integer of ours is near, and doubles compare among themselves.
      if value >= 0x1p100 { return (.max, value) }
      if value <= -0x1p100 { return (.min, value) }
      let floor = value.rounded(.down)
      return (Int128(floor), value - floor)
    default: return (0, 0)
    }
  }
  if case .double(let left) = left, case .double(let right) = right { return compare(left, right) }
  let (left, right) = (parts(left), parts(right))
  return left.whole == right.whole ? compare(left.fraction, right.fraction) : compare(left.whole, right.whole)
}

private func encode(_ values: [Value]) throws -> [UInt8] {
  var key = OrderedKeyEncoder()
  for value in values { try value.append(to: &key) }
  return key.bytes
}

private let nastyNumbers: [Value] = {
  var values: [Value] = []
  let powers: [Double] = [
    0, 1, 2, 127, 128, 255, 256, 32_767, 32_768, 65_536, 0x1p31, 0x1p32, 0x1p52, 0x1p53, 0x1p54, 0x1p62,
    0x1p63,
    0x1p64, 0x1p65, 0x1p100, 0x1p128, 1e300, .greatestFiniteMagnitude, .infinity, 0.5, 0.1, 0.25, 1.5, 1e-5,
    .leastNormalMagnitude, .leastNonzeroMagnitude, 1e-300, .pi, 122.4194,
  ]
  for power in powers {
    for value in [power, power.nextUp, power.nextDown, power + 0.5, power - 1, power + 1] where !value.isNaN {
      values += [.double(value), .double(-value)]
    }
  }
  for shift in 0..<63 {
    for offset: Int64 in -2...2 {
      let value = (Int64(1) << shift) &+ offset
      values += [.integer(value), .integer(0 &- value)]
    }
  }
  let integers: [Int64] = [.min, .min + 1, .max, .max - 1]
  values += integers.map { .integer($0) }
  let highest: UInt64 = 1 << 63
  let unsigned: [UInt64] = [.max, .max - 1, highest, highest + 1, 1 << 53 + 1, 0]
  values += unsigned.map { .unsigned($0) }
  return values
}()

private func anyValue(_ generator: inout SeededGenerator, depth: Int = 0) -> Value {
  let texts: [UInt8] = [0, 0, 1, 1, 2, 0x61, 0x62, 0x7F, 0xC3, 0xFF]
  func text(_ generator: inout SeededGenerator) -> [UInt8] {
    (0..<generator.below(generator.once(in: 8) ? 30 : 4)).map { _ in generator.pick(texts) }
  }
  switch generator.below(depth < 3 ? 14 : 12) {
  case 0: return .missing
  case 1: return .null
  case 2: return .boolean(generator.once(in: 2))
  case 3: return .integer(Int64(bitPattern: generator.next()) >> Int64(generator.below(64)))
  case 4: return .unsigned(generator.next() >> UInt64(generator.below(64)))
  case 5:
    let value = Double(bitPattern: generator.next())
    return .double(value.isNaN ? 0 : value)
  case 6: return .double((Double(generator.below(2_000)) - 1_000) / 8)
  case 7, 8: return generator.pick(nastyNumbers)
  case 9, 10: return .string(text(&generator))
  case 11: return .bytes(text(&generator))
  case 12: return .array((0..<generator.below(4)).map { _ in anyValue(&generator, depth: depth + 1) })
  default:
    return .object(
      (0..<generator.below(3)).map { _ in (text(&generator), anyValue(&generator, depth: depth + 1)) })
  }
}

@Suite struct OrderedKeyTests {
  @Test func byteOrderIsTheOrderOfNumbers() throws {
    let encoded = try nastyNumbers.map { try encode([$0]) }
    for (left, leftBytes) in zip(nastyNumbers, encoded) {
      for (right, rightBytes) in zip(nastyNumbers, encoded)
      where compare(left, right) != compare(leftBytes, rightBytes) {
        Issue.record("\(left) and \(right) are \(hexadecimal(leftBytes)) and \(hexadecimal(rightBytes))")
      }
    }
  }

  @Test func byteOrderIsTheOrderOfTuples() throws {
    var generator = SeededGenerator(seed: testSeed)
    var tuples: [([Value], [UInt8])] = []
    for _ in 0..<(isLong ? 4_000 : 900) {
      let values = (0..<(1 + generator.below(3))).map { _ in anyValue(&generator) }
      tuples.append((values, try encode(values)))
    }
    for (left, leftBytes) in tuples {
      for (right, rightBytes) in tuples where left.count == right.count {
        let isSame = compare(.array(left), .array(right)) == compare(leftBytes, rightBytes)
        expect(isSame, "\(left) and \(right) are ordered otherwise (seed \(testSeed))")
      }
    }
  }

  @Test func noValueBeginsAnotherAndEqualOnesAreTheSameBytes() throws {
    var generator = SeededGenerator(seed: testSeed)
    let values = nastyNumbers + (0..<(isShort ? 200 : 500)).map { _ in anyValue(&generator) }
    let encoded = try values.map { try encode([$0]) }
    for (left, leftBytes) in zip(values, encoded) {
      for (right, rightBytes) in zip(values, encoded) {
        let isSame = rightBytes.starts(with: leftBytes) == (compare(left, right) == 0)
        expect(isSame, "\(left) begins \(right), or isn't as it is (seed \(testSeed))")
      }
    }
  }

  @Test func decodingGivesValuesAndDocumentIDBack() throws {
    var generator = SeededGenerator(seed: testSeed)
    let tuples =
      nastyNumbers.map { [$0] }
      + (0..<5_000).map { _ in (0..<generator.below(5)).map { _ in anyValue(&generator) } }
    var key = OrderedKeyEncoder(capacity: 1)
    for values in tuples {
      key.removeAll()
      for value in values { try value.append(to: &key) }
      let lossy = key.lossyValues
      key.append(documentID: "hotel_1\0é")
      key.withUnsafeBytes { bytes in
        do {
          var decoder = OrderedKeyDecoder(bytes)
          for (index, value) in values.enumerated() {
            let found = try Value.readTree(&decoder)
            expect(compare(found, value), equals: 0, "\(value) came back as \(found)")
            if lossy & (1 << UInt64(index)) == 0, case .double(let double) = value {
              guard case .double(let back) = found else {
                Issue.record("\(value) came back as \(found), and isn't said to be lossy")
                continue
              }
              expect(back.bitPattern, equals: double.bitPattern)
            }
          }
          expect(String(decoding: decoder.remainder, as: UTF8.self), equals: "hotel_1\0é")
          var skipper = OrderedKeyDecoder(bytes)
          try skipper.skip(values.count)
          expect(skipper.offset, equals: decoder.offset)
        } catch {
          Issue.record("\(values): \(error)")
        }
      }
    }
  }

  @Test func integralDoublesAreMarkedAsLossy() throws {
    func lossy(_ append: (inout OrderedKeyEncoder) throws -> Void) rethrows -> UInt64 {
      var key = OrderedKeyEncoder()
      key.appendNull()
      try append(&key)
      return key.lossyValues
    }
    try expect(lossy { try $0.append(1.0) }, equals: 2)
    try expect(lossy { try $0.append(-0.0) }, equals: 2)
    try expect(lossy { try $0.append(0x1p63) }, equals: 2)
    try expect(lossy { try $0.append(-0x1p63) }, equals: 2)
    try expect(lossy { try $0.append((-0x1p63).nextDown) }, equals: 0)
    try expect(lossy { try $0.append(0x1p64) }, equals: 0)
    try expect(lossy { try $0.append(1.5) }, equals: 0)
    expect(lossy { $0.append(Int64(1)) }, equals: 0)
    try expect(
      lossy {
        $0.beginArray()
        try $0.append(1.5)
        try $0.append(2.0)
        $0.endArray()
        $0.append(true)
      }, equals: 2)
  }

  @Test func notANumberIsRefusedAndLeavesTheKeyAsItWas() throws {
    var key = OrderedKeyEncoder()
    key.append(Int64(7))
    let before = key.bytes
    for value in [Double.nan, -Double.nan, Double.signalingNaN] {
      let error = #expect(throws: OrderedKeyError.self) { try key.append(value) }
      expect(error?.code, equals: .notANumber)
    }
    expect(key.bytes, equals: before)
  }

  @Test func garbageIsATypedErrorOrAKeyThatEncodesToItself() throws {
    var generator = SeededGenerator(seed: testSeed)
    var accepted = 0
    for _ in 0..<(isLong ? 2_000_000 : 100_000) {
      var bytes: [UInt8]
      if generator.once(in: 2) {
        bytes = generator.bytes(generator.below(24))
        if !bytes.isEmpty, generator.once(in: 2) { bytes[0] = 0x24 + bytes[0] % 0x18 }
      } else {
        bytes = try encode([anyValue(&generator), anyValue(&generator)])
        for _ in 0...generator.below(2) where !bytes.isEmpty {
          bytes[generator.below(bytes.count)] = UInt8(truncatingIfNeeded: generator.next())
        }
        if generator.once(in: 3) { bytes.removeLast(generator.below(bytes.count + 1)) }
      }
      try bytes.withUnsafeBytes { raw in
        var decoder = OrderedKeyDecoder(raw)
        var values: [Value] = []
        do {
          while !decoder.remainder.isEmpty { values.append(try Value.readTree(&decoder)) }
        } catch is OrderedKeyError {
          return
        } catch is DeliberateFailure { return }
        accepted += 1
        // A collation key comes back as a string in this test.
        if !bytes.contains(0x51) { try expect(encode(values), equals: bytes, "\(values), seed \(testSeed)") }
      }
    }
    expect(accepted > 100)
  }

  @Test func rangesHoldExactlyTheKeysThatBeginWithTheValues() throws {
    var generator = SeededGenerator(seed: testSeed)
    var values = (0..<300).map { _ in anyValue(&generator) }
    values += [
      .string([]), .string([0]), .string([0x61]), .string([0x61, 0]), .string([0x61, 0, 0xFF]), .integer(5),
    ]
    let keys = try values.map { value in (value, try encode([.null, value]) + Array("doc".utf8)) }
    for bound in values {
      let edge = try encode([.null, bound])
      for (value, key) in keys {
        let order = compare(value, bound)
        let cases: [(KeyRange, Bool)] = [
          (.prefix(edge), order == 0),
          (.orderedKeys(from: .including(edge), to: .including(edge)), order == 0),
          (.orderedKeys(from: .including(edge), to: .unbounded), order >= 0),
          (.orderedKeys(from: .excluding(edge), to: .unbounded), order > 0),
          (.orderedKeys(from: .unbounded, to: .including(edge)), order <= 0),
          (.orderedKeys(from: .unbounded, to: .excluding(edge)), order < 0),
        ]
        for (range, wanted) in cases {
          let isRight = holds(range, key) == wanted
          expect(isRight, "\(value) in \(range) of \(bound), seed \(testSeed)")
        }
      }
    }
    for type in OrderedKeyType.allCases {
      let range = KeyRange.orderedKeys(beginningWith: [OrderedKeyCode.null], then: type)
      for (value, key) in keys {
        expect(holds(range, key), equals: (value.rank == OrderedKeyType.allCases.firstIndex(of: type)))
      }
    }
  }

  private func holds(_ range: KeyRange, _ key: [UInt8]) -> Bool {
    let isAbove =
      switch range.lower {
      case .unbounded: true
      case .inclusive(let bound): compare(key, bound) >= 0
      case .exclusive(let bound): compare(key, bound) > 0
      }
    let isBelow =
      switch range.upper {
      case .unbounded: true
      case .inclusive(let bound): compare(key, bound) <= 0
      case .exclusive(let bound): compare(key, bound) < 0
      }
    return isAbove && isBelow
  }

  @Test func keysOfAnyLengthAreBuilt() throws {
    var key = OrderedKeyEncoder(capacity: 1)
    for length in [0, 7, 8, 9, 31, 32, 33, 1_000, 100_000] {
      for byte: UInt8 in [0, 1, 0x61, 0xFF] {
        key.removeAll()
        let text = [UInt8](repeating: byte, count: length)
        text.withUnsafeBytes { key.append(bytes: $0) }
        expect(key.count, equals: (byte < 2 ? length * 2 : length) + 2)
        key.withUnsafeBytes { bytes in
          var decoder = OrderedKeyDecoder(bytes)
          guard case .bytes(let found) = try? decoder.next() else {
            Issue.record("no bytes")
            return
          }
          expect(found.bytes, equals: text)
        }
      }
    }
  }

  /// The worked examples of the documentation, each by what it is said to encode.
  @Test func theExamplesOfTheDocumentationHold() throws {
    let examples: [String: [Value]] = [
      "missing": [.missing], "null": [.null], "false": [.boolean(false)], "true": [.boolean(true)],
      "0": [.integer(0)], "-0.0": [.double(-0.0)], "1": [.integer(1)], "1.0": [.double(1)],
      "-1": [.integer(-1)], "127": [.integer(127)], "128": [.integer(128)], "-128": [.integer(-128)],
      "0.5": [.double(0.5)], "-0.5": [.double(-0.5)], "51.5": [.double(51.5)], "-122.25": [.double(-122.25)],
      "9007199254740991": [.integer(9_007_199_254_740_991)],
      "9007199254740992": [.double(9_007_199_254_740_992)],
      "9007199254740993": [.integer(9_007_199_254_740_993)],
      "9223372036854775807": [.integer(.max)], "-9223372036854775808": [.integer(.min)],
      "9223372036854775808": [.unsigned(1 << 63)], "18446744073709551615": [.unsigned(.max)],
      "18446744073709551616": [.double(0x1p64)], "-1e300": [.double(-1e300)],
      "Infinity": [.double(.infinity)], "-Infinity": [.double(-.infinity)],
      "\"\"": [.string([])], "\"hotel\"": [.string(Array("hotel".utf8))], "\"é\"": [.string([0xC3, 0xA9])],
      "\"a\\u0000\\u0001b\"": [.string([0x61, 0, 1, 0x62])],
      "[]": [.array([])], "[1, \"a\"]": [.array([.integer(1), .string([0x61])])],
      "{\"a\": null}": [.object([([0x61], .null)])], "bytes 00 ff": [.bytes([0, 0xFF])],
      "(\"hotel\", 4.5)": [.string(Array("hotel".utf8)), .double(4.5)],
    ]
    let page = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
      .appendingPathComponent("../../../docs/ordered-keys.md")
    var remaining = Set(examples.keys)
    for line in try String(contentsOf: page, encoding: .utf8).split(separator: "\n") {
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: [" ", "`"]) }
      guard cells.count == 2, let values = examples[cells[0]] else { continue }
      remaining.remove(cells[0])
      let spaced = try encode(values).map { hexadecimal([$0]) }.joined(separator: " ")
      expect(spaced, equals: cells[1], "the example \(cells[0])")
    }
    expect(remaining, equals: [], "examples that the page doesn't have")
  }
}
