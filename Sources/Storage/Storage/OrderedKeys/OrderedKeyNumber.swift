import Bytes

// Numbers in ordered keys: integers and doubles share one order and keep their exact values.
//
//   number   = 0x30 + n  magnitude fraction          zero and above, below 2^64
//            | 0x2F - n  ~magnitude ~fraction        below zero, above -2^64: every byte inverted
//            | 0x3A  bits                            2^64 and above, infinity
//            | 0x25  ~bits                           -2^64 and below, -infinity
//   magnitude = n bytes, big-endian, the first not 0: 2·whole + (1 if there is a fraction), 0 ≤ n ≤ 9
//   fraction  = nothing                              if there is none
//             | 7 bytes, big-endian: fraction·2^56   if whole > 0
//             | 8 bytes: bits of the fraction        if whole = 0
//   bits     = 8 bytes, big-endian: the IEEE 754 bits of the absolute value
//
// Zero takes one byte, 1 … 127 two, 128 … 32,767 three. 1 and 1.0 have the same bytes, as have 0, 0.0 and
// -0.0.

/// A decoded number. Every integral value decodes to an integer where one fits, even if it was encoded from a
/// double.
@frozen
package enum OrderedKeyNumber: Sendable {
  /// An integer below 2^63.
  case integer(Int64)
  /// An integer from 2^63 to 2^64 - 1.
  case unsigned(UInt64)
  /// A number that isn't integral, or that fits neither integer type.
  case double(Double)
}

/// 2^64.
@usableFromInline let twoToThe64: Double = 18_446_744_073_709_551_616

extension OrderedKeyEncoder {
  /// Appends an integer.
  @inlinable
  package mutating func append(_ value: Int64) {
    append(isNegative: value < 0, whole: value.magnitude)
    valueEnded(isLossy: false)
  }

  /// Appends an integer.
  @inlinable
  package mutating func append(_ value: UInt64) {
    append(isNegative: false, whole: value)
    valueEnded(isLossy: false)
  }

  /// Appends a double. It equals the integer of the same value.
  ///
  /// Throws `notANumber` for NaN and then appends nothing. An integral double decodes to an integer, and -0.0
  /// to 0; `lossyValues` reports this.
  @inlinable
  package mutating func append(_ value: Double) throws(OrderedKeyError) {
    let magnitude = value.magnitude
    guard magnitude < twoToThe64 else {
      guard !value.isNaN else { throw OrderedKeyError(.notANumber, at: count) }
      let isNegative = value < 0
      buffer.reserve(9)
      buffer.base[count] = isNegative ? OrderedKeyCode.hugeNegative : OrderedKeyCode.hugePositive
      store(isNegative ? ~magnitude.bitPattern : magnitude.bitPattern, at: count + 1)
      buffer.count += 9
      return valueEnded(isLossy: false)
    }
    let whole = UInt64(magnitude)
    // This is exact: a non-integral double is below 2^53, and so is its whole part.
    let fraction = magnitude - Double(whole)
    guard fraction != 0 else {
      append(isNegative: value < 0, whole: whole)
      // Integers below -2^63 decode to doubles.
      return valueEnded(isLossy: value >= -9_223_372_036_854_775_808)
    }
    append(whole: whole, fraction: fraction, isNegative: value < 0)
    valueEnded(isLossy: false)
  }

  @inlinable
  mutating func append(isNegative: Bool, whole: UInt64) {
    buffer.reserve(10)
    guard whole >> 63 == 0 else {
      // 65 bits: nine bytes, the first of which is 1.
      buffer.base[count] = isNegative ? OrderedKeyCode.negative - 9 : OrderedKeyCode.positive + 9
      buffer.base[count + 1] = isNegative ? ~1 : 1
      store(isNegative ? ~(whole << 1) : whole << 1, at: count + 2)
      buffer.count += 10
      return
    }
    appendMagnitude(whole << 1, isNegative: isNegative)
  }

  /// Appends a magnitude of up to 8 bytes. Always writes 9 bytes; later writes replace those behind the
  /// magnitude.
  @inlinable
  mutating func appendMagnitude(_ magnitude: UInt64, isNegative: Bool) {
    let size = (71 - magnitude.leadingZeroBitCount) >> 3
    // A shift by 64, for zero, gives zero.
    let aligned = magnitude << UInt64(64 - size * 8)
    buffer.base[count] =
      isNegative
      ? OrderedKeyCode.negative &- UInt8(truncatingIfNeeded: size)
      : OrderedKeyCode.positive &+ UInt8(truncatingIfNeeded: size)
    store(isNegative ? ~aligned : aligned, at: count + 1)
    buffer.count += 1 + size
  }

  @usableFromInline
  mutating func append(whole: UInt64, fraction: Double, isNegative: Bool) {
    buffer.reserve(18)
    appendMagnitude(whole << 1 | 1, isNegative: isNegative)
    if whole == 0 {
      store(isNegative ? ~fraction.bitPattern : fraction.bitPattern, at: count)
      buffer.count += 8
    } else {
      // Exact: the last bit of a double above 1 is worth 2^-52 or more.
      let bits = UInt64(fraction * 0x1p56) << 8
      store(isNegative ? ~bits : bits, at: count)
      buffer.count += 7
    }
  }
}

extension OrderedKeyDecoder {
  /// Decodes the rest of a number, whose code is at `offset`.
  mutating func number(_ code: UInt8) throws(OrderedKeyError) -> OrderedKeyNumber {
    let start = offset
    let isNegative = code < OrderedKeyCode.positive
    let inversion: UInt64 = isNegative ? .max : 0
    if code == OrderedKeyCode.hugePositive || code == OrderedKeyCode.hugeNegative {
      let bits = try word(at: start + 1, bytes: 8) ^ inversion
      let magnitude = Double(bitPattern: bits)
      guard bits >> 63 == 0, magnitude >= twoToThe64 else { throw OrderedKeyError(.notCanonical, at: start) }
      offset = start + 9
      return .double(isNegative ? -magnitude : magnitude)
    }
    // Negative zero doesn't exist.
    guard code != OrderedKeyCode.negative else { throw OrderedKeyError(.unknownCode, at: start) }
    let length = isNegative ? Int(OrderedKeyCode.negative - code) : Int(code - OrderedKeyCode.positive)
    if length == 9 {
      guard try word(at: start + 1, bytes: 1) ^ (inversion & 0xFF) == 1 else {
        throw OrderedKeyError(.notCanonical, at: start)
      }
      let low = try word(at: start + 2, bytes: 8) ^ inversion
      guard low & 1 == 0 else { throw OrderedKeyError(.notCanonical, at: start) }
      offset = start + 10
      return try integer(low >> 1 | 1 << 63, isNegative: isNegative, start)
    }
    let mask = length == 0 ? 0 : UInt64.max >> UInt64(64 - length * 8)
    let magnitude = try word(at: start + 1, bytes: length) ^ (inversion & mask)
    guard (71 - magnitude.leadingZeroBitCount) >> 3 == length else {
      throw OrderedKeyError(.notCanonical, at: start)
    }
    let whole = magnitude >> 1
    offset = start + 1 + length
    guard magnitude & 1 == 1 else { return try integer(whole, isNegative: isNegative, start) }
    let value: Double
    if whole == 0 {
      let bits = try word(at: offset, bytes: 8) ^ inversion
      value = Double(bitPattern: bits)
      guard bits != 0, bits < (1.0).bitPattern else { throw OrderedKeyError(.notCanonical, at: start) }
      offset += 8
    } else {
      let bits = try word(at: offset, bytes: 7) ^ (inversion >> 8)
      value = Double(whole) + Double(bits) * 0x1p-56
      // If rounding changed the parts, the bytes weren't the encoding of a double.
      guard bits != 0, whole < 1 << 53, UInt64(value) == whole,
        UInt64((value - Double(whole)) * 0x1p56) == bits
      else { throw OrderedKeyError(.notCanonical, at: start) }
      offset += 7
    }
    return .double(isNegative ? -value : value)
  }

  private func integer(
    _ magnitude: UInt64, isNegative: Bool, _ start: Int
  ) throws(OrderedKeyError) -> OrderedKeyNumber {
    if !isNegative {
      return magnitude >> 63 == 0 ? .integer(Int64(magnitude)) : .unsigned(magnitude)
    }
    if magnitude <= 1 << 63 { return .integer(Int64(truncatingIfNeeded: 0 &- magnitude)) }
    guard let double = Double(exactly: magnitude) else { throw OrderedKeyError(.notCanonical, at: start) }
    return .double(-double)
  }

  /// Reads up to 8 bytes, big-endian.
  private func word(at start: Int, bytes count: Int) throws(OrderedKeyError) -> UInt64 {
    guard bytes.count - start >= count else { throw OrderedKeyError(.truncated, at: offset) }
    var word: UInt64 = 0
    for index in start..<start + count { word = word << 8 | UInt64(bytes[index]) }
    return word
  }
}
