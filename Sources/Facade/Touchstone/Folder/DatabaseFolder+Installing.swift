import Encryption
import Storage

extension DatabaseFolder {
  /// Installs a prebuilt database: makes a copy of `source` that is a separate peer with new UUIDs. Returns
  /// false, and does nothing, if the database exists already.
  ///
  /// ```swift
  /// try folder.install("catalog", from: "/app/assets/catalog.zip")
  /// let catalog = try folder.open("catalog")
  /// ```
  ///
  /// `source` is one of these, which it tells apart by their contents:
  ///
  /// - a database's directory, with or without its suffix, which may be open or read-only
  /// - a `.cblite2` directory of Couchbase Lite 2.x or 3.x, or of 1.x
  /// - a `.cblite` file of Couchbase Lite 1.x with its attachments beside it
  /// - a zip file that holds a database's directory or a `.cblite2` directory
  ///
  /// A folder on a server takes only the first of these, and databases on servers.
  ///
  /// The source doesn't change. The copy appears under its name only when it is complete and synced to disk.
  /// After a crash there is no database of that name, and the next use of the folder removes what was left.
  ///
  /// - Parameters:
  ///   - name: the name of the new database.
  ///   - source: the path of the prebuilt database.
  ///   - unlessExists: whether an existing database is left as it is. If false, it throws `alreadyExists`.
  ///   - engine: the engine of the copy. Nil means the engine of the source, or the encrypting engine of the
  ///     same kind if the copy is encrypted and the source isn't. For a Couchbase Lite database, and if the
  ///     options of the folder have `requireEngine`, it means the engine in these options.
  ///   - key: the key of an encrypted source. Nil means the key in the options of the folder, except for a
  ///     Couchbase Lite 1.x database, which is then expected to be plain. The copy of an encrypted source
  ///     keeps it, if it gets no other key.
  ///   - newKey: the key of the copy, which then gets its own data key. Nil means the key in the options of
  ///     the folder.
  ///   - progress: receives the progress; for Couchbase Lite databases the unit is a document, and a total of
  ///     0 is not known. If it throws, the copy is abandoned and removed.
  ///
  /// Throws `notFound` or `notADatabase` if the source isn't a database; `incompleteSource`, or an
  /// `UpgradeError` with the code `refused`, if data of a Couchbase Lite database can't be carried over;
  /// other errors of `UpgradeError` and `CBLite2Error`; and `wrongKey`, `keyRequired` or `notEncrypted` if
  /// the keys don't fit.
  @discardableResult
  public func install(
    _ name: String, from source: String, unlessExists: Bool = true, engine: EngineName? = nil,
    key: UserKey? = nil, newKey: UserKey? = nil, progress: ConversionProgress.Handler? = nil
  ) throws -> Bool {
    let place = try place(of: name)
    if try place.isComplete() {
      if unlessExists { return false }
      throw DatabaseError(.alreadyExists, "the database exists already", path: place.path)
    }
    if case .server(let target) = place {
      _ = try ServerInstaller(target: target).install(
        from: DatabasePlace(source), engine: engine.map { try Engines.type($0, encrypted: newKey != nil) },
        key: key ?? options.key, newKey: newKey, isAnotherPeer: true, progress: progress)
      return true
    }
    let prebuilt = try PrebuiltDatabase(
      source, engine: engine, key: key, newKey: newKey, options: options, progress: progress)
    let target = try newDirectory(of: name)
    do { try install(prebuilt, at: target) } catch let error as DatabaseError
      where error.code == .alreadyExists && unlessExists && target.isComplete
    {
      // Another thread or process has made it in the meantime.
      return false
    }
    return true
  }

  private func install(_ prebuilt: PrebuiltDatabase, at target: DatabaseDirectory) throws {
    try prebuilt.checkIsOutside(target)
    try OpenDatabase.removeUnfinished(target)
    try UnfinishedDatabase.checkNothing(at: target)
    try prebuilt.make(in: PartialDirectory(beside: target.path), for: target).publish(as: target)
  }

  /// Replaces the database `name`, with its blobs, by a copy of the one at `source`. If there is none of that
  /// name, it installs the copy.
  ///
  /// The parameters and the copy are those of `install`. The change is one step: after a crash at any moment
  /// the folder has the old database or the new one, complete, and the next open or list removes the files of
  /// the other one. The replacement needs disk space for both. It may have another engine and another key
  /// than the old one. A database whose description is damaged can be replaced too.
  ///
  /// The name is locked until the replacement ends. Meanwhile, opens of it in this process throw `inUse`, and
  /// opens in other processes wait up to 10 seconds.
  ///
  /// Throws `invalidLocation` for a folder on a server; `inUse` if the old database is open in this or another
  /// process; `invalidSource` if the source is the old database, or lies inside its directory; and otherwise as
  /// `install` does. Then the old database is unchanged.
  public func replace(
    _ name: String, with source: String, engine: EngineName? = nil, key: UserKey? = nil,
    newKey: UserKey? = nil, progress: ConversionProgress.Handler? = nil
  ) throws {
    if case .server(let place) = try place(of: name) {
      throw DatabaseError(
        .invalidLocation,
        "a database on a server isn't replaced in one step: install the other one with a new name, delete this one, and move the new one",
        path: place.path)
    }
    let prebuilt = try PrebuiltDatabase(
      source, engine: engine, key: key, newKey: newKey, options: options, progress: progress)
    let target = try newDirectory(of: name)
    if !target.isComplete {
      do { return try install(prebuilt, at: target) } catch let error as DatabaseError
        where error.code == .alreadyExists && target.isComplete
      {
        // Another thread or process has made it in the meantime.
      }
    }
    try prebuilt.checkIsOutside(target)
    let locked = try LockedDirectory(target)
    try locked.removeLeftovers()
    let partial = try PartialDirectory(beside: target.path)
    try partial.replaces(target.path)
    try locked.replaceFiles(with: try prebuilt.make(in: partial, for: target))
  }

  /// Replaces the database `name` by a copy of the database `other` in `folder`, or in this folder if that is
  /// nil. The key of the other database is `key`, or the one in the options of its folder. The rest is as in
  /// `replace(_:with:engine:key:newKey:progress:)`.
  public func replace(
    _ name: String, withDatabase other: String, in folder: DatabaseFolder? = nil, engine: EngineName? = nil,
    key: UserKey? = nil, newKey: UserKey? = nil, progress: ConversionProgress.Handler? = nil
  ) throws {
    let folder = folder ?? self
    try replace(
      name, with: folder.path(of: other), engine: engine, key: key ?? folder.options.key, newKey: newKey,
      progress: progress)
  }
}
