import Bytes

/// Reads stored bytes from the front and never past their end. Missing bytes throw `damaged`.
///
/// It holds pointers. Use it only inside the closure that the bytes were lent to, or over a `PageCopy` that
/// you own. `ByteReader` can't take its place: a stream of postings keeps a scanner from one call to the next, and
/// its loops move `next` themselves.
struct ByteScanner {
  var next: UnsafePointer<UInt8>
  let end: UnsafePointer<UInt8>

  @inline(__always)
  init(_ bytes: UnsafeRawBufferPointer) {
    let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) ?? ByteScanner.nowhere
    next = start
    end = start + bytes.count
  }

  private nonisolated(unsafe) static let nowhere: UnsafePointer<UInt8> = {
    let byte = UnsafeMutablePointer<UInt8>.allocate(capacity: 1)
    byte.initialize(to: 0)
    return UnsafePointer(byte)
  }()

  var isAtEnd: Bool { next >= end }
  var count: Int { end - next }
  var rest: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: next, count: end - next) }

  @inline(__always)
  mutating func byte() throws -> UInt8 {
    guard next < end else { throw InvertedIndexFormat.damaged }
    defer { next += 1 }
    return next.pointee
  }

  @inline(__always)
  mutating func bytes(_ count: Int) throws -> UnsafeRawBufferPointer {
    guard count >= 0, count <= end - next else { throw InvertedIndexFormat.damaged }
    defer { next += count }
    return UnsafeRawBufferPointer(start: next, count: count)
  }

  @inline(__always)
  mutating func varint32() throws -> UInt32 {
    if _fastPath(next < end), next.pointee < 0x80 {
      defer { next += 1 }
      return UInt32(next.pointee)
    }
    return try longVarint32()
  }

  @inline(never)
  private mutating func longVarint32() throws -> UInt32 {
    guard let value = UInt32(exactly: try longVarint64()) else { throw InvertedIndexFormat.damaged }
    return value
  }

  @inline(__always)
  mutating func varint64() throws -> UInt64 {
    if _fastPath(next < end), next.pointee < 0x80 {
      defer { next += 1 }
      return UInt64(next.pointee)
    }
    return try longVarint64()
  }

  @inline(never)
  private mutating func longVarint64() throws -> UInt64 {
    guard let (value, length) = Varint.read(next, before: end) else { throw InvertedIndexFormat.damaged }
    next += length
    return value
  }

  /// Reads a number of bytes or of items in memory.
  @inline(__always)
  mutating func length() throws -> Int { Int(try varint32()) }

  /// Skips `count` varints.
  @inline(__always)
  mutating func skipVarints(_ count: Int) throws {
    var left = count
    var place = next
    // A varint ends with a byte whose high bit is clear. Eight bytes are counted at once. The oldest
    // supported processors have no instruction that counts bits, so a multiplication adds up the bytes.
    let ones: UInt64 = 0x0101_0101_0101_0101
    while left >= 32, end - place >= 32 {
      let from = UnsafeRawPointer(place)
      var ends: UInt64 = 0
      for offset in stride(from: 0, to: 32, by: 8) {
        ends &+= (~from.loadUnaligned(fromByteOffset: offset, as: UInt64.self) >> 7) & ones
      }
      left &-= Int(truncatingIfNeeded: (ends &* ones) >> 56)
      place += 32
    }
    while left >= 8, end - place >= 8 {
      let word = UnsafeRawPointer(place).loadUnaligned(as: UInt64.self)
      left &-= Int(truncatingIfNeeded: (((~word >> 7) & ones) &* ones) >> 56)
      place += 8
    }
    while left > 0 {
      guard place < end else { throw InvertedIndexFormat.damaged }
      if place.pointee < 0x80 { left &-= 1 }
      place += 1
    }
    // `next` is never past the last varint: a group is only skipped when no more than the remaining varints
    // can end in it.
    next = place
  }
}
