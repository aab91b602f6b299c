// Writes strings, numbers and base64 data as in canonical JSON (docs/fleece.md).
//
//   string  = in quotes, with the escapes of Bytes/Escaping.swift
//   integer = decimal digits; double = shortest that reads back, always with a point or an exponent
//   data    = base64 string, standard alphabet, padded

import Bytes
import CSimdjson

/// Writes the digits of an integer, at most 20. Returns where they end.
@inline(__always)
func writeDecimal(
  _ value: UInt64, to start: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  guard value < 10 else { return writeLongDecimal(value, to: start) }
  start[0] = UInt8(truncatingIfNeeded: value) &+ UInt8(ascii: "0")
  return start + 1
}

private let digitPairs: StaticString = """
  0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849\
  5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899
  """

@inline(never)
private func writeLongDecimal(
  _ value: UInt64, to start: UnsafeMutablePointer<UInt8>
) -> UnsafeMutablePointer<UInt8> {
  var digits = 2
  var bound: UInt64 = 100
  while digits < 20, value >= bound {
    digits &+= 1
    bound = digits < 20 ? bound &* 10 : .max
  }
  let end = start + digits
  let pairs = UnsafeRawPointer(digitPairs.utf8Start)
  var rest = value
  var target = end
  while rest >= 10 {
    let pair = Int(truncatingIfNeeded: rest % 100) &* 2
    rest /= 100
    target -= 2
    UnsafeMutableRawPointer(target).storeBytes(
      of: pairs.loadUnaligned(fromByteOffset: pair, as: UInt16.self), as: UInt16.self)
  }
  if target > start { start[0] = UInt8(truncatingIfNeeded: rest) &+ UInt8(ascii: "0") }
  return end
}

extension ByteBuffer {
  /// Appends a string with its quotes. Bytes up to `readable` can be read, so that whole blocks can be
  /// copied.
  ///
  /// Sixteen bytes are copied and checked at a time. The loop ends at the first byte that needs an escape.
  @inline(__always)
  mutating func appendJSONString(
    _ source: UnsafePointer<UInt8>, _ length: Int, readable: UnsafePointer<UInt8>
  ) {
    reserve(length &+ 34)
    base[count] = UInt8(ascii: "\"")
    var target = base + (count &+ 1)
    var from = source
    let end = source + length
    while from < end {
      if _slowPath(UInt(bitPattern: readable) &- UInt(bitPattern: from) < 16) {
        return appendJSONStringSlowly(from, end, written: target)
      }
      let position = Int(json_copy_block(target, from))
      if position < 16 {
        if from + position < end {
          return appendJSONStringSlowly(from + position, end, written: target + position)
        }
        break
      }
      from += 16
      target += 16
    }
    count = count &+ length &+ 2
    base[count &- 1] = UInt8(ascii: "\"")
  }

  /// Appends the rest of a string, which has an escape or ends where blocks can't be read, and its last quote. The text
  /// before it is `written`.
  @inline(never)
  mutating func appendJSONStringSlowly(
    _ source: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, written: UnsafeMutablePointer<UInt8>
  ) {
    count = written - base
    var from = source
    while end - from >= 16 {
      reserve(end - from + 6)
      var target = base + count
      let plain = Int(json_copy_block(target, from))
      from += plain
      target += plain
      if plain < 16 {
        target = writeJSONEscape(from[0], to: target)
        from += 1
      }
      count = target - base
    }
    append(jsonEscaped: UnsafeRawBufferPointer(start: from, count: end - from))
    append(UInt8(ascii: "\""))
  }

  /// Appends an integer in decimal.
  @inline(__always)
  mutating func appendInteger(_ value: Int64) {
    reserve(24)
    if value < 0 {
      base[count] = UInt8(ascii: "-")
      count &+= 1
    }
    appendInteger(value.magnitude)
  }

  /// Appends an integer in decimal.
  @inline(__always)
  mutating func appendInteger(_ value: UInt64) {
    reserve(24)
    count = writeDecimal(value, to: base + count) - base
  }

  /// Appends a finite double with the shortest digits that read back, always with a point or an exponent.
  @inline(__always)
  mutating func appendDouble(_ value: Double) {
    reserve(32)
    count &+= json_format_double(
      value, UnsafeMutableRawPointer(base + count).assumingMemoryBound(to: CChar.self))
  }

  /// Appends bytes as a base64 string with its quotes.
  mutating func appendBase64String(_ bytes: UnsafeBufferPointer<UInt8>) {
    reserve((bytes.count + 2) / 3 * 4 + 2)
    let alphabet: StaticString = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    append(UInt8(ascii: "\""))
    var index = 0
    while index < bytes.count {
      let left = min(bytes.count - index, 3)
      var group = UInt32(bytes[index]) << 16
      if left > 1 { group |= UInt32(bytes[index + 1]) << 8 }
      if left > 2 { group |= UInt32(bytes[index + 2]) }
      for digit in 0..<4 {
        let sextet = Int(group >> UInt32(18 - 6 * digit)) & 63
        append(digit <= left ? alphabet.utf8Start[sextet] : UInt8(ascii: "="))
      }
      index += 3
    }
    append(UInt8(ascii: "\""))
  }
}
