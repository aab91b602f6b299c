// A Fleece value read in place. The grammar is in FleeceFormat.swift.
//
// No input is trusted. A value knows the start of its data and its limit. An inline value ends with its slot,
// and the target of a pointer ends before the pointer. Each step therefore goes to smaller addresses or to a
// smaller limit, so no input can cause a read outside the data or an endless loop. A malformed value reads as
// missing.

import Bytes

/// The kinds of values.
public enum ValueType: UInt8, Sendable {
  /// Null. `undefined` also reads as null.
  case null
  /// True or false.
  case bool
  /// An integer of 64 bits, signed or unsigned.
  case int
  /// A floating point number.
  case double
  /// UTF-8 text.
  case string
  /// Binary data.
  case data
  /// An array.
  case array
  /// A dictionary.
  case dict
}

/// A value in place inside the bytes of a body.
///
/// The compiler doesn't check its lifetime. Code that stores one must document why the bytes live long
/// enough. The type exists because a `Value` can't be stored in an array or an object: the query executor
/// stores values in the slots of a row, and a document stores its properties together with the memory that it
/// owns. All other code uses `Value`.
@usableFromInline package struct UnsafeValue: BitwiseCopyable {
  /// The header of the value. At least two bytes are readable before `limit`.
  @usableFromInline let position: UnsafePointer<UInt8>
  /// The start of the data.
  @usableFromInline let start: UnsafePointer<UInt8>
  /// The limit: the value must end before it.
  @usableFromInline let limit: UnsafePointer<UInt8>

  @inlinable @inline(__always)
  init(position: UnsafePointer<UInt8>, start: UnsafePointer<UInt8>, limit: UnsafePointer<UInt8>) {
    self.position = position
    self.start = start
    self.limit = limit
  }

  @inlinable @inline(__always)
  var tag: UInt8 { position[0] &>> 4 }

  /// The offset of this value in the data, in bytes.
  var offset: Int { position - start }

  /// The kind of this value.
  @inlinable
  package var type: ValueType {
    switch tag {
    case Tag.smallInt, Tag.int: .int
    case Tag.float: .double
    case Tag.special: position[0] & 0x0C == 0x04 || position[0] & 0x0C == 0x08 ? .bool : .null
    case Tag.string: .string
    case Tag.data: .data
    case Tag.array: .array
    default: .dict
    }
  }

  /// Whether this is null or undefined.
  @inlinable
  package var isNull: Bool { type == .null }

  /// Whether this is `undefined`. A dictionary member that is undefined counts as missing.
  @inlinable @inline(__always)
  var isUndefined: Bool { position[0] & 0xFC == 0x3C }

  /// The boolean, or nil for other kinds of value.
  @inlinable
  package var bool: Bool? {
    switch position[0] & 0xFC {
    case 0x34: false
    case 0x38: true
    default: nil
    }
  }

  /// The integer, or nil for doubles, other kinds of value and integers above `Int64.max`.
  @inlinable
  package var int: Int64? {
    guard let integer else { return nil }
    return integer.isUnsigned && integer.bits > UInt64(Int64.max) ? nil : Int64(bitPattern: integer.bits)
  }

  /// The integer, or nil if it is negative and for other kinds of value.
  @inlinable
  package var uint: UInt64? {
    guard let integer else { return nil }
    return !integer.isUnsigned && Int64(bitPattern: integer.bits) < 0 ? nil : integer.bits
  }

  /// The number as a double, or nil for other kinds of value. Integers are converted.
  @inlinable
  package var double: Double? {
    if tag == Tag.float {
      let payload = UnsafeRawPointer(position + 2)
      if position[0] & 0x08 != 0 {
        guard limit - position >= 10 else { return nil }
        return Double(bitPattern: payload.loadUnaligned(as: UInt64.self))
      }
      guard limit - position >= 6 else { return nil }
      return Double(Float(bitPattern: payload.loadUnaligned(as: UInt32.self)))
    }
    guard let integer else { return nil }
    return integer.isUnsigned ? Double(integer.bits) : Double(Int64(bitPattern: integer.bits))
  }

  /// The 64 bits of an integer, and whether it is stored in the unsigned form.
  @inlinable @inline(__always)
  var integer: (bits: UInt64, isUnsigned: Bool)? {
    let header = position[0]
    if header < 0x10 {
      let twelve = UInt16(header) << 8 | UInt16(position[1])
      return (UInt64(bitPattern: Int64(Int16(bitPattern: twelve << 4) >> 4)), false)
    }
    guard header < 0x20 else { return nil }
    let count = Int(header & 7) + 1
    let left = limit - position
    guard left > count else { return nil }
    let unused = UInt64(64 - count * 8)
    var bits: UInt64 = 0
    if _fastPath(left > 8) {
      let word = UnsafeRawPointer(position + 1).loadUnaligned(as: UInt64.self)
      bits = (word &<< unused) &>> unused
    } else {
      for index in 0..<count { bits |= UInt64(position[1 + index]) << UInt64(index * 8) }
    }
    if header & 8 != 0 { return (bits, true) }
    return (UInt64(bitPattern: Int64(bitPattern: bits << unused) >> Int64(unused)), false)
  }

  /// The UTF-8 bytes of the string in place, or nil for other kinds of value. The bytes aren't checked.
  @inlinable
  package var utf8: UnsafeRawBufferPointer? { bytes(Tag.string) }

  /// A copy of the string, or nil for other kinds of value and for bytes that aren't UTF-8.
  package var string: String? {
    utf8.flatMap { String(utf8: $0) }
  }

  /// The binary data in place, or nil for other kinds of value.
  @inlinable
  package var data: UnsafeRawBufferPointer? { bytes(Tag.data) }

  @inlinable @inline(__always)
  func bytes(_ tag: UInt8) -> UnsafeRawBufferPointer? {
    let header = position[0]
    guard header &>> 4 == tag else { return nil }
    var length = Int(header & 15)
    var first = position + 1
    if length == 15 {
      if limit > first, first[0] < 0x80 {
        length = Int(first[0])
        first += 1
      } else {
        guard let (value, size) = readVarint(first, limit) else { return nil }
        length = value
        first += size
      }
    }
    guard limit - first >= length else { return nil }
    return UnsafeRawBufferPointer(start: first, count: length)
  }
}

/// Reads a varint of at most 32 bits before `limit`. Returns its value and its length in bytes (1...5), or
/// nil.
@usableFromInline
func readVarint(_ position: UnsafePointer<UInt8>, _ limit: UnsafePointer<UInt8>) -> (Int, Int)? {
  guard let (value, length) = Varint.read(position, before: limit, atMost: 5), value <= UInt64(UInt32.max)
  else { return nil }
  return (Int(value), length)
}

/// The entry point for reading a body.
@usableFromInline package enum FleeceReader {
  /// Returns the root value of a body, or nil if the bytes don't end in one.
  ///
  /// Only the bytes that lead to the root are checked. A damaged value inside the body reads as missing.
  @inlinable
  package static func root(of bytes: UnsafeRawBufferPointer) -> UnsafeValue? {
    guard bytes.count >= 2, bytes.count & 1 == 0,
      let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
    else { return nil }
    let trailer = start + (bytes.count - 2)
    guard trailer[0] & 0x80 != 0 else {
      return bytes.count == 2 ? UnsafeValue(position: start, start: start, limit: start + 2) : nil
    }
    return UnsafeValue(slot: trailer, isWide: false, start: start)
  }
}
