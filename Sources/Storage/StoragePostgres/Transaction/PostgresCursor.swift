import Bytes
import Storage

/// A cursor of a `PostgresEngine`: a stream in the direction of its last move. A move in the other direction begins another one.
final class PostgresCursor: Cursor {
  private enum Place {
    case beforeFirst, onEntry, afterLast
  }

  private let transaction: PostgresTransaction
  private let keyspace: Keyspace
  private let lower: [UInt8]
  private let upper: [UInt8]
  private var stream: EntryStream?
  private var isDescending = false
  private var place = Place.beforeFirst
  /// The number of closures to which its entry is currently lent.
  private var lent = 0
  /// The value of `PostgresTransaction.writes` when the cursor was placed.
  private var writes: Int

  init(_ transaction: PostgresTransaction, _ keyspace: Keyspace, _ range: KeyRange) {
    self.transaction = transaction
    self.keyspace = keyspace
    (lower, upper) = EntryKey.bounds(range)
    writes = transaction.writes
  }

  func seek(_ key: RawSpan) throws -> Bool {
    let isCurrent = writes == transaction.writes
    try renew()
    if isCurrent, !isDescending, place == .onEntry, let stream, stream.skip(to: key) { return true }
    let wanted = [UInt8](copying: key)
    return try begin(from: EntryKey.isLess(wanted, lower) ? lower : wanted, to: upper, isDescending: false)
  }

  func first() throws -> Bool {
    try renew()
    return try begin(from: lower, to: upper, isDescending: false)
  }

  func last() throws -> Bool {
    try renew()
    return try begin(from: lower, to: upper, isDescending: true)
  }

  func next() throws -> Bool {
    try checkPlace()
    try checkNotLent()
    switch place {
    case .beforeFirst: return try begin(from: lower, to: upper, isDescending: false)
    case .afterLast: return false
    case .onEntry:
      if !isDescending { return try move() }
      return try begin(from: key + [0], to: upper, isDescending: false)
    }
  }

  func previous() throws -> Bool {
    try checkPlace()
    try checkNotLent()
    switch place {
    case .beforeFirst: return false
    case .afterLast: return try begin(from: lower, to: upper, isDescending: true)
    case .onEntry:
      if isDescending { return try move() }
      return try begin(from: lower, to: key, isDescending: true)
    }
  }

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    try checkPlace()
    guard place == .onEntry, let stream else { throw notOnEntry() }
    lent += 1
    transaction.beginLending()
    defer {
      lent -= 1
      transaction.endLending()
    }
    try transaction.reporting { try stream.lend(body) }
  }

  private var key: [UInt8] { stream?.copiedKey() ?? [] }

  private func begin(from lower: [UInt8], to upper: [UInt8], isDescending: Bool) throws -> Bool {
    self.isDescending = isDescending
    stream = EntryStream(
      transaction, keyspace.number, from: lower, to: upper, isDescending: isDescending, hasValues: true)
    return try move()
  }

  private func move() throws -> Bool {
    guard let stream else { return false }
    let isOnEntry = try transaction.reporting { try stream.next() }
    place = isOnEntry ? .onEntry : isDescending ? .beforeFirst : .afterLast
    return isOnEntry
  }

  private func renew() throws {
    try checkNotLent()
    try transaction.check(keyspace)
    writes = transaction.writes
  }

  private func checkPlace() throws {
    try transaction.checkOpen()
    guard writes == transaction.writes else { throw notOnEntry() }
  }

  private func checkNotLent() throws {
    if lent > 0 { throw StorageError(.bytesAreLent, "a cursor moves while its entry is lent") }
  }

  private func notOnEntry() -> StorageError {
    StorageError(.notOnEntry, "the cursor is on no entry; place it with seek, first or last")
  }
}
