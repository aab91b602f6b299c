import CSQLite
import SQLiteLibrary
import Synchronization

/// When the snapshot of an idle reader serves the next read.
///
/// To begin and to end a snapshot takes two locks of the file, which cost as much as the search for a document. So while reads
/// follow each other, a reader keeps its snapshot after the read. The next read uses it if nobody has committed since: every
/// commit, of this process or of another one, changes the header of the log's index, which all processes have in their memory.
///
/// A kept snapshot holds checkpoints back. So it is kept for one round of the pool, which lasts `ReaderPool.roundSeconds`.
struct KeptSnapshot {
  /// The header before the snapshot began. A commit in between makes the snapshot newer than this header, never older.
  private var header = CSQLiteLogHeader()
  private var hasHeader = false
  /// Whether the whole log was in the file before the snapshot began. The snapshot then doesn't keep the log from starting again.
  private var wasCopied = false
  /// The index of the log, once it is known.
  private var index: UnsafeRawPointer?
  private var hasNoIndex = false
  /// The round of the pool in which the snapshot began; 0 if it isn't to be kept.
  var round: UInt64 = 0
  /// The number of the snapshot. No other one of this process has it, and a read that reuses the snapshot finds
  /// the same number.
  private(set) var number: UInt64 = 0
  private static let begun = Atomic<UInt64>(0)
  /// Whether the snapshot served more than one read.
  private var isReused = false
  /// The number of snapshots in a row that were kept for nothing, up to 6, and how many are now not kept for that reason.
  private var wasted = 0
  private var skipped = 0

  mutating func begin() {
    isReused = false
    number = Self.begun.add(1, ordering: .relaxed).newValue
    renew()
  }

  /// The snapshot is of what is in the log now: the connection itself has committed.
  mutating func renew() {
    guard let index else { return }
    header = csqlite_log_header(index)
    hasHeader = true
    wasCopied = csqlite_is_log_copied(index) != 0
  }

  /// Looks for the index of the log. The connection has a snapshot.
  mutating func findIndex(_ connection: Connection) throws {
    guard index == nil, !hasNoIndex else { return }
    // A file without a log would get an index by the question for it: one that was filled in bulk and never opened again.
    if try connection.string("PRAGMA journal_mode") == "wal" {
      index = UnsafeRawPointer(csqlite_log_index(connection.functions, connection.handle))
    }
    hasNoIndex = index == nil
  }

  /// Whether `findIndex` has found it.
  var hasIndex: Bool { index != nil }

  /// Whether the snapshot is of the present: nobody has committed since it began. Not if it alone may keep the log from starting
  /// again.
  var isCurrent: Bool {
    mutating get {
      guard hasHeader, let index else { return false }
      return csqlite_is_log_header(index, &header) != 0 && (wasCopied || csqlite_is_log_copied(index) == 0)
    }
  }

  /// Whether the open snapshot can be kept in that round.
  func canStay(in current: UInt64) -> Bool { round != 0 && round == current && hasHeader }

  /// The snapshot serves another read.
  mutating func reuse() { isReused = true }

  /// The kept snapshot has to go, because somebody has committed. Where commits and reads alternate, keeping one costs more than
  /// it saves; so the next ones aren't kept.
  mutating func isOutdated() {
    wasted = isReused ? 0 : min(wasted + 1, 6)
    skipped = isReused ? 0 : 1 << wasted
  }

  /// Decides about the snapshot that is to begin, in that round of the pool. Returns whether to keep it.
  mutating func decide(_ current: UInt64) -> Bool {
    round = current
    guard current != 0 else { return false }
    guard skipped == 0 else {
      skipped -= 1
      round = 0
      return false
    }
    return true
  }
}
