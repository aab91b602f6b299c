import Blobs
import Documents
import Encryption
import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Makes a database from another one. It appears at its path complete or not at all.
struct DatabaseInstaller {
  let target: DatabaseDirectory

  /// For a new database. Throws `alreadyExists` if there is something at `target`.
  init(at target: DatabaseDirectory) throws {
    try UnfinishedDatabase.checkNothing(at: target)
    self.target = target
  }

  /// For a database that replaces the one at `target`.
  init(replacing target: DatabaseDirectory) { self.target = target }

  /// Installs from a database's directory, or from a zip file that holds one.
  func install(
    fromDirectoryOrArchive source: String, engine: EngineType?, key: UserKey?, newKey: UserKey?,
    progress: ConversionProgress.Handler?
  ) throws {
    var status = stat()
    guard stat(source, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
      return try install(
        from: try DatabaseDirectory(source), engine: engine, key: key, newKey: newKey, isAnotherPeer: true,
        progress: progress)
    }
    let partial = try PartialDirectory(beside: target.path)
    let unpacked = partial.path + "/unpacked" + DatabaseDirectory.suffix
    try ZipArchive(source).unpackDatabase(to: unpacked) { done, total in
      try progress?(ConversionProgress(phase: .unpacking, done: done, total: total))
    }
    try make(
      in: partial, from: try DatabaseDirectory(unpacked), engine: engine, key: key, newKey: newKey,
      isAnotherPeer: true, progress: progress
    ).publish(as: target, from: DatabaseAccess(ofFile: source))
  }

  /// Installs from a database's directory. If `isAnotherPeer`, the copy gets new UUIDs.
  func install(
    from source: DatabaseDirectory, engine: EngineType?, key: UserKey?, newKey: UserKey?, isAnotherPeer: Bool,
    progress: ConversionProgress.Handler?
  ) throws {
    guard source.isComplete else { throw source.missing }
    try make(
      in: try PartialDirectory(beside: target.path), from: source, engine: engine, key: key, newKey: newKey,
      isAnotherPeer: isAnotherPeer, progress: progress
    ).publish(as: target, from: DatabaseAccess(of: source))
  }

  /// Makes the database in `partial`. If `isAnotherPeer`, it gets new UUIDs.
  func make(
    in partial: PartialDirectory, from source: DatabaseDirectory, engine: EngineType?, key: UserKey?,
    newKey: UserKey?, isAnotherPeer: Bool, progress: ConversionProgress.Handler?
  ) throws -> UnfinishedDatabase {
    var description = try source.readDescription()
    let isEncrypted = description.key != nil
    let type = try engine ?? Engines.type(EngineName(rawValue: description.engine))
    try target.checkFits(type)
    var recipe = try DatabaseRecipe(
      type, isEncrypted: isEncrypted, key: key, newKey: newKey, renewsDataKey: true, path: target.path)
    if isAnotherPeer { recipe.finish = { try DocumentStore.assignNewUUIDs(in: $0) } }
    // Shared with other opens of it in this process.
    let opened = try OpenDatabase.open(
      source,
      DatabaseOptions(creation: .openExisting, isReadOnly: true, key: isEncrypted ? key : nil))
    defer { try? opened.close() }
    // Another process may have replaced the files before they were locked.
    description = opened.description.withLock { $0 }
    let oldKey = try opened.dataKey(isEncrypted ? key : nil)
    let blobs = try BlobStore(directory: source.blobsPath(description), dataKey: oldKey, isReadOnly: true)

    let new = try UnfinishedDatabase(in: partial, type)
    if case .same = recipe.key, let keyPath = source.keyPath(description) {
      try AtomicFile.write(
        try AtomicFile.read(keyPath, limit: 1 << 16), to: new.directory.file(DatabaseDirectory.key))
    }
    try DatabaseWriter(
      source: DatabaseSource(engine: opened.store.engine, blobs: blobs, dataKey: oldKey), recipe: recipe,
      dataKey: try recipe.dataKey(from: oldKey), directory: new.directory, description: new.description,
      access: nil, copiesBlobs: true, progress: progress
    ).run()
    Log.write(.info, .database, target.path, "made from \(source.path), with the engine \(type.name)")
    return new
  }
}
