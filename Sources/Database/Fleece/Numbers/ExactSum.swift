/// A sum of numbers without any rounding: of integers, of doubles, and of their squares.
///
/// It is the same in whatever order and groups the numbers came. A number can be taken out again. Used by one thread at a time.
package struct ExactSum {
  /// Digits below the point: the square of the least double is 2^-2148.
  package static let digitsBelowPoint = 68
  /// All digits: the square of the greatest double is below 2^2048, and 2^128 of them may come.
  package static let digitCount = 136

  /// A part of the sum that fits. Most sums of integers need no other.
  private var whole: Int128 = 0
  /// The other part: digits of base 2^32 with a sign each, the least one first. Empty while it is 0.
  private var digits: [Int64] = []
  /// The additions to digits since their carries were last moved.
  private var pending = 0

  /// Creates the sum of no numbers: 0.
  package init() {}

  /// What it has allocated, in bytes.
  package var allocatedBytes: Int { digits.isEmpty ? 0 : digits.count * MemoryLayout<Int64>.stride + 32 }

  // MARK: Adding

  package mutating func add(_ value: Int128) {
    let (sum, overflow) = whole.addingReportingOverflow(value)
    if _slowPath(overflow) {
      spill(value)
    } else {
      whole = sum
    }
  }

  package mutating func subtract(_ value: Int128) {
    let (sum, overflow) = whole.subtractingReportingOverflow(value)
    if _slowPath(overflow) {
      add(bits: value.magnitude, at: 0, isNegative: value >= 0)
    } else {
      whole = sum
    }
  }

  /// Adds a finite double, or takes it out.
  package mutating func add(_ value: Double, isNegative negates: Bool = false) {
    if let integer = Int64(exactly: value) {
      return negates ? subtract(Int128(integer)) : add(Int128(integer))
    }
    let (significand, exponent) = ExactSum.parts(value)
    add(bits: UInt128(significand), at: exponent, isNegative: (value < 0) != negates)
  }

  /// Adds the square of a finite double, or takes it out.
  package mutating func addSquare(_ value: Double, isNegative: Bool = false) {
    if let integer = Int64(exactly: value) { return addSquare(Int128(integer), isNegative: isNegative) }
    let (significand, exponent) = ExactSum.parts(value)
    let square = UInt128(significand) * UInt128(significand)
    add(bits: square, at: 2 * exponent, isNegative: isNegative)
  }

  /// Adds the square of an integer, or takes it out.
  package mutating func addSquare(_ value: Int128, isNegative: Bool = false) {
    let magnitude = value.magnitude
    if magnitude < 1 << 63 {
      let square = Int128(magnitude * magnitude)
      return isNegative ? subtract(square) : add(square)
    }
    let low = magnitude & UInt128(UInt64.max)
    let high = magnitude >> 64
    add(bits: low * low, at: 0, isNegative: isNegative)
    add(bits: low * high, at: 65, isNegative: isNegative)
    add(bits: high * high, at: 128, isNegative: isNegative)
  }

  /// Adds another sum.
  package mutating func add(_ other: ExactSum) {
    add(other.whole)
    for (index, digit) in other.digits.enumerated() where digit != 0 {
      // A digit may have carries that weren't moved yet.
      add(
        bits: UInt128(digit.magnitude), at: 32 * (index - ExactSum.digitsBelowPoint), isNegative: digit < 0)
    }
  }

  /// A double's magnitude is significand · 2^exponent.
  private static func parts(_ value: Double) -> (significand: UInt64, exponent: Int) {
    let raw = value.significandBitPattern
    return value.exponentBitPattern == 0
      ? (raw, -1074) : (raw | 1 << 52, Int(value.exponentBitPattern) - 1075)
  }

  private mutating func spill(_ value: Int128) {
    add(bits: value.magnitude, at: 0, isNegative: value < 0)
  }

  /// Adds bits · 2^exponent.
  private mutating func add(bits: UInt128, at exponent: Int, isNegative: Bool) {
    let position = exponent + 32 * ExactSum.digitsBelowPoint
    let shift = UInt64(position & 31)
    var index = position >> 5
    var rest = bits
    while rest != 0 {
      let piece = (UInt64(truncatingIfNeeded: rest) & 0xFFFF_FFFF) << shift
      add(digit: UInt32(truncatingIfNeeded: piece), at: index, isNegative)
      add(digit: UInt32(truncatingIfNeeded: piece >> 32), at: index + 1, isNegative)
      rest >>= 32
      index += 1
    }
  }

  /// Adds a digit. The digit at the index 0 counts 2^(-32 · `digitsBelowPoint`), each further one 2^32 times as much as the one before.
  package mutating func add(digit: UInt32, at index: Int, _ isNegative: Bool) {
    // No sum of numbers has digits beyond the last one. One from a damaged file may.
    guard digit != 0, index < ExactSum.digitCount else { return }
    if digits.isEmpty { digits = [Int64](repeating: 0, count: ExactSum.digitCount) }
    digits[index] += isNegative ? -Int64(digit) : Int64(digit)
    pending += 1
    if pending == 1 << 30 { moveCarries() }
  }

  /// Brings every digit but the last into 0 ..< 2^32.
  private mutating func moveCarries() {
    pending = 0
    var carry: Int64 = 0
    for index in digits.indices.dropLast() {
      let value = digits[index] + carry
      digits[index] = value & 0xFFFF_FFFF
      carry = value >> 32
    }
    if !digits.isEmpty { digits[digits.count - 1] += carry }
  }

  // MARK: Reading

  /// The sum, as sign and digits.
  package var magnitude: (value: Magnitude, isNegative: Bool) {
    if digits.isEmpty {
      let bits = whole.magnitude
      var list: [UInt32] = []
      var rest = bits
      while rest != 0 {
        list.append(UInt32(truncatingIfNeeded: rest))
        rest >>= 32
      }
      return (Magnitude(place: 0, digits: list), whole < 0)
    }
    var sum = self
    sum.whole = 0
    sum.spill(whole)
    sum.moveCarries()
    let isNegative = (sum.digits.last ?? 0) < 0
    if isNegative {
      for index in sum.digits.indices { sum.digits[index] = -sum.digits[index] }
      sum.moveCarries()
    }
    return (
      Magnitude(
        place: -ExactSum.digitsBelowPoint, digits: sum.digits.map { UInt32(truncatingIfNeeded: $0) }),
      isNegative
    )
  }

  /// The nearest double; infinite if the sum is beyond all doubles.
  package var double: Double {
    let (value, isNegative) = magnitude
    return isNegative ? -value.double : value.double
  }
}
