import Foundation
import Storage

/// Copies of bytes that cause a fault if they are accessed outside their lifetime or past their end.
///
/// A copy ends at an inaccessible guard page, so a read past its end faults at once. When the closure
/// returns, its own pages become inaccessible too. They are reused as late as possible: a kept pointer sees
/// other bytes only after hundreds of later copies.
///
/// Thread-safe.
enum GuardedMemory {
  /// A run of pages followed by a guard page.
  private struct Slot: @unchecked Sendable {
    var start: UnsafeMutableRawPointer
    /// The number of bytes before the guard page.
    var bytes: Int

    func protect(_ protection: Int32) throws {
      guard mprotect(start, bytes, protection) == 0 else {
        throw StorageError(.engineFailure, "mprotect: errno \(errno)")
      }
    }
  }

  /// Unused slots of one size. The one that was returned first is taken first.
  private struct Queue {
    let bytes: Int
    /// The number of unused slots above which the first is reused.
    let rests: Int
    var slots: [Slot] = []
    var head = 0

    var count: Int { slots.count - head }

    mutating func take() throws -> Slot {
      if count <= rests {
        let slabs = max(16, rests / 4)
        let stride = bytes + GuardedMemory.pageBytes
        let start = try GuardedMemory.map(slabs * stride)
        // New slots are added after the unused ones.
        for index in 0..<slabs {
          let slot = Slot(start: start + index * stride, bytes: bytes)
          slots.append(slot)
          // Gives the guard page other flags than the slot. Otherwise the kernel would merge the two when the
          // slot becomes inaccessible and split them again later, which takes three times as long as a copy.
          // If this call fails, only time is lost.
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
    /// Larger slots. They are unmapped after a while.
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

  /// Lends copies of a key and a value to `body`.
  static func withCopies<Result>(
    of key: RawSpan, _ value: RawSpan, _ body: (RawSpan, RawSpan) throws -> Result
  ) throws -> Result {
    try withCopy(of: key) { key in try withCopy(of: value) { try body(key, $0) } }
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
    // Can't fail, because these pages had this protection before.
    _ = mprotect(slot.start, slot.bytes, PROT_NONE)
    state.withLock { state in
      if slot.bytes == state.small.bytes { return state.small.give(slot) }
      if slot.bytes == state.medium.bytes { return state.medium.give(slot) }
      // Frees the memory now and the address range later.
      madvise(slot.start, slot.bytes, MADV_DONTNEED)
      state.large.append(slot)
      guard state.large.count > restingLargeSlots else { return }
      let oldest = state.large.removeFirst()
      munmap(oldest.start, oldest.bytes + pageBytes)
    }
  }

  /// Maps new inaccessible pages.
  private static func map(_ bytes: Int) throws -> UnsafeMutableRawPointer {
    guard let start = mmap(nil, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
      start != MAP_FAILED
    else { throw StorageError(.engineFailure, "mmap of \(bytes) bytes: errno \(errno)") }
    return start
  }
}
