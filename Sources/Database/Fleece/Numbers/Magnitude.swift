/// A number of any size that isn't negative: digits of base 2^32, the least one first, the first of which counts
/// 2^(32·place). Neither the first digit nor the last one is 0.
package struct Magnitude {
  package private(set) var place: Int
  package private(set) var digits: [UInt32]

  package init(place: Int, digits: [UInt32]) {
    guard let last = digits.lastIndex(where: { $0 != 0 }), let first = digits.firstIndex(where: { $0 != 0 })
    else {
      self.place = 0
      self.digits = []
      return
    }
    self.place = place + first
    self.digits = Array(digits[first...last])
  }

  package init(_ value: UInt64) {
    self.init(
      place: 0, digits: [UInt32(truncatingIfNeeded: value), UInt32(truncatingIfNeeded: value >> 32)])
  }

  // MARK: Arithmetic

  package static func * (left: Magnitude, right: Magnitude) -> Magnitude {
    var product = [UInt32](repeating: 0, count: left.digits.count + right.digits.count)
    for (index, digit) in left.digits.enumerated() {
      var carry: UInt64 = 0
      for (other, factor) in right.digits.enumerated() {
        let value = UInt64(digit) * UInt64(factor) + UInt64(product[index + other]) + carry
        product[index + other] = UInt32(truncatingIfNeeded: value)
        carry = value >> 32
      }
      product[index + right.digits.count] = UInt32(truncatingIfNeeded: carry)
    }
    return Magnitude(place: left.place + right.place, digits: product)
  }

  /// The difference of a number and one that isn't greater.
  package static func - (left: Magnitude, right: Magnitude) -> Magnitude {
    let place = min(left.place, right.place)
    let end = max(left.place + left.digits.count, right.place + right.digits.count)
    var difference: [UInt32] = []
    var borrow: Int64 = 0
    for position in place..<max(end, place) {
      let value = Int64(left.digit(position)) - Int64(right.digit(position)) + borrow
      difference.append(UInt32(truncatingIfNeeded: value))
      borrow = value >> 32
    }
    return Magnitude(place: place, digits: difference)
  }

  private func digit(_ position: Int) -> UInt32 {
    let index = position - place
    return digits.indices.contains(index) ? digits[index] : 0
  }

  // MARK: Rounding

  /// The nearest double, and the even one of two; infinite beyond all doubles.
  package var double: Double {
    let (significand, exponent) = rounded(leastBit: -1074)
    return Double(sign: .plus, exponent: exponent, significand: Double(significand))
  }

  /// The number as significand · 2^exponent, rounded to 53 bits, whatever the exponent.
  package var scaled: (significand: Double, exponent: Int) {
    let (significand, exponent) = rounded(leastBit: .min)
    return (Double(significand), exponent)
  }

  /// At most 53 bits, none of which counts less than 2^leastBit.
  private func rounded(leastBit: Int) -> (significand: UInt64, exponent: Int) {
    guard let top = digits.last else { return (0, 0) }
    // The place of the highest bit.
    let highest = 32 * (place + digits.count) - 1 - top.leadingZeroBitCount
    let exponent = max(highest - 52, leastBit)
    var significand = bits(from: exponent)
    let half = exponent - 1
    if bits(from: half) & 1 == 1 {
      let digitOfHalf = half >> 5
      let below = digit(digitOfHalf) & ((1 << UInt32(half & 31)) - 1) != 0 || place < digitOfHalf
      if below || significand & 1 == 1 { significand += 1 }
    }
    return (significand, exponent)
  }

  /// The low 64 of the bits from the one that counts 2^exponent.
  private func bits(from exponent: Int) -> UInt64 {
    let position = exponent >> 5
    let low =
      UInt128(digit(position)) | UInt128(digit(position + 1)) << 32 | UInt128(digit(position + 2)) << 64
    return UInt64(truncatingIfNeeded: low >> UInt128(exponent & 31))
  }

  // MARK: Text

  /// The digits of the whole part, in decimal.
  package func writeInteger(to text: inout [UInt8]) {
    var rest: [UInt32] = []
    for position in 0..<max(place + digits.count, 0) { rest.append(digit(position)) }
    var groups: [UInt64] = []
    while let last = rest.last {
      if last == 0 {
        rest.removeLast()
        continue
      }
      var remainder: UInt64 = 0
      for index in rest.indices.reversed() {
        let value = remainder << 32 | UInt64(rest[index])
        rest[index] = UInt32(truncatingIfNeeded: value / 1_000_000_000)
        remainder = value % 1_000_000_000
      }
      groups.append(remainder)
    }
    guard let first = groups.popLast() else {
      text.append(UInt8(ascii: "0"))
      return
    }
    text.append(contentsOf: String(first).utf8)
    for group in groups.reversed() {
      let digits = String(group)
      text.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: 9 - digits.utf8.count))
      text.append(contentsOf: digits.utf8)
    }
  }
}
