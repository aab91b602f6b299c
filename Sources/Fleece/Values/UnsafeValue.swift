// A Fleece value read in place. The grammar is in FleeceFormat.swift.
//
// Nothing is trusted: a value knows where its data starts and where it must end. An inline value ends with its
// slot, a pointer's target before the pointer. So every step goes to smaller addresses or a smaller limit: no
// bytes make it read outside, or go round in circles. What is malformed reads as missing.

/// The kinds of values.
public enum ValueType: UInt8, Sendable {
  /// Null; also what `undefined` reads as.
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
/// The compiler does not watch its lifetime: whoever holds one says beside it why its bytes live as long. It exists because
/// a `Value` can stand neither in an array nor in an object: the query executor keeps values in the slots of a row, and a
/// document keeps its properties with the memory that it owns. Everybody else uses `Value`.
public struct UnsafeValue: BitwiseCopyable {
  /// Where the header is; at least two bytes up to `limit`.
  @usableFromInline let position: UnsafePointer<UInt8>
  /// Where the data starts.
  @usableFromInline let start: UnsafePointer<UInt8>
  /// Where this value must have ended.
  @usableFromInline let limit: UnsafePointer<UInt8>

  @inlinable @inline(__always)
  init(position: UnsafePointer<UInt8>, start: UnsafePointer<UInt8>, limit: UnsafePointer<UInt8>) {
    self.position = position
    self.start = start
    self.limit = limit
  }

  @inlinable @inline(__always)
  var tag: UInt8 { position[0] &>> 4 }

  /// The offset of this value in the data.
  var offset: Int { position - start }

  /// The kind of this value.
  @inlinable
  public var type: ValueType {
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

  /// Whether this is null (or undefined).
  @inlinable
  public var isNull: Bool { type == .null }

  /// Whether this is `undefined`, which as a member of a dictionary means that there is none.
  @inlinable @inline(__always)
  var isUndefined: Bool { position[0] & 0xFC == 0x3C }

  /// The boolean, or nil for another kind of value.
  @inlinable
  public var bool: Bool? {
    switch position[0] & 0xFC {
    case 0x34: false
    case 0x38: true
    default: nil
    }
  }

  /// The integer, or nil for doubles, other kinds of value and integers above `Int64.max`.
  @inlinable
  public var int: Int64? {
    guard let integer else { return nil }
    return integer.isUnsigned && integer.bits > UInt64(Int64.max) ? nil : Int64(bitPattern: integer.bits)
  }

  /// The integer when it isn't negative, or nil.
  @inlinable
  public var uint: UInt64? {
    guard let integer else { return nil }
    return !integer.isUnsigned && Int64(bitPattern: integer.bits) < 0 ? nil : integer.bits
  }

  /// The number, an integer converted, or nil for another kind of value.
  @inlinable
  public var double: Double? {
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

  /// The 64 bits of an integer, and whether they are unsigned.
  @inlinable @inline(__always)
  var integer: (bits: UInt64, isUnsigned: Bool)? {
    let header = position[0]
    if header < 0x10 {
      let twelve = UInt16(header) << 8 | UInt16(position[1])
      return (UInt64(bitPattern: Int64(Int16(bitPattern: twelve << 4) >> 4)), false)
    }
    guard header < 0x20 else { return nil }
    let count = Int(header & 7) + 1
    guard limit - position > count else { return nil }
    var bits: UInt64 = 0
    for index in 0..<count { bits |= UInt64(position[1 + index]) << UInt64(index * 8) }
    if header & 8 != 0 { return (bits, true) }
    let unused = UInt64(64 - count * 8)
    return (UInt64(bitPattern: Int64(bitPattern: bits << unused) >> Int64(unused)), false)
  }

  /// The string's UTF-8 bytes in place, or nil for another kind of value. They are as stored: not checked.
  @inlinable
  public var utf8: UnsafeRawBufferPointer? { bytes(Tag.string) }

  /// The string, or nil for another kind of value and for bytes that aren't UTF-8.
  public var string: String? {
    utf8.flatMap { String(utf8: $0) }
  }

  /// The binary data in place, or nil for another kind of value.
  @inlinable
  public var data: UnsafeRawBufferPointer? { bytes(Tag.data) }

  @inlinable @inline(__always)
  func bytes(_ tag: UInt8) -> UnsafeRawBufferPointer? {
    let header = position[0]
    guard header &>> 4 == tag else { return nil }
    var length = Int(header & 15)
    var first = position + 1
    if length == 15 {
      guard let (value, size) = readVarint(first, limit) else { return nil }
      length = value
      first += size
    }
    guard limit - first >= length else { return nil }
    return UnsafeRawBufferPointer(start: first, count: length)
  }
}

/// Reads a varint of at most 32 bits before `limit`: its value and how many bytes it takes (1...5).
@usableFromInline
func readVarint(_ position: UnsafePointer<UInt8>, _ limit: UnsafePointer<UInt8>) -> (Int, Int)? {
  var value = 0
  for index in 0..<5 {
    guard position + index < limit else { return nil }
    let byte = Int(position[index])
    value |= (byte & 0x7F) << (7 * index)
    if byte < 0x80 { return value <= Int(UInt32.max) ? (value, index + 1) : nil }
  }
  return nil
}

/// Where reading begins.
public enum FleeceReader {
  /// The root value of a body, or nil when the bytes don't end in one. Only what is needed to find it is checked:
  /// a damaged value further in reads as missing when it is met.
  @inlinable
  public static func root(of bytes: UnsafeRawBufferPointer) -> UnsafeValue? {
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
