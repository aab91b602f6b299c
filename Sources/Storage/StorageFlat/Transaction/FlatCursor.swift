import Bytes
import Storage

/// A cursor of a `FlatEngine`.
final class FlatCursor: Cursor {
  private enum Place {
    case beforeFirst, onEntry, afterLast
  }

  private let transaction: FlatTransaction
  private let keyspace: Keyspace
  private let lower: [UInt8]
  private let upper: [UInt8]
  private var iterator: (any FlatIterator)?
  private var place = Place.beforeFirst
  /// The number of closures to which its entry is currently lent.
  private var lent = 0
  /// The value of `FlatTransaction.writes` when the cursor was placed.
  private var writes: Int

  init(_ transaction: FlatTransaction, _ keyspace: Keyspace, _ range: KeyRange) {
    self.transaction = transaction
    self.keyspace = keyspace
    (lower, upper) = FlatKey.bounds(range, keyspace.number)
    writes = transaction.writes
  }

  deinit { closeIterator() }

  /// Called before the transaction ends.
  func closeIterator() {
    guard !transaction.engine.isForked else { return }
    iterator?.close()
    iterator = nil
  }

  func seek(_ key: RawSpan) throws -> Bool {
    try renew()
    return try FlatKey.with(key, keyspace.number) { key in
      try lower.withUnsafeBytes { lower in
        try stand(compareBytes(lower, key) < 0 ? key : lower)
      }
    }
  }

  func first() throws -> Bool {
    try renew()
    return try lower.withUnsafeBytes { try stand($0) }
  }

  func last() throws -> Bool {
    try renew()
    return try standBeforeEnd()
  }

  func next() throws -> Bool {
    try checkPlace()
    try checkNotLent()
    switch place {
    case .beforeFirst: return try lower.withUnsafeBytes { try stand($0) }
    case .onEntry:
      let isOnEntry = try iterator?.next() ?? false
      place = isOnEntry ? .onEntry : .afterLast
      return isOnEntry
    case .afterLast: return false
    }
  }

  func previous() throws -> Bool {
    try checkPlace()
    try checkNotLent()
    switch place {
    case .beforeFirst: return false
    case .onEntry:
      let isOnEntry = try iterator?.previous() ?? false
      place = isOnEntry ? .onEntry : .beforeFirst
      return isOnEntry
    case .afterLast: return try standBeforeEnd()
    }
  }

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    try checkPlace()
    guard place == .onEntry, let iterator else { throw notOnEntry() }
    let (key, value) = try iterator.entry()
    lent += 1
    transaction.beginLending()
    defer {
      lent -= 1
      transaction.endLending()
    }
    try body(key.ownKey.bytes, value.bytes)
  }

  private func stand(_ key: UnsafeRawBufferPointer) throws -> Bool {
    let isOnEntry = try open()?.seek(key) ?? false
    place = isOnEntry ? .onEntry : .afterLast
    return isOnEntry
  }

  private func standBeforeEnd() throws -> Bool {
    let isOnEntry = try upper.withUnsafeBytes { upper in try open()?.seek(before: upper) ?? false }
    place = isOnEntry ? .onEntry : .beforeFirst
    return isOnEntry
  }

  /// The iterator; nil if the range is empty.
  private func open() throws -> (any FlatIterator)? {
    if let iterator { return iterator }
    guard FlatKey.isLess(lower, upper) else { return nil }
    iterator = try transaction.base.iterator(from: lower, to: upper)
    return iterator
  }

  /// Makes the cursor see the writes since it was placed.
  private func renew() throws {
    try checkNotLent()
    try transaction.check(keyspace)
    guard writes != transaction.writes else { return }
    closeIterator()
    writes = transaction.writes
  }

  private func checkPlace() throws {
    try transaction.checkOpen()
    guard writes == transaction.writes else { throw notOnEntry() }
  }

  private func checkNotLent() throws {
    try transaction.checkOpen()
    if lent > 0 { throw StorageError(.bytesAreLent, "a cursor moves while its entry is lent") }
  }

  private func notOnEntry() -> StorageError {
    StorageError(.notOnEntry, "the cursor is on no entry; place it with seek, first or last")
  }
}
