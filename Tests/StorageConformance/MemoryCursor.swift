import Storage

/// A cursor of a `MemoryEngine`: an index that goes from one before the first place of its range to one after
/// the last.
final class MemoryCursor: UnsafeCursor {
  private let transaction: MemorySnapshot
  private let keyspace: Keyspace
  private let range: KeyRange
  private var records: [MemoryRecord] = []
  private var places: Range<Int>
  private var index: Int

  init(transaction: MemorySnapshot, keyspace: Keyspace, range: KeyRange, places: Range<Int>) {
    self.transaction = transaction
    self.keyspace = keyspace
    self.range = range
    self.places = places
    index = places.lowerBound - 1
  }

  func seek(_ key: UnsafeRawBufferPointer) throws -> Entry? {
    try refresh()
    return entry(at: max(places.lowerBound, place(of: key, in: records)))
  }

  func first() throws -> Entry? {
    try refresh()
    return entry(at: places.lowerBound)
  }

  func last() throws -> Entry? {
    try refresh()
    return entry(at: places.upperBound - 1)
  }

  func next() throws -> Entry? {
    if records.isEmpty { try refresh() }
    return entry(at: index + 1)
  }

  func previous() throws -> Entry? {
    if records.isEmpty { try refresh() }
    return entry(at: index - 1)
  }

  /// Placing a cursor anew takes notice of what was written since.
  private func refresh() throws {
    records = try transaction.records(of: keyspace)
    places = placesOfRange(range, in: records)
  }

  private func entry(at wanted: Int) -> Entry? {
    index = min(max(wanted, places.lowerBound - 1), places.upperBound)
    guard places.contains(index) else { return nil }
    return Entry(key: records[index].key, value: records[index].value)
  }
}
