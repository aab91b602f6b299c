import Blobs
import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// The source of a rewrite: the database that is read.
struct DatabaseSource {
  let engine: any StorageEngine
  let blobs: BlobStore
  /// Nil if the source isn't encrypted.
  let dataKey: SecretBytes?

  /// Begins a snapshot. Until the hold ends, no process removes the blobs that it names.
  func beginRead() throws -> (snapshot: any ReadTransaction, hold: (any BlobHold)?) {
    if let hold = try blobs.hold() { return (try engine.beginRead(), hold) }
    // The first blob may have been stored just now.
    let snapshot = try engine.beginRead()
    do { return (snapshot, try blobs.hold()) } catch {
      snapshot.end()
      throw error
    }
  }
}

/// The target of a rewrite: its engine and keys.
struct DatabaseRecipe {
  /// How the new database is encrypted.
  enum Key {
    /// It isn't encrypted.
    case none
    /// The data key and its file are unchanged.
    case same
    /// A key file wrapped with this user key. It holds the same data key, or a new one.
    case wrapped(UserKey, newDataKey: Bool)
  }

  var engine: EngineType
  var key: Key
  /// Runs on the new engine at the end.
  var finish: (any StorageEngine) throws -> Void = { _ in }

  /// The data key of the new database; nil if it isn't encrypted.
  func dataKey(from old: SecretBytes?) throws -> SecretBytes? {
    switch key {
    case .none: nil
    case .same: old
    case .wrapped(_, let isNew): try isNew ? KeyFile.randomDataKey() : old ?? KeyFile.randomDataKey()
    }
  }

  /// Chooses the keys for an engine. The result is encrypted if a new key is given, or if the engine
  /// encrypts. In the second case it keeps the old key, or uses `key` if the source is plain.
  ///
  /// Throws `notEncrypted` for a new key with an engine that can't encrypt, and `keyRequired` if an engine
  /// that encrypts has no key.
  ///
  /// - Parameter renewsDataKey: whether a new key gets a data key of its own.
  init(
    _ engine: EngineType, isEncrypted: Bool, key: UserKey?, newKey: UserKey?, renewsDataKey: Bool,
    path: String
  ) throws {
    self.engine = engine
    guard engine.encrypts else {
      guard newKey == nil else {
        throw DatabaseError(
          .notEncrypted,
          "a new key was given, but the engine \(engine.name) can't encrypt; choose another engine",
          path: path)
      }
      self.key = .none
      return
    }
    if let newKey {
      self.key = .wrapped(newKey, newDataKey: renewsDataKey || !isEncrypted)
    } else if isEncrypted {
      self.key = .same
    } else if let key {
      self.key = .wrapped(key, newDataKey: true)
    } else {
      throw DatabaseError(
        .keyRequired, "the engine \(engine.name) always encrypts, but no key was given", path: path)
    }
  }
}

/// Writes all files of a database under names that aren't in use: key, data and blobs. Reads them back,
/// compares them with the source, and syncs them. `database.json` doesn't name them yet. Says what the source lacks.
struct DatabaseWriter {
  let source: DatabaseSource
  let recipe: DatabaseRecipe
  let dataKey: SecretBytes?
  let directory: DatabaseDirectory
  let description: DatabaseDirectory.Description
  /// Who may use the old files, if the new ones take their place. Nil for what the umask allows.
  let access: DatabaseAccess?
  let copiesBlobs: Bool
  let progress: ConversionProgress.Handler?
  /// Whether an interrupted run may have written a part, and a later run may go on with what this one leaves. Then every
  /// commit and every blob survives the death of the process and a power loss.
  var resumes = false

  /// Filling and reading back go through the file in order, so a cache has no hits. A small one fits in the
  /// processor's cache.
  private static let cacheBytes = 1 << 20

  func run() throws -> ConversionReport {
    if case .wrapped(let key, _) = recipe.key, let dataKey, let path = directory.keyPath(description),
      !(resumes && directory.isThere(path))
    {
      try KeyFile.write(dataKey, to: path, key: key, replacement: .refused)
      try access?.key.apply(to: path)
    }
    let path = directory.file(description.file)
    // The file isn't published yet, so one sync at the end is enough, unless a later run goes on with it.
    var engine = try open(path, resumes ? .openOrCreate : .createNew)
    do {
      // An engine of the app may not know of it.
      if let access, directory.isThere(path) { try access.data.applyToFileOrDirectory(path) }
      let (snapshot, hold) = try source.beginRead()
      defer { hold?.end() }
      let record = try copyEntries(of: snapshot, to: engine)
      try engine.close()
      let sync = try BackgroundSync(path)
      let found: ConversionReport
      do {
        let blobs = try copiesBlobs ? copyBlobs() : source.blobs
        engine = try open(path, .openExisting)
        try record.verify(engine) { try report(.verifying, $0.entries, $0.totalEntries) }
        found = try ConversionReport(engine, blobs)
        try recipe.finish(engine)
        try engine.close()
      } catch {
        try? engine.close()
        try? sync.finish()
        throw error
      }
      try sync.finish()
      // Syncs what the last opening wrote, and the files beside the data.
      try syncData()
      return found
    } catch {
      try? engine.close()
      throw error
    }
  }

  /// Copies all entries of a snapshot, and ends it.
  private func copyEntries(
    of snapshot: any ReadTransaction, to engine: any StorageEngine
  ) throws -> KeyspaceRecord {
    defer { snapshot.end() }
    return try KeyspaceCopy(from: snapshot, to: engine, resumes: resumes) {
      try report(.copying, $0.entries, $0.totalEntries)
    }.run()
  }

  /// Opens the new file to fill it, or to read it back. No one else uses it yet.
  private func open(_ path: String, _ creation: FileCreation) throws -> any StorageEngine {
    try OpenDatabase.openEngine(
      recipe.engine, path, creation, dataKey,
      DatabaseOptions(durability: creation == .openOrCreate ? .normal : .none, cacheBytes: Self.cacheBytes),
      isBulkLoad: creation == .createNew,
      access: access?.data)
  }

  private func syncData() throws {
    for name in try directory.contents()
    where name == description.file || name.hasPrefix(description.file + "-") {
      try FileTree.sync(directory.file(name))
    }
  }

  /// Copies the blobs, and reads them back. Returns where they are.
  private func copyBlobs() throws -> BlobStore {
    let total = try source.blobs.files().reduce(0) { $0 + Int($1.bytes) }
    let target = try BlobStore(
      directory: directory.blobsPath(description), dataKey: dataKey, durability: resumes ? .normal : .none,
      newAccess: DatabaseAccess.ofBlobs(directory, description))
    defer { target.discardUnsaved() }
    var done = 0
    try source.blobs.copyAll(to: target, removesOthers: resumes) { bytes in
      done += bytes
      try report(.blobs, done, total)
    }
    target.discardUnsaved()
    done = 0
    try target.verifyAll { bytes in
      done += bytes
      try report(.verifying, done, total)
    }
    try FileTree.sync(target.directory)
    return target
  }

  private func report(_ phase: ConversionProgress.Phase, _ done: Int, _ total: Int) throws {
    try progress?(ConversionProgress(phase: phase, done: done, total: total))
  }
}
