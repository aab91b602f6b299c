/// A stack of trivial elements in memory of its own, accessed by index. It has no bounds checks and is reused for
/// many documents. Writes after `reserve` aren't checked.
struct RawStack<Element: BitwiseCopyable>: ~Copyable {
  private(set) var base: UnsafeMutablePointer<Element>
  var count = 0
  private(set) var capacity: Int

  /// Creates an empty stack. With a capacity of 0, it takes memory only when something is pushed.
  init(capacity: Int = 256) {
    base = capacity > 0 ? .allocate(capacity: capacity) : Self.noMemory
    self.capacity = capacity
  }

  deinit { if capacity > 0 { base.deallocate() } }

  private static var noMemory: UnsafeMutablePointer<Element> {
    UnsafeMutablePointer(bitPattern: MemoryLayout<Element>.alignment).unsafelyUnwrapped
  }

  @inline(__always)
  mutating func reserve(_ extra: Int) {
    if _slowPath(capacity &- count < extra) { grow(extra) }
  }

  @inline(never)
  private mutating func grow(_ extra: Int) {
    let wanted = max(capacity * 2, count + extra)
    let larger = UnsafeMutablePointer<Element>.allocate(capacity: wanted)
    larger.update(from: base, count: count)
    if capacity > 0 { base.deallocate() }
    base = larger
    capacity = wanted
  }

  @inline(__always)
  mutating func push(_ element: Element) {
    reserve(1)
    base[count] = element
    count &+= 1
  }

  /// Removes all elements. Memory of more than `kept` elements is exchanged for that of a new stack.
  mutating func removeAll(keepingAtMost kept: Int) {
    count = 0
    if capacity > kept { self = RawStack() }
  }
}
