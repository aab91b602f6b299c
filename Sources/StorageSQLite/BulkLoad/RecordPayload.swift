// A record of SQLite's file format:
//
//   record := headerBytes:varint type:varint* content      headerBytes counts itself
//   type   := 0 NULL | 1, 2, 3, 4, 5, 6 an integer of 1, 2, 3, 4, 6, 8 bytes | 8 zero | 9 one | 12 + 2n a blob of n bytes
//   varint := 1 to 9 bytes, 7 bits each, the highest first, all but the last with bit 7 set; a ninth has 8 bits

#if canImport(Glibc)
  import Glibc
#endif

/// Integers of variable length.
enum Varint {
  @inline(__always)
  static func count(_ value: UInt64) -> Int {
    if value < 0x80 { return 1 }
    let bits = 64 - value.leadingZeroBitCount
    return bits > 56 ? 9 : (bits + 6) / 7
  }

  /// Writes it, and moves `place` behind it.
  @inline(__always)
  static func write(_ value: UInt64, to place: inout UnsafeMutableRawPointer) {
    let count = count(value)
    var left = value
    var index = count - 1
    if count == 9 {
      place.storeBytes(of: UInt8(truncatingIfNeeded: left), toByteOffset: 8, as: UInt8.self)
      left >>= 8
      index = 7
    }
    let last = index
    while index >= 0 {
      let more: UInt8 = index == last && count < 9 ? 0 : 0x80
      place.storeBytes(of: UInt8(truncatingIfNeeded: left) & 0x7F | more, toByteOffset: index, as: UInt8.self)
      left >>= 7
      index -= 1
    }
    place += count
  }
}

/// The bytes of a record from where they are read on: its header, and two contents as they lie.
struct RecordPayload {
  /// The most that a header of three columns has.
  static let maximumHeaderBytes = 16

  private var header: UnsafeRawBufferPointer
  private var first: UnsafeRawBufferPointer
  private var second: UnsafeRawBufferPointer

  init(header: UnsafeRawBufferPointer, _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer) {
    self.header = header
    self.first = first
    self.second = second
  }

  /// Bytes that are left.
  @inline(__always) var count: Int { header.count + first.count + second.count }

  /// Copies the next bytes.
  @inline(__always)
  mutating func read(_ count: Int, to place: UnsafeMutableRawPointer) {
    var place = place
    var left = count
    Self.take(&header, &left, &place)
    Self.take(&first, &left, &place)
    Self.take(&second, &left, &place)
  }

  @inline(__always)
  private static func take(
    _ part: inout UnsafeRawBufferPointer, _ left: inout Int, _ place: inout UnsafeMutableRawPointer
  ) {
    let count = min(part.count, left)
    guard count > 0, let start = part.baseAddress else { return }
    memcpy(place, start, count)
    part = UnsafeRawBufferPointer(rebasing: part[count...])
    place += count
    left -= count
  }

  /// Writes a header of these types into `memory`, which has `maximumHeaderBytes`.
  @inline(__always)
  static func header(
    _ types: (UInt64?, UInt64, UInt64?), in memory: UnsafeMutableRawPointer
  ) -> UnsafeRawBufferPointer {
    var place = memory + 1
    if let type = types.0 { Varint.write(type, to: &place) }
    Varint.write(types.1, to: &place)
    if let type = types.2 { Varint.write(type, to: &place) }
    let count = place - memory
    memory.storeBytes(of: UInt8(truncatingIfNeeded: count), as: UInt8.self)
    return UnsafeRawBufferPointer(start: memory, count: count)
  }

  @inline(__always)
  static func type(ofBlob bytes: Int) -> UInt64 { 12 + 2 * UInt64(bytes) }

  /// The type of an integer that isn't negative, and how many bytes it takes.
  @inline(__always)
  static func type(ofInteger value: UInt64) -> (type: UInt64, bytes: Int) {
    switch value {
    case 0: (8, 0)
    case 1: (9, 0)
    case ..<0x80: (1, 1)
    case ..<0x8000: (2, 2)
    case ..<0x80_0000: (3, 3)
    case ..<0x8000_0000: (4, 4)
    case ..<0x8000_0000_0000: (5, 6)
    default: (6, 8)
    }
  }
}
