import Documents
import Storage

/// Counts how many entries of a database come before a key: for `offset` and `pending`.
///
/// Engines don't count ranges. Up to `walked` keys are counted from either end. In the middle of more, a table helps that has
/// every 1,024th key; one scan of the keys makes it. After changes of the database the table is kept until a hundred times the time
/// that it took has passed, so that it costs one hundredth of the time at most; counts from it may be off by what has changed since.
final class EntryRanks: Sendable {
  private struct Table: Sendable {
    var sequence: UInt64
    var total: Int
    /// Every `spacing`th key, beginning with the first.
    var keys: [[UInt8]]
    var madeAt: Double
    var seconds: Double
  }

  /// How many keys are counted without a table.
  private let walked: Int
  private let spacing: Int
  private let timer: any CallTimer
  private let tables = Lock<[CountedEntries: Table]>([:])

  /// Tests give other numbers.
  init(_ timer: any CallTimer, walked: Int = 20_000, spacing: Int = 1_024) {
    self.timer = timer
    self.walked = walked
    self.spacing = spacing
  }

  /// The number of entries whose keys are lower than `key`.
  func count(of entries: CountedEntries, before key: [UInt8], in snapshot: DocumentSnapshot) throws -> Int {
    let total = try snapshot.count(of: entries)
    let sequence = try snapshot.lastSequence
    let known = tables.withLock { $0[entries] }
    if let known, known.sequence == sequence, known.total == total {
      return try count(known, entries, key, total, snapshot)
    }
    let below = KeyRange(upper: .exclusive(key))
    let above = KeyRange(lower: .inclusive(key))
    if let count = try count(entries, below, .ascending, upTo: walked, snapshot) { return count }
    if let count = try count(entries, above, .descending, upTo: walked, snapshot) {
      return max(0, total - count)
    }
    if let known, timer.now - known.madeAt < known.seconds * 100 {
      return try count(known, entries, key, total, snapshot)
    }
    let table = try makeTable(entries, sequence, total, snapshot)
    tables.withLock { $0[entries] = table }
    return try count(table, entries, key, total, snapshot)
  }

  /// Counts by a table: to its last key that isn't higher, and from there on.
  private func count(
    _ table: Table, _ entries: CountedEntries, _ key: [UInt8], _ total: Int, _ snapshot: DocumentSnapshot
  ) throws -> Int {
    var (low, high) = (0, table.keys.count)
    while low < high {
      let middle = (low + high) / 2
      if key.lexicographicallyPrecedes(table.keys[middle]) { high = middle } else { low = middle + 1 }
    }
    guard low > 0 else { return 0 }
    let range = KeyRange(lower: .inclusive(table.keys[low - 1]), upper: .exclusive(key))
    let rest = try count(entries, range, .ascending, upTo: 2 * spacing, snapshot) ?? 2 * spacing
    return min((low - 1) * spacing + rest, total)
  }

  /// The number of keys in a range, nil if there are more than `most`.
  private func count(
    _ entries: CountedEntries, _ range: KeyRange, _ order: ScanOrder, upTo most: Int,
    _ snapshot: DocumentSnapshot
  ) throws -> Int? {
    var count = 0
    try snapshot.forEachKey(of: entries, in: range, order: order) { _ in
      count += 1
      return count <= most
    }
    return count <= most ? count : nil
  }

  private func makeTable(
    _ entries: CountedEntries, _ sequence: UInt64, _ total: Int, _ snapshot: DocumentSnapshot
  ) throws -> Table {
    let began = timer.now
    var keys: [[UInt8]] = []
    var number = 0
    try snapshot.forEachKey(of: entries, in: .all) { key in
      if number % spacing == 0 { keys.append([UInt8](copying: key)) }
      number += 1
      return true
    }
    let now = timer.now
    return Table(sequence: sequence, total: total, keys: keys, madeAt: now, seconds: now - began)
  }
}
