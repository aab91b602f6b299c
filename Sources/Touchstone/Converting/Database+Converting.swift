import Blobs
import Encryption
import Storage

extension Database {
  /// Moves the database at `path` to another engine, in place, or to a new database at `target`, with everything that
  /// it has: sequences, revision trees, local documents, expirations, indexes, blobs and UUIDs.
  ///
  /// ```swift
  /// try Database.convert("travel", to: .lmdb)
  /// ```
  ///
  /// It is copied keyspace by keyspace, read back, compared, and synced before it takes the place of the old
  /// files, in one step: a crash at any moment leaves the old database or the new one, whole. What is left over then
  /// goes when the database is next opened.
  ///
  /// The result is encrypted when `newKey` is given, or when the engine encrypts: then it keeps its key, or, when it had
  /// none, `key` becomes it. With an engine that can't encrypt, it is decrypted. (`lmdb` with a new key is
  /// `lmdb-encrypted`.) In another place, a new key gets a
  /// data key of its own.
  ///
  /// - Parameters:
  ///   - target: where the new database is made; nil for in place.
  ///   - key: the key of an encrypted database.
  ///   - newKey: the key of what is made.
  ///   - progress: is told how far it is; what it throws ends the conversion, and nothing has changed.
  ///
  /// Throws `inUse` in place while somebody has the database open; `alreadyExists` when there is something at
  /// `target`; `wrongKey`, `keyRequired`, `notEncrypted`; and a `StorageError` when the disk is full or can't be written.
  public static func convert(
    _ path: String, in directory: String? = nil, to engine: EngineName, at target: String? = nil,
    key: UserKey? = nil, newKey: UserKey? = nil, progress: ConversionProgress.Handler? = nil
  ) throws {
    let type = try Engines.type(engine, encrypted: newKey != nil)
    let database = try DatabaseDirectory(path, in: directory)
    guard let target else {
      let closed = try ClosedDatabase(database)
      let isEncrypted = closed.description.key != nil
      let recipe = try DatabaseRecipe(
        type, isEncrypted: isEncrypted, key: key, newKey: newKey, renewsDataKey: false, path: database.path)
      return try closed.rewrite(recipe, key: isEncrypted ? key : nil, progress: progress)
    }
    try DatabaseInstaller(at: DatabaseDirectory(target, in: directory)).install(
      from: database, engine: type, key: key, newKey: newKey, isAnotherPeer: false, progress: progress)
  }

  /// Installs a prebuilt database: makes a copy at `path` that is a peer of its own, with new UUIDs.
  ///
  /// ```swift
  /// if !Database.exists("travel") { try Database.copy("/app/assets/travel.zip", to: "travel") }
  /// ```
  ///
  /// `source` is a database's directory, also one that is open or can't be written, or a zip file of one. Syncs of the
  /// copy go on where those of the original stopped: its local documents come along, and `previousPrivateUUID` says
  /// whose checkpoints they are (docs/prebuilt.md). The copy appears at `path` when it is whole and on the disk, or not
  /// at all.
  ///
  /// - Parameters:
  ///   - source: a directory, with or without its suffix, or a zip file.
  ///   - key: the key of an encrypted source, and of its copy when no new one is given.
  ///   - newKey: the key of the copy, which gets a data key of its own then.
  ///   - engine: the engine of the copy; nil for the source's.
  ///   - progress: is told how far it is; what it throws ends the copy, and nothing is left of it.
  ///
  /// Throws `alreadyExists` when there is something at `path`, `notFound` and `notADatabase` for the source.
  public static func copy(
    _ source: String, to path: String, in directory: String? = nil, key: UserKey? = nil,
    newKey: UserKey? = nil,
    engine: EngineName? = nil, progress: ConversionProgress.Handler? = nil
  ) throws {
    let installer = try DatabaseInstaller(at: DatabaseDirectory(path, in: directory))
    let type = try engine.map { try Engines.type($0, encrypted: newKey != nil) }
    try installer.install(
      fromDirectoryOrArchive: source, engine: type, key: key, newKey: newKey, progress: progress)
  }

  /// The private UUID of the database that this one was copied from: the one under which the checkpoints of its first
  /// syncs are found; nil when it isn't a copy.
  public var previousPrivateUUID: String? {
    get throws { try store.previousPrivateUUID.map(DocumentID.uuidText) }
  }
}
