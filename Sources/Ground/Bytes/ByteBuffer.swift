// The types of this module that hot code uses are `@usableFromInline`. Otherwise their `@inlinable` members aren't
// inlined into other modules, and nothing says so.

/// Bytes in memory of their own that grow at the end.
///
/// A buffer is made once and used for many documents, pages or rows. Its memory is freed with it. Appending
/// makes room. Code that writes through `base` calls `reserve` first and then sets `count`. Nothing checks
/// such writes.
@usableFromInline
package struct ByteBuffer: ~Copyable {
  @usableFromInline var memory: UnsafeMutablePointer<UInt8>
  @usableFromInline var room: Int

  /// The number of bytes. Code that wrote behind them, after `reserve`, adds what it wrote.
  @usableFromInline package var count = 0

  /// Creates an empty buffer with room for `capacity` bytes, and for 64 at least.
  @inlinable
  package init(capacity: Int = 4096) {
    room = max(capacity, 64)
    memory = .allocate(capacity: room)
  }

  @inlinable
  deinit { memory.deallocate() }

  /// The first byte. Valid until the buffer grows or ends.
  @inlinable @inline(__always)
  package var base: UnsafeMutablePointer<UInt8> { memory }

  /// The number of bytes that fit without growing.
  @inlinable @inline(__always)
  package var capacity: Int { room }

  /// The bytes in place. Valid until the buffer changes or ends. The caller sees to that.
  @inlinable @inline(__always)
  package var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: memory, count: count) }

  // MARK: Room

  /// Makes room for `more` bytes after `count`.
  @inlinable @inline(__always)
  package mutating func reserve(_ more: Int) {
    if _slowPath(room &- count < more) { grow(more) }
  }

  @usableFromInline @inline(never)
  mutating func grow(_ more: Int) {
    let larger = max(room * 2, count + more)
    let target = UnsafeMutablePointer<UInt8>.allocate(capacity: larger)
    target.update(from: memory, count: count)
    memory.deallocate()
    memory = target
    room = larger
  }

  /// Removes all bytes and keeps the memory.
  @inlinable @inline(__always)
  package mutating func removeAll() { count = 0 }

  /// Removes all bytes. Memory of more than `kept` bytes is exchanged for the memory of a new buffer.
  package mutating func removeAll(keepingAtMost kept: Int) {
    count = 0
    if room > kept { self = ByteBuffer() }
  }

  /// Removes all bytes after the first `length`.
  @inlinable @inline(__always)
  package mutating func truncate(to length: Int) { count = min(count, length) }

  // MARK: Bytes

  /// Appends a byte.
  @inlinable @inline(__always)
  package mutating func append(_ byte: UInt8) {
    reserve(1)
    memory[count] = byte
    count &+= 1
  }

  /// Appends a copy of bytes. They aren't the buffer's own.
  @inlinable @inline(__always)
  package mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    reserve(bytes.count)
    UnsafeMutableRawPointer(memory + count).copyMemory(from: source, byteCount: bytes.count)
    count &+= bytes.count
  }

  /// Appends a copy of lent bytes. They aren't the buffer's own.
  @inlinable @inline(__always)
  package mutating func append(_ bytes: RawSpan) { bytes.withUnsafeBytes { append($0) } }

  /// Appends `more` bytes for the caller to fill. The pointer is valid until the buffer grows or ends.
  @inlinable @inline(__always)
  package mutating func appendUninitialized(_ more: Int) -> UnsafeMutableRawPointer {
    reserve(more)
    defer { count &+= more }
    return UnsafeMutableRawPointer(memory + count)
  }

  // MARK: Numbers

  /// Appends the low `length` bytes of a word in memory order, at most 8.
  @inlinable @inline(__always)
  package mutating func append(word: UInt64, count length: Int) {
    reserve(8)
    UnsafeMutableRawPointer(memory + count).storeBytes(of: word, as: UInt64.self)
    count &+= length
  }

  /// Appends a varint.
  @inlinable @inline(__always)
  package mutating func append(varint value: UInt64) {
    reserve(Varint.maximumBytes)
    count &+= Varint.write(value, to: memory + count)
  }

  /// Appends a varint.
  @inlinable @inline(__always)
  package mutating func append(varint value: UInt32) { append(varint: UInt64(value)) }

  /// Appends an integer, its highest byte first.
  @inlinable @inline(__always)
  package mutating func append<Integer: FixedWidthInteger & BitwiseCopyable>(bigEndian value: Integer) {
    reserve(MemoryLayout<Integer>.size)
    UnsafeMutableRawPointer(memory + count).storeBytes(of: value.bigEndian, as: Integer.self)
    count &+= MemoryLayout<Integer>.size
  }

  /// Appends an integer, its lowest byte first.
  @inlinable @inline(__always)
  package mutating func append<Integer: FixedWidthInteger & BitwiseCopyable>(littleEndian value: Integer) {
    reserve(MemoryLayout<Integer>.size)
    UnsafeMutableRawPointer(memory + count).storeBytes(of: value.littleEndian, as: Integer.self)
    count &+= MemoryLayout<Integer>.size
  }
}
