import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Copies of bytes that can't be touched before or after they are lent.
///
/// A copy ends where a page begins that can never be touched, so a read past its end is a fault of memory at once. When the
/// closure returns, its own pages can't be touched either. They are used again as late as possible: a pointer that was
/// kept meets other bytes only after hundreds of later copies.
///
/// Any thread may use it.
enum GuardedMemory {
  /// Pages that lie behind one another, of which the last can never be touched.
  private struct Slot: @unchecked Sendable {
    var start: UnsafeMutableRawPointer
    /// How many bytes lie before the guard.
    var bytes: Int

    func protect(_ protection: Int32) throws {
      guard mprotect(start, bytes, protection) == 0 else {
        throw StorageError(.engineFailure, "mprotect: errno \(errno)")
      }
    }
  }

  /// Slots of one size that nobody uses, the one that was given back first in front.
  private struct Queue {
    let bytes: Int
    /// How many rest before the first is used again.
    let rests: Int
    var slots: [Slot] = []
    var head = 0

    var count: Int { slots.count - head }

    mutating func take() throws -> Slot {
      if count <= rests {
        let slabs = max(16, rests / 4)
        let stride = bytes + GuardedMemory.pageBytes
        let start = try GuardedMemory.map(slabs * stride)
        // New slots go behind those that rest.
        for index in 0..<slabs {
          let slot = Slot(start: start + index * stride, bytes: bytes)
          slots.append(slot)
          // Makes the guard another kind of memory than the slot. Otherwise the kernel joins the two whenever the
          // slot is at rest, and splits them again: three times the cost of a copy. Where it can't be done, no more
          // than time is lost.
          _ = madvise(slot.start + bytes, GuardedMemory.pageBytes, MADV_DONTDUMP)
        }
      }
      let slot = slots[head]
      head += 1
      if head * 2 > slots.count {
        slots.removeFirst(head)
        head = 0
      }
      return slot
    }

    mutating func give(_ slot: Slot) { slots.append(slot) }
  }

  private struct State {
    var small = Queue(bytes: GuardedMemory.pageBytes, rests: 512)
    var medium = Queue(bytes: 16 * GuardedMemory.pageBytes, rests: 48)
    /// Larger ones, which are unmapped after a while.
    var large: [Slot] = []
  }

  private static let pageBytes = Int(sysconf(Int32(_SC_PAGESIZE)))
  private static let restingLargeSlots = 8
  private static let state = Lock(State())

  /// Lends a copy of `bytes` to `body`.
  static func withCopy<Result>(of bytes: RawSpan, _ body: (RawSpan) throws -> Result) throws -> Result {
    let slot = try take(bytes.byteCount)
    defer { give(slot) }
    let start = slot.start + (slot.bytes - bytes.byteCount)
    bytes.withUnsafeBytes { source in
      if let from = source.baseAddress { start.copyMemory(from: from, byteCount: source.count) }
    }
    return try body(UnsafeRawBufferPointer(start: start, count: bytes.byteCount).bytes)
  }

  /// A copy that ends when it is told to, for calls that hand out pointers.
  final class Copy {
    private var slot: Slot?
    let bytes: UnsafeRawBufferPointer

    init(_ source: UnsafeRawBufferPointer) throws {
      let slot = try GuardedMemory.take(source.count)
      let start = slot.start + (slot.bytes - source.count)
      if let from = source.baseAddress { start.copyMemory(from: from, byteCount: source.count) }
      self.slot = slot
      bytes = UnsafeRawBufferPointer(start: start, count: source.count)
    }

    deinit { end() }

    func end() {
      guard let slot else { return }
      self.slot = nil
      GuardedMemory.give(slot)
    }
  }

  private static func take(_ count: Int) throws -> Slot {
    let slot = try state.withLock { state in
      if count <= state.small.bytes { return try state.small.take() }
      if count <= state.medium.bytes { return try state.medium.take() }
      let bytes = (count + pageBytes - 1) / pageBytes * pageBytes
      return Slot(start: try map(bytes + pageBytes), bytes: bytes)
    }
    try slot.protect(PROT_READ | PROT_WRITE)
    return slot
  }

  private static func give(_ slot: Slot) {
    // Can't fail: these pages have been protected so before.
    _ = mprotect(slot.start, slot.bytes, PROT_NONE)
    state.withLock { state in
      if slot.bytes == state.small.bytes { return state.small.give(slot) }
      if slot.bytes == state.medium.bytes { return state.medium.give(slot) }
      // Its memory goes back now, its addresses later.
      madvise(slot.start, slot.bytes, MADV_DONTNEED)
      state.large.append(slot)
      guard state.large.count > restingLargeSlots else { return }
      let oldest = state.large.removeFirst()
      munmap(oldest.start, oldest.bytes + pageBytes)
    }
  }

  /// New pages that can't be touched.
  private static func map(_ bytes: Int) throws -> UnsafeMutableRawPointer {
    guard let start = mmap(nil, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
      start != MAP_FAILED
    else { throw StorageError(.engineFailure, "mmap of \(bytes) bytes: errno \(errno)") }
    return start
  }
}
