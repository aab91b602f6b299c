import Storage

/// A cursor of a `MemoryEngine`. Its index goes from one before the first record of the range to one after
/// the last.
final class MemoryCursor: Cursor {
  private let transaction: MemorySnapshot
  private let keyspace: Keyspace
  private let range: KeyRange
  private var records: [MemoryRecord] = []
  private var places: Range<Int>
  private var index: Int
  /// The number of closures to which its entry is currently lent.
  private var lent = 0
  /// The value of `MemorySnapshot.writes` when the cursor was placed.
  private var writes: Int

  init(transaction: MemorySnapshot, keyspace: Keyspace, range: KeyRange, places: Range<Int>) {
    self.transaction = transaction
    self.keyspace = keyspace
    self.range = range
    self.places = places
    index = places.lowerBound - 1
    writes = transaction.writes
  }

  func seek(_ key: RawSpan) throws -> Bool {
    try place()
    return move(
      to: max(places.lowerBound, key.withUnsafeBytes { StorageConformance.place(of: $0, in: records) }))
  }

  func first() throws -> Bool {
    try place()
    return move(to: places.lowerBound)
  }

  func last() throws -> Bool {
    try place()
    return move(to: places.upperBound - 1)
  }

  func next() throws -> Bool {
    try checkPlace()
    try checkNotLent()
    if records.isEmpty { try place() }
    return move(to: index + 1)
  }

  func previous() throws -> Bool {
    try checkPlace()
    try checkNotLent()
    if records.isEmpty { try place() }
    return move(to: index - 1)
  }

  func lendEntry(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Void) throws {
    try checkPlace()
    guard places.contains(index), index < records.count else { throw notOnEntry() }
    lent += 1
    defer { lent -= 1 }
    try transaction.lend(records[index], body)
  }

  /// Positioning the cursor again makes it see the writes since.
  private func place() throws {
    try checkNotLent()
    records = try transaction.records(of: keyspace)
    places = placesOfRange(range, in: records)
    writes = transaction.writes
  }

  private func move(to wanted: Int) -> Bool {
    index = min(max(wanted, places.lowerBound - 1), places.upperBound)
    return places.contains(index)
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
