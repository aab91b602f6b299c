import Storage

/// One value and one lock per path. Opening one path doesn't wait for others.
final class PathLocks<Value: Sendable>: Sendable {
  private final class Slot: Sendable {
    let value = Lock<Value?>(nil)
    /// The number of threads that hold or wait for the lock. Guarded by `slots`.
    nonisolated(unsafe) var users = 0
  }

  private let slots = Lock<[ByteString: Slot]>([:])

  /// Runs `body` with the value of `path`, which it may change. Other threads with the same path wait.
  func withLock<Result>(_ path: String, _ body: (inout Value?) throws -> Result) rethrows -> Result {
    // The file system compares names by their bytes.
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
