import Documents
import Logs
import Storage

extension OpenDatabase {
  /// Drops bodies and blobs that only old revisions need, and returns unused space to the file system.
  func compact() throws {
    guard !options.isReadOnly else {
      throw DatabaseError(.readOnly, "the database is open for reading only", path: path)
    }
    guard !store.isInBatch else {
      throw StorageError(.nestedWrite, "the database can't be compacted inside a batch", path: path)
    }
    let begin = LogClock.now
    let before = fileBytes
    try replacing {
      try store.dropReplacedBodies()
      try store.refreshIndexStatistics()
      let removal = try store.beginBlobRemoval()
      try home.compact(self)
      if let removal { try store.finish(removal) }
    }
    logCompaction(since: begin, before)
  }

  private func logCompaction(since begin: UInt64, _ before: Int) {
    Log.write(
      .info, .database, path,
      "compacted from \(before) to \(fileBytes) bytes in \(LogText.milliseconds(LogClock.now - begin))")
  }

  /// The size of the engine's file; 0 if it can't be asked for.
  private var fileBytes: Int { home.dataBytes }

  /// Returns unused space to the file system. It drops no data.
  func makeFileSmaller() throws {
    let begin = LogClock.now
    let before = fileBytes
    try replacing { try home.compact(self) }
    logCompaction(since: begin, before)
  }

  /// Runs `body`, which compacts. Throws `closed` if the database is closed. Throws `inUse` if
  /// the engine needs the files exclusively and another process has the database open.
  private func replacing(_ body: () throws -> Void) throws {
    try maintenance.withLock { _ in
      guard OpenDatabase.paths.withLock(path, { _ in opens > 0 }) else {
        throw DatabaseError(.closed, "the database is closed", path: path)
      }
      guard try home.compactsAlone(store.engine) else { return try body() }
      try home.takeAlone()
      defer { home.shareAgain() }
      try body()
    }
  }

  /// Runs `body` while no other thread replaces files. In a batch no lock is needed: replacing files waits
  /// for the batch.
  func whileFilesStay<Result>(_ body: () throws -> Result) rethrows -> Result {
    if store.isInBatch { return try body() }
    return try maintenance.withLock { _ in try body() }
  }

  /// Removes the blobs that no revision has, without changing the engine's file.
  func collectBlobs() throws {
    try maintenance.withLock { _ in
      guard let removal = try store.beginBlobRemoval() else { return }
      try home.sync(heldFiles, options.durability)
      try store.finish(removal)
    }
  }
}
