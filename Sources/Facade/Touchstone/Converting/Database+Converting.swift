import Blobs
import Documents
import Encryption
import Storage

extension Database {
  /// Converts the database at `path` to another engine, in place or into a new database at `target`.
  /// Everything is kept: sequences, revision trees, local documents, expirations, indexes, blobs and UUIDs. Both may be
  /// locations on servers (`DatabaseLocation`); a database on a server is converted into a new one only.
  ///
  /// ```swift
  /// try Database.convert("travel", to: .lmdb)
  /// ```
  ///
  /// The data is copied keyspace by keyspace, read back, compared and synced. Then it replaces the old files
  /// in one step. After a crash at any moment, either the old database or the new one is there, complete. The
  /// next open removes leftover files.
  ///
  /// The result is encrypted if `newKey` is given or if the engine always encrypts. Without `newKey`, an
  /// encrypted database keeps its key, and a plain one gets `key`. With an engine that can't encrypt, the
  /// result is plain. `lmdb` with a new key means `lmdb-encrypted`. With `target`, a new key also gets a new
  /// data key.
  ///
  /// - Parameters:
  ///   - path: the database to convert.
  ///   - directory: the directory that `path` and `target` start from; nil for the current directory.
  ///   - engine: the new engine.
  ///   - target: where to make the new database; nil converts in place.
  ///   - key: the key of an encrypted source.
  ///   - newKey: the key of the result.
  ///   - progress: receives the progress. If it throws, the conversion ends and changes nothing.
  ///
  /// Returns which blobs the database lacked that its documents name. The result lacks them too.
  ///
  /// Throws `inUse` if the database to convert in place is open; `alreadyExists` if there is something at
  /// `target`; `wrongKey`, `keyRequired` or `notEncrypted` if the keys don't fit; and a `StorageError` if the
  /// disk is full or can't be written.
  @discardableResult
  public static func convert(
    _ path: String, in directory: String? = nil, to engine: EngineName, at target: String? = nil,
    key: UserKey? = nil, newKey: UserKey? = nil, progress: ConversionProgress.Handler? = nil
  ) throws -> ConversionReport {
    let type = try Engines.type(engine, encrypted: newKey != nil)
    let source = try DatabasePlace(path, in: directory)
    guard let target else {
      guard case .directory(let database) = source else {
        throw DatabaseError(
          .invalidLocation,
          "a database on a server can't be converted in place; give a directory for the result",
          path: source.path)
      }
      let closed = try ClosedDatabase(database)
      try type.checkHasFiles(database.path)
      let isEncrypted = closed.description.key != nil
      let recipe = try DatabaseRecipe(
        type, isEncrypted: isEncrypted, key: key, newKey: newKey, renewsDataKey: false, path: database.path)
      return try closed.rewrite(recipe, key: isEncrypted ? key : nil, progress: progress)
    }
    switch try DatabasePlace(target, in: directory) {
    case .directory(let target):
      return try DatabaseInstaller(at: target).install(
        from: source, engine: type, key: key, newKey: newKey, isAnotherPeer: false, progress: progress)
    case .server(let target):
      return try ServerInstaller(target: target).install(
        from: source, engine: type, key: key, newKey: newKey, isAnotherPeer: false, progress: progress)
    }
  }

  /// Makes a backup of the database at `path`: a database at `target` that is the same, with its UUIDs, sequences, engine and key.
  ///
  /// ```swift
  /// try Database.backup("travel", to: "/backups/travel-2026-11-30")
  /// ```
  ///
  /// The database may be open, and others may write meanwhile: the backup is the database at one moment, all of its documents,
  /// local documents, indexes and blobs. It appears at `target` only when it is complete, compared with what was read, and synced to
  /// disk. To go back to it, close the database, and put the backup in its place or open the backup. A database and its backup
  /// are the same peer to others, so only one of them should sync; `copy` makes a separate peer.
  ///
  /// - Parameters:
  ///   - path: the database: a path, or a location on a server.
  ///   - target: where to make the backup: a path, or a location on a server.
  ///   - directory: the directory that `path` and `target` start from; nil for the current directory.
  ///   - key: the key of an encrypted database, which is also that of the backup.
  ///   - progress: receives the progress. If it throws, the backup is abandoned and removed.
  ///
  /// A backup from a server into a directory has the engine SQLite. Returns which blobs the database lacks that its documents name.
  /// The backup lacks them too.
  ///
  /// Throws `alreadyExists` if there is something at `target`; `keyRequired` or `wrongKey` if the key doesn't fit; `notEncrypted` for
  /// an encrypted database and a location on a server; `inUse` if another process has the database open and its engine is for one
  /// process at a time; and a `StorageError` if the disk is full or can't be written.
  @discardableResult
  public static func backup(
    _ path: String, to target: String, in directory: String? = nil, key: UserKey? = nil,
    progress: ConversionProgress.Handler? = nil
  ) throws -> ConversionReport {
    let source = try DatabasePlace(path, in: directory)
    switch try DatabasePlace(target, in: directory) {
    case .directory(let target):
      return try DatabaseInstaller(at: target).install(
        from: source, engine: nil, key: key, newKey: nil, isAnotherPeer: false, progress: progress)
    case .server(let target):
      guard try !source.isEncrypted() else {
        throw DatabaseError(
          .notEncrypted, "the database is encrypted, and a backup on a server wouldn't be", path: target.path)
      }
      return try ServerInstaller(target: target).install(
        from: source, engine: nil, key: key, newKey: nil, isAnotherPeer: false, progress: progress)
    }
  }

  /// Installs a prebuilt database: makes a copy at `path` that is a separate peer with new UUIDs.
  ///
  /// ```swift
  /// if !Database.exists("travel") { try Database.copy("/app/assets/travel.zip", to: "travel") }
  /// ```
  ///
  /// `source` is a database's directory or a zip file of one. The directory may be open or read-only. Syncs
  /// of the copy continue where those of the original stopped: the copy has the original's local documents,
  /// and `previousPrivateUUID` says whose checkpoints they are (docs/prebuilt.md). The copy appears at `path`
  /// only when it is complete and synced to disk.
  ///
  /// - Parameters:
  ///   - source: a directory, with or without its suffix, a zip file, or a location on a server.
  ///   - path: where the copy is made: a path, or a location on a server.
  ///   - directory: the directory that `path` starts from; nil for the current directory.
  ///   - key: the key of an encrypted source. The copy uses it too, if there is no `newKey`.
  ///   - newKey: the key of the copy, which then gets its own data key.
  ///   - engine: the engine of the copy; nil for the engine of the source. A copy from a server into a directory gets SQLite
  ///     then, or SQLCipher with a new key.
  ///   - progress: receives the progress. If it throws, the copy is abandoned and removed.
  ///
  /// Returns which blobs the source lacks that its documents name. The copy lacks them too.
  ///
  /// Throws `alreadyExists` if there is something at `path`; `notFound` or `notADatabase` if the source isn't
  /// a database.
  @discardableResult
  public static func copy(
    _ source: String, to path: String, in directory: String? = nil, key: UserKey? = nil,
    newKey: UserKey? = nil,
    engine: EngineName? = nil, progress: ConversionProgress.Handler? = nil
  ) throws -> ConversionReport {
    let type = try engine.map { try Engines.type($0, encrypted: newKey != nil) }
    switch try DatabasePlace(path, in: directory) {
    case .directory(let target):
      return try DatabaseInstaller(at: target).install(
        fromDirectoryOrArchive: source, engine: type, key: key, newKey: newKey, progress: progress)
    case .server(let target):
      return try ServerInstaller(target: target).install(
        from: DatabasePlace(source), engine: type, key: key, newKey: newKey, isAnotherPeer: true,
        progress: progress)
    }
  }

  /// The private UUID of the database that this one was copied from, or nil if it isn't a copy. The
  /// checkpoints of its first syncs are stored under this UUID.
  public var previousPrivateUUID: String? {
    get throws { try store.previousPrivateUUID.map(DocumentID.uuidText) }
  }
}
