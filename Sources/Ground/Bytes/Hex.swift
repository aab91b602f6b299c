/// Writes and reads hexadecimal digits, two for a byte.
@usableFromInline
package enum Hex {
  @usableFromInline static let lower: StaticString = "0123456789abcdef"
  @usableFromInline static let upper: StaticString = "0123456789ABCDEF"

  /// Writes lower-case digits. `target` has room for two for each byte.
  @inlinable
  package static func write(_ bytes: UnsafeRawBufferPointer, to target: UnsafeMutableRawPointer) {
    let digits = lower.utf8Start
    for index in 0..<bytes.count {
      target.storeBytes(of: digits[Int(bytes[index] >> 4)], toByteOffset: index * 2, as: UInt8.self)
      target.storeBytes(of: digits[Int(bytes[index] & 15)], toByteOffset: index * 2 + 1, as: UInt8.self)
    }
  }

  /// The digits of bytes, as text.
  package static func text(_ bytes: some Sequence<UInt8>, isUpper: Bool = false) -> String {
    let digits = (isUpper ? upper : lower).utf8Start
    var text: [UInt8] = []
    text.reserveCapacity(bytes.underestimatedCount * 2)
    for byte in bytes {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// A number as lower-case digits, with zeros before it if it has fewer than `digits`.
  package static func text(_ number: UInt64, digits: Int) -> String {
    let text = String(number, radix: 16)
    return String(repeating: "0", count: max(digits - text.utf8.count, 0)) + text
  }

  /// The bytes that digits stand for. Nil if their number is odd or one is no digit. Both cases are read.
  package static func bytes(_ digits: some Collection<UInt8>) -> [UInt8]? {
    guard digits.count.isMultiple(of: 2) else { return nil }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits.count / 2)
    var high: UInt8?
    for digit in digits {
      // The bit makes letters lower-case.
      guard let value = value(ofLower: digit >= 0x41 ? digit | 0x20 : digit) else { return nil }
      if let first = high {
        bytes.append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
    return bytes
  }

  /// The value of a lower-case digit, or nil.
  @inlinable @inline(__always)
  package static func value(ofLower digit: UInt8) -> UInt8? {
    switch digit {
    case 0x30...0x39: digit - 0x30
    case 0x61...0x66: digit - 0x61 + 10
    default: nil
    }
  }
}

extension ByteBuffer {
  /// Appends the bytes that lower-case digits stand for. Returns false, and appends nothing, if their number is
  /// odd or one is no lower-case digit.
  @inlinable
  package mutating func append(hex text: UnsafeRawBufferPointer) -> Bool {
    guard text.count.isMultiple(of: 2) else { return false }
    reserve(text.count / 2)
    for index in 0..<(text.count / 2) {
      guard let high = Hex.value(ofLower: text[index * 2]), let low = Hex.value(ofLower: text[index * 2 + 1])
      else { return false }
      base[count + index] = high << 4 | low
    }
    count += text.count / 2
    return true
  }
}
