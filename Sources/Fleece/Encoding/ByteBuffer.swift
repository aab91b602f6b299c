// Growable raw memory for the encoder. It has no bounds checks and no copy on write, and it is reused for
// many documents.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// A buffer that grows at the end. Its owner calls `free()`. Writes after `reserve` aren't checked.
struct ByteBuffer {
  private(set) var base: UnsafeMutablePointer<UInt8>
  var count = 0
  private(set) var capacity: Int

  init(capacity: Int = 4096) {
    base = .allocate(capacity: capacity)
    self.capacity = capacity
  }

  func free() { base.deallocate() }

  var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: base, count: count) }

  /// Makes room for `extra` bytes after `count`.
  @inline(__always)
  mutating func reserve(_ extra: Int) {
    if _slowPath(capacity &- count < extra) { grow(extra) }
  }

  @inline(never)
  private mutating func grow(_ extra: Int) {
    let wanted = max(capacity * 2, count + extra)
    let larger = UnsafeMutablePointer<UInt8>.allocate(capacity: wanted)
    larger.update(from: base, count: count)
    base.deallocate()
    base = larger
    capacity = wanted
  }

  /// Empties the buffer. Memory beyond `kept` bytes is released.
  mutating func reset(kept: Int) {
    count = 0
    if capacity > kept {
      base.deallocate()
      base = .allocate(capacity: 4096)
      capacity = 4096
    }
  }

  @inline(__always)
  mutating func appendByte(_ byte: UInt8) {
    reserve(1)
    base[count] = byte
    count &+= 1
  }

  /// Appends the low `length` bytes of a word, at most 8.
  @inline(__always)
  mutating func appendWord(_ word: UInt64, count length: Int) {
    reserve(8)
    UnsafeMutableRawPointer(base + count).storeBytes(of: word, as: UInt64.self)
    count &+= length
  }

  mutating func append(_ source: UnsafePointer<UInt8>, _ length: Int) {
    reserve(length)
    memcpy(base + count, source, length)
    count &+= length
  }

}

/// A stack of trivial elements in raw memory, accessed by index. Its owner calls `free()`.
struct RawStack<Element: BitwiseCopyable> {
  private(set) var base: UnsafeMutablePointer<Element>
  var count = 0
  private(set) var capacity: Int

  init(capacity: Int = 256) {
    base = .allocate(capacity: capacity)
    self.capacity = capacity
  }

  func free() { base.deallocate() }

  @inline(__always)
  mutating func reserve(_ extra: Int) {
    if _slowPath(capacity &- count < extra) { grow(extra) }
  }

  @inline(never)
  private mutating func grow(_ extra: Int) {
    let wanted = max(capacity * 2, count + extra)
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: wanted)
    larger.update(from: base, count: count)
    base.deallocate()
    base = larger
    capacity = wanted
  }

  @inline(__always)
  mutating func push(_ element: Element) {
    reserve(1)
    base[count] = element
    count &+= 1
  }

  /// Empties the stack. Memory beyond `kept` elements is released.
  mutating func reset(kept: Int) {
    count = 0
    if capacity > kept {
      base.deallocate()
      base = .allocate(capacity: 256)
      capacity = 256
    }
  }
}

/// Compares two byte strings as unsigned bytes. If one is a prefix of the other, the shorter one is first.
@inline(__always)
func compareBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
  let shared = min(left.count, right.count)
  if shared > 0, let leftStart = left.baseAddress, let rightStart = right.baseAddress {
    let order = Int(memcmp(leftStart, rightStart, shared))
    if order != 0 { return order }
  }
  return left.count - right.count
}
