/// Reads lent bytes from the front, never past their end. A read for which too few bytes are left returns nil
/// and takes none. Neither a reader nor what it returns can outlive the bytes.
@usableFromInline
package struct ByteReader: ~Escapable {
  @usableFromInline var unread: RawSpan

  /// Creates a reader of lent bytes.
  @_lifetime(copy bytes)
  @inlinable @inline(__always)
  package init(_ bytes: RawSpan) { unread = bytes }

  /// The bytes that aren't read yet.
  @inlinable @inline(__always)
  package var rest: RawSpan {
    @_lifetime(copy self)
    get { unread }
  }

  /// Reads a byte.
  @inlinable @inline(__always)
  package mutating func byte() -> UInt8? {
    guard unread.byteCount > 0 else { return nil }
    let value = unread.unsafeLoad(as: UInt8.self)
    unread = unread.extracting(droppingFirst: 1)
    return value
  }

  /// Reads `count` bytes in place.
  @inlinable @inline(__always)
  @_lifetime(copy self)
  package mutating func bytes(_ count: Int) -> RawSpan? {
    guard count >= 0, count <= unread.byteCount else { return nil }
    let taken = unread.extracting(first: count)
    unread = unread.extracting(droppingFirst: count)
    return taken
  }

  /// Reads a varint.
  @inlinable @inline(__always)
  package mutating func varint() -> UInt64? {
    guard unread.byteCount > 0 else { return nil }
    let first = unread.unsafeLoad(as: UInt8.self)
    guard first < 0x80 else { return longVarint() }
    unread = unread.extracting(droppingFirst: 1)
    return UInt64(first)
  }

  @usableFromInline
  mutating func longVarint() -> UInt64? {
    let read = unread.withUnsafeBytes { bytes -> (value: UInt64, length: Int)? in
      guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return nil }
      return Varint.read(start, before: start + bytes.count)
    }
    guard let read else { return nil }
    unread = unread.extracting(droppingFirst: read.length)
    return read.value
  }

  /// Reads an integer of eight bytes, the highest first.
  @inlinable
  package mutating func bigEndian() -> UInt64? {
    guard let taken = bytes(8) else { return nil }
    return UInt64(bigEndian: taken.unsafeLoadUnaligned(as: UInt64.self))
  }
}
