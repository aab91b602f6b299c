import Documents
import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension OpenDatabase {
  /// Drops what only history needs and gives unused space back to the file system.
  func compact() throws {
    guard !options.isReadOnly else {
      throw DatabaseError(.readOnly, "the database is open for reading only", path: directory.path)
    }
    guard !store.isInBatch else {
      throw StorageError(.nestedWrite, "a database can't be compacted inside a batch", path: directory.path)
    }
    try replacing {
      try store.dropReplacedBodies()
      try store.refreshIndexStatistics()
      let removal = try store.beginBlobRemoval()
      try rewriteFile()
      if let removal { try store.finish(removal) }
    }
  }

  /// Gives unused space back to the file system, and drops nothing.
  func makeFileSmaller() throws {
    try replacing { try rewriteFile() }
  }

  /// Runs `body`, which calls `rewriteFile()`. Throws `inUse` when the engine needs the files for itself for that and
  /// another process has the database open, and `closed` when it was closed.
  private func replacing(_ body: () throws -> Void) throws {
    try maintenance.withLock { _ in
      guard OpenDatabase.paths.withLock(directory.path, { _ in opens > 0 }) else {
        throw DatabaseError(.closed, "the database was closed", path: directory.path)
      }
      if try store.engine.maintenance.compactsInPlace { return try body() }
      try lock.takeAlone(orShare: true)
      defer { try? lock.share() }
      try body()
    }
  }

  /// Runs `body` while nobody replaces files. A batch of this thread keeps those waiting who would.
  func whileFilesStay<Result>(_ body: () throws -> Result) rethrows -> Result {
    if store.isInBatch { return try body() }
    return try maintenance.withLock { _ in try body() }
  }

  private func rewriteFile() throws {
    guard try store.engine.maintenance.compactsInPlace else { return try replaceFile() }
    try store.withoutBackground { try store.engine.maintenance.compact() }
  }

  /// Removes the blobs that no revision names, without touching the engine's file.
  func collectBlobs() throws {
    try maintenance.withLock { _ in
      guard let removal = try store.beginBlobRemoval() else { return }
      try syncData()
      try store.finish(removal)
    }
  }

  /// Makes what was committed by now survive a power loss, at every durability that promises to survive one: so that none
  /// brings a document back whose blob is gone.
  private func syncData() throws {
    guard options.durability != .none else { return }
    let file = description.withLock { $0.file }
    for name in try directory.contents() where name == file || name.hasPrefix(file + "-") {
      guard let held = try heldFiles.file(at: directory.file(name)) else { continue }
      guard fsync(held.descriptor) == 0 else {
        throw StorageError.system(errno, "can't sync", directory.file(name))
      }
    }
  }

  /// Copies the data into a new file and makes it the database's. Readers keep the old one until they end.
  private func replaceFile() throws {
    let old = description.withLock { $0 }
    var new = old
    let type = try Engines.type(EngineName(rawValue: old.engine))
    let number = old.file.dropFirst("data-".count).prefix { $0.isNumber }
    new.file = "data-\((Int(number) ?? 0) + 1).\(type.fileExtension)"
    let dataKey = try OpenDatabase.unlock(directory, old, options.key)
    // Not in a write transaction that others share: what they wrote before would be missing in the copy.
    try store.exclusively {
      try directory.removeData(new.file)
      try store.engine.maintenance.backup(to: directory.file(new.file))
      let engine = try OpenDatabase.openEngine(
        type, directory.file(new.file), .openExisting, dataKey, options)
      var unsynced: (any Error)?
      do {
        // A description that names the new file beside a store that goes on with the old one would lose what is
        // written from then on.
        try store.replaceEngine(engine) {
          do { try directory.write(new) } catch {
            // It has its name, so the new file is the one that others open: only the directory wasn't synced.
            guard (try? directory.readDescription()) == new else { throw error }
            unsynced = error
          }
        }
      } catch {
        try? engine.close()
        throw error
      }
      description.withLock { $0 = new }
      // The old file stays: after a power loss now the old description may be there again.
      if let unsynced { throw unsynced }
      // The old file, and what a compaction that was interrupted left.
      try directory.removeData(otherThan: new.file)
      heldFiles.giveUpRemoved()
    }
  }
}
