import Documents
import Encryption
import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension OpenDatabase {
  /// Drops bodies and blobs that only old revisions need, and returns unused space to the file system.
  func compact() throws {
    guard !options.isReadOnly else {
      throw DatabaseError(.readOnly, "the database is open for reading only", path: directory.path)
    }
    guard !store.isInBatch else {
      throw StorageError(.nestedWrite, "the database can't be compacted inside a batch", path: directory.path)
    }
    let begin = LogClock.now
    let before = fileBytes
    try replacing {
      try store.dropReplacedBodies()
      try store.refreshIndexStatistics()
      let removal = try store.beginBlobRemoval()
      try rewriteFile()
      if let removal { try store.finish(removal) }
    }
    logCompaction(since: begin, before)
  }

  private func logCompaction(since begin: UInt64, _ before: Int) {
    Log.write(
      .info, .database, directory.path,
      "compacted from \(before) to \(fileBytes) bytes in \(LogText.milliseconds(LogClock.now - begin))")
  }

  /// The size of the engine's file; 0 if it can't be asked for.
  private var fileBytes: Int { FileSize.of(engineFile) }

  /// Returns unused space to the file system. It drops no data.
  func makeFileSmaller() throws {
    let begin = LogClock.now
    let before = fileBytes
    try replacing { try rewriteFile() }
    logCompaction(since: begin, before)
  }

  /// Runs `body`, which calls `rewriteFile()`. Throws `closed` if the database is closed. Throws `inUse` if
  /// the engine needs the files exclusively and another process has the database open.
  private func replacing(_ body: () throws -> Void) throws {
    try maintenance.withLock { _ in
      guard OpenDatabase.paths.withLock(directory.path, { _ in opens > 0 }) else {
        throw DatabaseError(.closed, "the database is closed", path: directory.path)
      }
      if try store.engine.maintenance.compactsInPlace { return try body() }
      try lock.takeAlone(orShare: true)
      defer { lock.shareAgain() }
      try body()
    }
  }

  /// Runs `body` while no other thread replaces files. In a batch no lock is needed: replacing files waits
  /// for the batch.
  func whileFilesStay<Result>(_ body: () throws -> Result) rethrows -> Result {
    if store.isInBatch { return try body() }
    return try maintenance.withLock { _ in try body() }
  }

  private func rewriteFile() throws {
    guard try store.engine.maintenance.compactsInPlace else { return try replaceFile() }
    try store.withoutBackground { try store.engine.maintenance.compact() }
  }

  /// Removes the blobs that no revision has, without changing the engine's file.
  func collectBlobs() throws {
    try maintenance.withLock { _ in
      guard let removal = try store.beginBlobRemoval() else { return }
      try syncData()
      try store.finish(removal)
    }
  }

  /// Syncs everything committed so far, unless durability is `none`. Otherwise a power loss could restore a
  /// document whose blob has been removed.
  private func syncData() throws {
    guard options.durability != .none else { return }
    let file = description.withLock { $0.file }
    for name in try directory.contents() where name == file || name.hasPrefix(file + "-") {
      guard let held = try heldFiles.file(at: directory.file(name)) else {
        // An engine's file may be a directory.
        try FileTree.sync(directory.file(name))
        continue
      }
      guard fsync(held.descriptor) == 0 else {
        throw StorageError.system(errno, "can't sync", directory.file(name))
      }
    }
  }

  /// Copies the data into a new file, which replaces the old one. Open snapshots keep the old one until they
  /// end.
  private func replaceFile() throws {
    let old = description.withLock { $0 }
    var new = old
    let type = try Engines.type(EngineName(rawValue: old.engine))
    new.file = directory.nextDataFile(after: old, fileExtension: type.fileExtension)
    // This must not join another thread's write transaction: the copy would lack that transaction's earlier
    // writes.
    try store.exclusively {
      try directory.removeData(new.file)
      try store.engine.maintenance.backup(to: directory.file(new.file))
      let engine = try OpenDatabase.openEngine(
        type, directory.file(new.file), .openExisting, heldDataKey, options)
      var unsynced: (any Error)?
      do {
        // If the description named the new file while the store still used the old one, later writes would be
        // lost.
        try store.replaceEngine(engine) {
          do { try directory.write(new) } catch {
            // The description has its name already, so other processes open the new file. Only the sync of
            // the directory failed.
            guard (try? directory.readDescription()) == new else { throw error }
            unsynced = error
          }
        }
      } catch {
        try? engine.close()
        throw error
      }
      description.withLock { $0 = new }
      // The old file stays: after a power loss, the old description may be in place again.
      if let unsynced { throw unsynced }
      // Removes the old file, and the files of an interrupted compaction.
      try directory.removeData(otherThan: new.file)
      heldFiles.giveUpRemoved()
    }
  }
}
