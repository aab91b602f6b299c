import Blobs
import Encryption
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// What a database is written anew from.
struct DatabaseSource {
  let engine: any StorageEngine
  let blobs: BlobStore
  /// Nil when it isn't encrypted.
  let dataKey: SecretBytes?
}

/// What a database is written anew as.
struct DatabaseRecipe {
  /// What becomes of the keys.
  enum Key {
    /// Not encrypted.
    case none
    /// The data key and its file stay as they are.
    case same
    /// A key file under that user's key: of the same data key, or of a new one.
    case wrapped(UserKey, newDataKey: Bool)
  }

  var engine: EngineType
  var key: Key
  /// Done to the new engine at the end.
  var finish: (any StorageEngine) throws -> Void = { _ in }

  /// The data key of what is written; nil when it isn't encrypted.
  func dataKey(from old: SecretBytes?) throws -> SecretBytes? {
    switch key {
    case .none: nil
    case .same: old
    case .wrapped(_, let isNew): try isNew ? KeyFile.randomDataKey() : old ?? KeyFile.randomDataKey()
    }
  }

  /// An engine and keys, by the rule that what is made is encrypted exactly when a new key is given, or when the engine
  /// encrypts, which then falls back to the key that there was.
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
          .notEncrypted, "the engine \(engine.name) can't encrypt, and a new key was given", path: path)
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
        .keyRequired, "the engine \(engine.name) encrypts: a key has to be given", path: path)
    }
  }
}

/// Writes the files of a database anew: key, data and blobs, under names that nothing has; reads them back and compares
/// them with what they were made from; and syncs them. Nothing names them yet.
struct DatabaseWriter {
  let source: DatabaseSource
  let recipe: DatabaseRecipe
  let dataKey: SecretBytes?
  let directory: DatabaseDirectory
  let description: DatabaseDirectory.Description
  let copiesBlobs: Bool
  let progress: ConversionProgress.Handler?

  /// What is filled or read back in order finds nothing in a cache: a small one stays in the processor's.
  private static let cacheBytes = 1 << 20

  func run() throws {
    if case .wrapped(let key, _) = recipe.key, let dataKey, let path = directory.keyPath(description) {
      try KeyFile.write(dataKey, to: path, key: key, replacement: .refused)
    }
    try writeData()
    if copiesBlobs { try writeBlobs() }
  }

  private func writeData() throws {
    let path = directory.file(description.file)
    let snapshot = try source.engine.beginRead()
    defer { snapshot.end() }
    // Nobody knows the file yet: it is synced once, at the end.
    var engine = try open(path, .createNew)
    do {
      let record = try KeyspaceCopy(from: snapshot, to: engine) {
        try report(.copying, $0.entries, $0.totalEntries)
      }.run()
      try engine.close()
      let sync = try BackgroundSync(path)
      do {
        engine = try open(path, .openExisting)
        try record.verify(engine) { try report(.verifying, $0.entries, $0.totalEntries) }
        try recipe.finish(engine)
        try engine.close()
      } catch {
        try? engine.close()
        try? sync.finish()
        throw error
      }
      try sync.finish()
      // What the last opening wrote, and files beside.
      try syncData()
    } catch {
      try? engine.close()
      throw error
    }
  }

  /// Opens the new file to fill it, or to read it back: once, in order, and nobody else knows it.
  private func open(_ path: String, _ creation: EngineOptions.Creation) throws -> any StorageEngine {
    try OpenDatabase.openEngine(
      recipe.engine, path, creation, dataKey,
      DatabaseOptions(durability: .none, cacheBytes: Self.cacheBytes), isBulkLoad: creation == .createNew)
  }

  private func syncData() throws {
    for name in try directory.contents()
    where name == description.file || name.hasPrefix(description.file + "-") {
      try FileTree.sync(directory.file(name))
    }
  }

  private func writeBlobs() throws {
    let total = try source.blobs.files().reduce(0) { $0 + Int($1.bytes) }
    let target = try BlobStore(
      directory: directory.blobsPath(description), dataKey: dataKey, durability: .none)
    defer { target.discardUnsaved() }
    var done = 0
    try source.blobs.copyAll(to: target) { bytes in
      done += bytes
      try report(.blobs, done, total)
    }
    // What was added since the listing, before the snapshot.
    try source.blobs.copyAll(to: target)
    target.discardUnsaved()
    done = 0
    try target.verifyAll { bytes in
      done += bytes
      try report(.verifying, done, total)
    }
    try FileTree.sync(target.directory)
  }

  private func report(_ phase: ConversionProgress.Phase, _ done: Int, _ total: Int) throws {
    try progress?(ConversionProgress(phase: phase, done: done, total: total))
  }
}
