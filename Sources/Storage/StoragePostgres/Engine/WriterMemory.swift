import Bytes
import Storage
import StorageMemory

/// What the writer of an engine keeps between its transactions: its connection, and what it knows of the last commit. Another
/// writer's commit makes it forget.
///
/// `@unchecked Sendable`: only used inside of the engine's queue.
final class WriterMemory: @unchecked Sendable {
  /// The most bytes of entries that are kept.
  private static let maximumBytes = 4 << 20
  /// A larger value isn't kept.
  private static let maximumValueBytes = 65_536
  /// The marks of kept records.
  static let present: UInt8 = 0
  static let absent: UInt8 = 1

  /// The name of this engine among the writers of its database, for `Statement.noteCommit`.
  let id: [UInt8] = (0..<16).map { _ in UInt8.random(in: 0...255) }
  var connection: Connection?
  /// The number of the commit that the rest is of.
  var commits: Int?
  /// Whether the database has a row for this engine among its writers.
  var isNoted = false
  /// Entries, and keys that have none.
  private var known: [Int: SortedRecords] = [:]
  private var bytes = 0
  /// The greatest keys of keyspaces, empty if there is no entry.
  var greatest: [Int: [UInt8]] = [:]

  func forget() {
    known = [:]
    bytes = 0
    greatest = [:]
    commits = nil
  }

  func record(_ key: RawSpan, _ number: Int) -> MemoryRecord? { known[number]?.record(at: key) }

  /// Keeps a value.
  func note(_ key: RawSpan, _ value: RawSpan, _ number: Int) { keep(key, value, number, Self.present) }

  /// Keeps that a key has no value.
  func noteAbsent(_ key: RawSpan, _ number: Int) {
    keep(key, key.extracting(0..<0), number, Self.absent)
  }

  private func keep(_ key: RawSpan, _ value: RawSpan, _ number: Int, _ mark: UInt8) {
    let size = key.byteCount + value.byteCount
    guard size <= Self.maximumValueBytes else {
      _ = known[number]?.remove(key)
      return
    }
    if bytes > Self.maximumBytes {
      known = [:]
      bytes = 0
    }
    // The memory of a record, about, with its place in a list.
    bytes += size + 64
    _ = known[number, default: SortedRecords()].set(key, value, replaces: true, mark: mark)
  }

  /// Takes the engine's row out of the writers, and closes the connection. A row that stays does no harm.
  func close() {
    if let connection, isNoted {
      id.withUnsafeBytes { _ = try? connection.run(.forgetWriter, [.bytes($0)]) }
    }
    connection?.close()
    connection = nil
    forget()
  }
}
