import Storage

/// A cursor of a `MemoryEngine`.
final class MemoryCursor: Cursor {
  private enum Place {
    case beforeFirst, afterLast
    case at(SortedRecords.Position)
  }

  private let transaction: MemorySnapshot
  private let keyspace: Keyspace
  private let range: KeyRange
  private var records: SortedRecords
  private var bounds: (lower: SortedRecords.Position, upper: SortedRecords.Position)
  private var place = Place.beforeFirst
  /// The number of closures to which its entry is currently lent.
  private var lent = 0
  /// The value of `MemorySnapshot.writes` when the cursor was placed.
  private var writes: Int

  init(_ transaction: MemorySnapshot, _ keyspace: Keyspace, _ range: KeyRange, _ records: SortedRecords) {
    self.transaction = transaction
    self.keyspace = keyspace
    self.range = range
    self.records = records
    bounds = records.positions(in: range)
    writes = transaction.writes
  }

  func seek(_ key: RawSpan) throws -> Bool {
    try renew()
    return stand(atOrAfter: max(bounds.lower, records.position(of: key).position))
  }

  func first() throws -> Bool {
    try renew()
    return stand(atOrAfter: bounds.lower)
  }

  func last() throws -> Bool {
    try renew()
    return stand(before: bounds.upper)
  }

  func next() throws -> Bool {
    try checkPlace()
    try checkNotLent()
    return switch place {
    case .beforeFirst: stand(atOrAfter: bounds.lower)
    case .at(let position): stand(atOrAfter: records.after(position))
    case .afterLast: false
    }
  }

  func previous() throws -> Bool {
    try checkPlace()
    try checkNotLent()
    return switch place {
    case .beforeFirst: false
    case .at(let position): stand(before: position)
    case .afterLast: stand(before: bounds.upper)
    }
  }

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    try checkPlace()
    guard case .at(let position) = place else { throw notOnEntry() }
    lent += 1
    defer { lent -= 1 }
    try transaction.lend(records[position], body)
  }

  /// Takes the present records: positioning the cursor again makes it see the writes since.
  private func renew() throws {
    try checkNotLent()
    records = try transaction.records(of: keyspace)
    bounds = records.positions(in: range)
    writes = transaction.writes
  }

  private func stand(atOrAfter position: SortedRecords.Position) -> Bool {
    let isInside = position < bounds.upper
    place = isInside ? .at(position) : .afterLast
    return isInside
  }

  private func stand(before position: SortedRecords.Position) -> Bool {
    guard position > bounds.lower, let before = records.before(position) else {
      place = .beforeFirst
      return false
    }
    place = .at(before)
    return true
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
