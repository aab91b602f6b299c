import Bytes
import Fleece

// A number in a partial reduction:
//
//   number    := 01 i128 little-endian | 02 i64 little-endian | 03 bits of a double, little-endian

/// A JSON number: an integer if its text has neither point nor exponent, otherwise a double.
enum ReducedNumber {
  case integer(Int128)
  case double(Double)

  /// Reads the text of a JSON number. Nil for any other text, and for numbers beyond all doubles.
  ///
  /// An integer beyond 128 bits becomes the nearest double.
  init?(_ text: UnsafeRawBufferPointer) {
    var index = 0
    let isNegative = text.count > 0 && text[0] == UInt8(ascii: "-")
    if isNegative { index = 1 }
    let first = index
    var small: UInt64 = 0
    while index < text.count, index - first < 18, text[index] &- 48 < 10 {
      small = small * 10 + UInt64(text[index] &- 48)
      index += 1
    }
    guard index > first, index - first == 1 || text[first] != UInt8(ascii: "0") else { return nil }
    if index == text.count {
      self = .integer(isNegative ? -Int128(small) : Int128(small))
      return
    }
    let places = index
    // A decimal of at most 15 digits: the quotient of two exact doubles is rounded once.
    if text[index] == UInt8(ascii: ".") {
      var digits = index - first
      index += 1
      while index < text.count, digits < 16, text[index] &- 48 < 10 {
        small = small &* 10 &+ UInt64(text[index] &- 48)
        index += 1
        digits += 1
      }
      if index == text.count, index > places + 1, digits <= 15 {
        let value = Double(small) / ReducedNumber.powers[index - places - 1]
        self = .double(isNegative ? -value : value)
        return
      }
    }
    self.init(slow: text)
  }

  private static let powers: [Double] = (0...15).map { power in
    (0..<power).reduce(1) { value, _ in value * 10 }
  }

  private init?(slow text: UnsafeRawBufferPointer) {
    guard ReducedNumber.isNumber(text) else { return nil }
    let isInteger = text.allSatisfy { $0 == UInt8(ascii: "-") || $0 &- 48 < 10 }
    if isInteger, let value = Int128(String(decoding: text, as: UTF8.self)) {
      self = .integer(value)
      return
    }
    guard let value = Double(String(decoding: text, as: UTF8.self)), value.isFinite else { return nil }
    self = .double(value)
  }

  /// Whether a text is a number of JSON.
  private static func isNumber(_ text: UnsafeRawBufferPointer) -> Bool {
    var end = 0
    func digits() -> Bool {
      let start = end
      while end < text.count, text[end] &- 48 < 10 { end += 1 }
      return end > start
    }
    if end < text.count, text[end] == UInt8(ascii: "-") { end += 1 }
    let first = end
    guard digits(), end - first == 1 || text[first] != 48 else { return false }
    if end < text.count, text[end] == UInt8(ascii: ".") {
      end += 1
      guard digits() else { return false }
    }
    if end < text.count, text[end] | 0x20 == UInt8(ascii: "e") {
      end += 1
      if end < text.count, text[end] == UInt8(ascii: "-") || text[end] == UInt8(ascii: "+") { end += 1 }
      guard digits() else { return false }
    }
    return end == text.count
  }

  var isDouble: Bool { if case .double = self { true } else { false } }

  var double: Double {
    switch self {
    case .integer(let value): Double(value)
    case .double(let value): value
    }
  }

  /// Compares the exact numbers. Returns a negative number, zero or a positive number.
  func compare(_ other: ReducedNumber) -> Int {
    switch (self, other) {
    case (.integer(let left), .integer(let right)): return left < right ? -1 : left > right ? 1 : 0
    case (.double(let left), .double(let right)): return left < right ? -1 : left > right ? 1 : 0
    case (.integer(let left), .double(let right)): return ReducedNumber.compare(left, right)
    case (.double(let left), .integer(let right)): return -ReducedNumber.compare(right, left)
    }
  }

  private static func compare(_ left: Int128, _ right: Double) -> Int {
    guard right.magnitude < 0x1p126 else {
      // 126 bits are enough for every integer that isn't absurd; beyond them the doubles decide.
      let value = Double(left)
      return value < right ? -1 : value > right ? 1 : 0
    }
    let whole = Int128(right)
    if left != whole { return left < whole ? -1 : 1 }
    let fraction = right - right.rounded(.towardZero)
    return fraction > 0 ? -1 : fraction < 0 ? 1 : 0
  }

  /// Whether this number is shown rather than `other` where both are equal: the integer, and the double 0.0
  /// rather than -0.0.
  private func isShown(before other: ReducedNumber) -> Bool {
    switch (self, other) {
    case (.integer, .double): true
    case (.double(let left), .double(let right)): left.sign == .plus && right.sign == .minus
    default: false
    }
  }

  func least(_ other: ReducedNumber) -> ReducedNumber {
    let order = compare(other)
    return order < 0 || order == 0 && isShown(before: other) ? self : other
  }

  func greatest(_ other: ReducedNumber) -> ReducedNumber {
    let order = compare(other)
    return order > 0 || order == 0 && isShown(before: other) ? self : other
  }

  // MARK: Text and bytes

  func write(to json: inout [UInt8]) {
    switch self {
    case .integer(let value): json.append(contentsOf: value.description.utf8)
    case .double(let value): json.append(double: value)
    }
  }

  func write(to buffer: inout ByteBuffer) {
    switch self {
    case .integer(let value):
      if let small = Int64(exactly: value) {
        buffer.append(2)
        buffer.append(littleEndian: small)
      } else {
        buffer.append(1)
        buffer.append(littleEndian: UInt64(truncatingIfNeeded: value))
        buffer.append(littleEndian: UInt64(truncatingIfNeeded: value >> 64))
      }
    case .double(let value):
      buffer.append(3)
      buffer.append(littleEndian: value.bitPattern)
    }
  }

  init(_ reader: inout ByteReader) throws {
    guard let kind = reader.byte(), let low = reader.littleEndian() else { throw ViewReduceError.damaged }
    switch kind {
    case 1:
      guard let high = reader.littleEndian() else { throw ViewReduceError.damaged }
      self = .integer(Int128(truncatingIfNeeded: UInt128(high) << 64 | UInt128(low)))
    case 2: self = .integer(Int128(Int64(bitPattern: low)))
    case 3:
      let value = Double(bitPattern: low)
      guard value.isFinite else { throw ViewReduceError.damaged }
      self = .double(value)
    default: throw ViewReduceError.damaged
    }
  }
}

extension ByteReader {
  /// Reads an integer of eight bytes, the lowest first.
  mutating func littleEndian() -> UInt64? { bigEndian().map(\.byteSwapped) }
}

extension [UInt8] {
  /// Appends a finite double as JSON text.
  mutating func append(double value: Double) {
    var writer = JSONWriter(capacity: 64)
    writer.append(value)
    writer.write(to: &self)
  }

  /// Appends a string as JSON text.
  mutating func append(jsonString text: String) {
    var writer = JSONWriter(capacity: text.utf8.count + 64)
    writer.append(string: text)
    writer.write(to: &self)
  }
}

/// A sum of JSON numbers. It is an integer if all of them are.
struct NumberSum {
  private(set) var doubles: UInt64 = 0
  private(set) var sum = ExactSum()

  mutating func add(_ number: ReducedNumber) {
    switch number {
    case .integer(let value): sum.add(value)
    case .double(let value):
      doubles += 1
      sum.add(value)
    }
  }

  mutating func remove(_ number: ReducedNumber) {
    switch number {
    case .integer(let value): sum.subtract(value)
    case .double(let value):
      doubles &-= 1
      sum.add(value, isNegative: true)
    }
  }

  mutating func addSquare(of number: ReducedNumber) {
    switch number {
    case .integer(let value): sum.addSquare(value)
    case .double(let value):
      doubles += 1
      sum.addSquare(value)
    }
  }

  mutating func removeSquare(of number: ReducedNumber) {
    switch number {
    case .integer(let value): sum.addSquare(value, isNegative: true)
    case .double(let value):
      doubles &-= 1
      sum.addSquare(value, isNegative: true)
    }
  }

  mutating func add(_ other: NumberSum) {
    doubles &+= other.doubles
    sum.add(other.sum)
  }

  func write(to buffer: inout ByteBuffer) {
    buffer.append(varint: doubles)
    sum.write(to: &buffer)
  }

  mutating func merge(_ reader: inout ByteReader) throws {
    guard let more = reader.varint() else { throw ViewReduceError.damaged }
    doubles &+= more
    try sum.merge(&reader)
  }

  /// Appends the sum. Throws `overflow` if no double is that large.
  func write(to json: inout [UInt8]) throws {
    let (value, isNegative) = sum.magnitude
    if doubles > 0 {
      let double = value.double
      guard double.isFinite else {
        throw ViewReduceError(.overflow, "a sum is larger than any number of JSON")
      }
      return json.append(double: isNegative ? -double : double)
    }
    if isNegative { json.append(UInt8(ascii: "-")) }
    value.writeInteger(to: &json)
  }
}
