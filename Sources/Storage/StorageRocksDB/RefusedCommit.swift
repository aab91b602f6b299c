import CRocksDB

/// A commit that RocksDB refused, and how to undo it. A failed sync may leave its record in the log, and RocksDB does
/// what the log says when it opens the database.
///
/// Used by one thread at a time.
final class RefusedCommit {
  private var batch: RocksBatch?
  /// RocksDB's sequence number before the commit.
  private let sequence: UInt64
  private var inverse: OpaquePointer?

  init(_ batch: RocksBatch, after sequence: UInt64) {
    self.batch = batch
    self.sequence = sequence
  }

  deinit { if let inverse { rocksdb_writebatch_destroy(inverse) } }

  /// Whether a database that has just been opened, and whose sequence number is this one, has the commit.
  func isIn(_ sequence: UInt64) -> Bool { sequence > self.sequence }

  /// Reads the values before the commit. The database hasn't been opened anew yet, so that it has them.
  func prepare() throws {
    guard let batch else { return }
    inverse = try batch.inverse()
    self.batch = nil
  }

  /// Puts the values back, with a sync at every durability: a power loss shall not take back this commit alone.
  func undo(_ database: OpaquePointer, _ path: String) throws {
    let settings = rocksdb_writeoptions_create()
    defer { rocksdb_writeoptions_destroy(settings) }
    rocksdb_writeoptions_set_sync(settings, 1)
    try RocksError.checked("can't undo a commit that failed", path) {
      rocksdb_write(database, settings, inverse, $0)
    }
  }
}
