#if canImport(Glibc)
  import Glibc
#endif

/// A growing buffer of bytes that is reused. It is the writer's scratch space: no allocation or bounds check
/// for each byte.
struct ByteBuffer: ~Copyable {
  private(set) var start: UnsafeMutableRawPointer
  private(set) var count = 0
  private var capacity: Int

  init(capacity: Int = 4096) {
    self.capacity = max(capacity, 64)
    start = .allocate(byteCount: self.capacity, alignment: 16)
  }

  deinit { start.deallocate() }

  /// Valid until the buffer changes. The writer fills its buffers in one call and uses them in others.
  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

  mutating func removeAll() { count = 0 }

  @inline(__always)
  mutating func reserve(_ more: Int) {
    if capacity - count < more { grow(more) }
  }

  @inline(never)
  private mutating func grow(_ more: Int) {
    let larger = max(capacity * 2, count + more)
    let target = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 16)
    target.copyMemory(from: start, byteCount: count)
    start.deallocate()
    start = target
    capacity = larger
  }

  @inline(__always)
  mutating func append(_ byte: UInt8) {
    reserve(1)
    start.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
    count += 1
  }

  @inline(__always)
  mutating func append(_ bytes: UnsafeRawBufferPointer) {
    guard let source = bytes.baseAddress, bytes.count > 0 else { return }
    reserve(bytes.count)
    (start + count).copyMemory(from: source, byteCount: bytes.count)
    count += bytes.count
  }

  /// Appends a copy of lent bytes.
  @inline(__always)
  mutating func append(_ bytes: RawSpan) { bytes.withUnsafeBytes { append($0) } }

  /// Appends `more` bytes for the caller to fill.
  @inline(__always)
  mutating func appendUninitialized(_ more: Int) -> UnsafeMutableRawPointer {
    reserve(more)
    defer { count += more }
    return start + count
  }

  /// Appends the bytes for lower-case hex of even length. Returns false, and appends nothing, for any other
  /// text.
  mutating func append(hex text: UnsafeRawBufferPointer) -> Bool {
    guard text.count.isMultiple(of: 2) else { return false }
    reserve(text.count / 2)
    for index in 0..<(text.count / 2) {
      guard let high = hexValue(text[index * 2]), let low = hexValue(text[index * 2 + 1]) else {
        return false
      }
      start.storeBytes(of: high << 4 | low, toByteOffset: count + index, as: UInt8.self)
    }
    count += text.count / 2
    return true
  }

  @inline(__always)
  mutating func append(varint value: UInt64) {
    reserve(10)
    var rest = value
    while rest >= 0x80 {
      start.storeBytes(of: UInt8(truncatingIfNeeded: rest) | 0x80, toByteOffset: count, as: UInt8.self)
      count += 1
      rest >>= 7
    }
    start.storeBytes(of: UInt8(truncatingIfNeeded: rest), toByteOffset: count, as: UInt8.self)
    count += 1
  }

  @inline(__always)
  mutating func append(littleEndian value: UInt32) {
    withUnsafeBytes(of: value.littleEndian) { append($0) }
  }

  @inline(__always)
  mutating func append(bigEndian value: UInt64) {
    reserve(8)
    start.storeBytes(of: value.bigEndian, toByteOffset: count, as: UInt64.self)
    count += 8
  }
}

/// Reads bytes from the front, never past the end. At the end every read returns nil.
struct ByteReader: ~Escapable {
  private(set) var rest: RawSpan

  @_lifetime(copy bytes)
  init(_ bytes: RawSpan) { rest = bytes }

  @inline(__always)
  mutating func byte() -> UInt8? {
    guard rest.byteCount > 0 else { return nil }
    let value = rest.unsafeLoad(as: UInt8.self)
    rest = rest.extracting(droppingFirst: 1)
    return value
  }

  @inline(__always)
  @_lifetime(copy self)
  mutating func bytes(_ count: Int) -> RawSpan? {
    guard count >= 0, count <= rest.byteCount else { return nil }
    let taken = rest.extracting(first: count)
    rest = rest.extracting(droppingFirst: count)
    return taken
  }

  @inline(__always)
  mutating func varint() -> UInt64? {
    guard rest.byteCount > 0 else { return nil }
    let first = rest.unsafeLoad(as: UInt8.self)
    guard first < 0x80 else { return longVarint() }
    rest = rest.extracting(droppingFirst: 1)
    return UInt64(first)
  }

  private mutating func longVarint() -> UInt64? {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    for index in 0..<min(10, rest.byteCount) {
      let byte = rest.unsafeLoad(fromByteOffset: index, as: UInt8.self)
      if shift == 63, byte > 1 { return nil }
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 {
        rest = rest.extracting(droppingFirst: index + 1)
        return value
      }
      shift += 7
    }
    return nil
  }

  mutating func bigEndian() -> UInt64? {
    guard let taken = bytes(8) else { return nil }
    return UInt64(bigEndian: taken.unsafeLoadUnaligned(as: UInt64.self))
  }
}
