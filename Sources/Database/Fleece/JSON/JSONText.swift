// Writes strings, numbers and base64 data as in canonical JSON (docs/fleece.md).
//
//   string  = in quotes, with the escapes of Bytes/Escaping.swift
//   integer = decimal digits; double = shortest that reads back, always with a point or an exponent
//   data    = base64 string, standard alphabet, padded

import Bytes
import CSimdjson

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

  /// Appends the rest of a string, byte by byte, and its last quote. The text before it is `written`.
  @inline(never)
  mutating func appendJSONStringSlowly(
    _ source: UnsafePointer<UInt8>, _ end: UnsafePointer<UInt8>, written: UnsafeMutablePointer<UInt8>
  ) {
    count = written - base
    append(jsonEscaped: UnsafeRawBufferPointer(start: source, count: end - source))
    append(UInt8(ascii: "\""))
  }

  /// Appends the name of a member, which needs no escapes, with its quotes and the colon.
  @inline(__always)
  mutating func appendName(_ name: ShortName, _ length: Int) {
    reserve(24)
    let target = UnsafeMutableRawPointer(base + count)
    target.storeBytes(of: UInt8(ascii: "\""), as: UInt8.self)
    target.storeBytes(of: name.low, toByteOffset: 1, as: UInt64.self)
    target.storeBytes(of: name.high, toByteOffset: 9, as: UInt64.self)
    // ":
    target.storeBytes(of: 0x3A22, toByteOffset: length &+ 1, as: UInt16.self)
    count = count &+ length &+ 3
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
    var digits = 1
    var bound: UInt64 = 10
    while digits < 20, value >= bound {
      digits &+= 1
      bound = digits < 20 ? bound &* 10 : .max
    }
    var rest = value
    var target = base + (count &+ digits)
    repeat {
      target -= 1
      target[0] = UInt8(truncatingIfNeeded: rest % 10) &+ UInt8(ascii: "0")
      rest /= 10
    } while rest != 0
    count &+= digits
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
