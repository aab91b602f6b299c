import Documents
import Encryption
import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The directory of an open database.
final class HeldDirectory: DatabaseHome {
  let directory: DatabaseDirectory
  let lock: DirectoryLock
  private let description: Lock<DatabaseDirectory.Description>

  init(
    _ directory: DatabaseDirectory, _ lock: DirectoryLock, _ description: DatabaseDirectory.Description
  ) {
    self.directory = directory
    self.lock = lock
    self.description = Lock(description)
  }

  /// What `database.json` says. A compaction changes it.
  var currentDescription: DatabaseDirectory.Description { description.withLock { $0 } }

  var isThere: Bool { directory.exists }
  var dataPath: String { directory.file(currentDescription.file) }
  var dataBytes: Int { FileSize.of(dataPath) }

  func unlock(_ key: UserKey?) throws -> SecretBytes? {
    try OpenDatabase.unlock(directory, currentDescription, key)
  }

  func openEngine(_ dataKey: SecretBytes?, _ options: DatabaseOptions) throws -> any StorageEngine {
    let description = currentDescription
    let type = try Engines.type(EngineName(rawValue: description.engine))
    return try OpenDatabase.openEngine(
      type, directory.file(description.file), .openExisting, dataKey, options)
  }

  /// Makes the lock's file.
  func prepareForWriting() throws { try lock.create() }

  func makeWatch(_ store: DocumentStore) -> ChangeWatch {
    ChangeWatch(store, path: directory.path, directory: directory.path)
  }

  func takeAlone() throws { try lock.takeAlone(orShare: true) }
  func shareAgain() { lock.shareAgain() }
  func release() { lock.release() }

  // MARK: Upkeep

  func inTurn(_ body: () throws -> Void) throws -> Bool {
    try body()
    return true
  }

  func workTurn(for purpose: String) -> any WorkTurn { DirectoryTurn(directory, lock, for: purpose) }

  func compactsAlone(_ engine: any StorageEngine) throws -> Bool { try !engine.maintenance.compactsInPlace }

  func compact(_ open: OpenDatabase) throws {
    // What is in memory has no directory.
    if directory.exists { try lock.checkCurrent() }
    guard try open.store.engine.maintenance.compactsInPlace else { return try replaceFile(open) }
    try open.store.withoutBackground { try open.store.engine.maintenance.compact() }
  }

  /// Copies the data into a new file, which replaces the old one. Open snapshots keep the old one until they
  /// end.
  private func replaceFile(_ open: OpenDatabase) throws {
    let store = open.store
    let old = currentDescription
    var new = old
    let type = try Engines.type(EngineName(rawValue: old.engine))
    new.file = directory.nextDataFile(after: old, fileExtension: type.fileExtension)
    // This must not join another thread's write transaction: the copy would lack that transaction's earlier
    // writes.
    try store.exclusively {
      try directory.removeData(new.file)
      try store.engine.maintenance.backup(to: directory.file(new.file))
      let engine = try OpenDatabase.openEngine(
        type, directory.file(new.file), .openExisting, open.heldDataKey, open.options)
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
      open.heldFiles.giveUpRemoved()
    }
  }

  func sync(_ files: HeldFiles, _ durability: Durability) throws {
    guard durability != .none else { return }
    let file = currentDescription.file
    for name in try directory.contents() where name == file || name.hasPrefix(file + "-") {
      guard let held = try files.file(at: directory.file(name)) else {
        // An engine's file may be a directory.
        try FileTree.sync(directory.file(name))
        continue
      }
      guard fsync(held.descriptor) == 0 else {
        throw StorageError.system(errno, "can't sync", directory.file(name))
      }
    }
  }

  func changeKey(
    of dataKey: SecretBytes, to newKey: UserKey, from key: UserKey?, _ stretching: PassphraseStretching
  ) throws {
    try lock.checkCurrent()
    try lock.withRight {
      let description = currentDescription
      if let key {
        guard try OpenDatabase.unlock(directory, description, key) == dataKey else {
          throw DatabaseError(
            .damaged, "the key file holds another data key than that of the open database",
            path: directory.path)
        }
      }
      guard let path = directory.keyPath(description) else {
        throw DatabaseError(.notEncrypted, "the database isn't encrypted", path: directory.path)
      }
      try KeyFile.write(dataKey, to: path, key: newKey, stretching: stretching, replacement: .allowed)
    }
  }

  func plaintextCheck(_ files: HeldFiles, onFile: @escaping (FileEntropy) -> Void) throws -> PlaintextCheck? {
    try PlaintextCheck(directory: directory, description: currentDescription, files: files, onFile: onFile)
  }

  // MARK: Removing

  func checkRemovable() throws {
    guard access(directory.path, W_OK | X_OK) == 0 else {
      throw StorageError.system(errno, "can't remove the database", directory.path)
    }
  }

  func remove() throws {
    // Closing a database in memory has removed its directory.
    guard directory.exists else { return }
    try lock.checkCurrent()
    try OpenDatabase.removeFiles(of: directory)
  }
}
