import Storage

/// What is open at each path, and a lock for each: who opens one path doesn't wait for others.
final class PathLocks<Value: Sendable>: Sendable {
  private final class Slot: Sendable {
    let value = Lock<Value?>(nil)
    /// How many threads hold or wait for the lock. Guarded by `slots`.
    nonisolated(unsafe) var users = 0
  }

  private let slots = Lock<[ByteString: Slot]>([:])

  /// Runs `body` with what is open at `path`, which it may change, while no other thread does.
  func withLock<Result>(_ path: String, _ body: (inout Value?) throws -> Result) rethrows -> Result {
    // Two names of the file system are one when their bytes are.
    let path = ByteString(path)
    let slot = slots.withLock { slots in
      let slot = slots[path] ?? Slot()
      slots[path] = slot
      slot.users += 1
      return slot
    }
    defer {
      slots.withLock { slots in
        slot.users -= 1
        if slot.users == 0, slot.value.withLock({ $0 == nil }) { slots[path] = nil }
      }
    }
    return try slot.value.withLock { try body(&$0) }
  }
}
