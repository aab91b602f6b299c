import Storage

/// A cursor of a `StrictEngine`.
final class StrictCursor: Cursor {
  private let transaction: StrictSnapshot
  private let wrapped: any Cursor
  /// The number of closures to which its entry is currently lent.
  private var lent = 0
  /// The value of `StrictSnapshot.writes` when the cursor was placed.
  private var writes: Int

  init(_ transaction: StrictSnapshot, _ wrapped: any Cursor) {
    self.transaction = transaction
    self.wrapped = wrapped
    writes = transaction.writes
  }

  func seek(_ key: RawSpan) throws -> Bool {
    try beginPlacing()
    return try GuardedMemory.withCopy(of: key) { try wrapped.seek($0) }
  }

  func first() throws -> Bool {
    try beginPlacing()
    return try wrapped.first()
  }

  func last() throws -> Bool {
    try beginPlacing()
    return try wrapped.last()
  }

  func next() throws -> Bool {
    try beginMoving()
    return try wrapped.next()
  }

  func previous() throws -> Bool {
    try beginMoving()
    return try wrapped.previous()
  }

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    try transaction.checkOpen()
    try checkPlace()
    lent += 1
    defer { lent -= 1 }
    try wrapped.lendEntry { try transaction.lend($0, $1, body) }
  }

  private func beginPlacing() throws {
    try transaction.checkOpen()
    try checkNotLent()
    writes = transaction.writes
  }

  private func beginMoving() throws {
    try transaction.checkOpen()
    try checkNotLent()
    try checkPlace()
  }

  private func checkNotLent() throws {
    if lent > 0 {
      throw StorageError(.bytesAreLent, "a cursor moves while its entry is lent", path: transaction.path)
    }
  }

  private func checkPlace() throws {
    guard writes == transaction.writes else {
      throw StorageError(
        .notOnEntry, "a write has left the cursor nowhere: place it by seek, first or last",
        path: transaction.path)
    }
  }
}
