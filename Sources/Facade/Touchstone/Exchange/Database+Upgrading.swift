import Encryption
import Storage
import Upgrade

#if canImport(Glibc)
  import Glibc
#endif

extension Database {
  /// Makes a database at `path` from a Couchbase Lite 1.0 to 1.4 database of iOS, Android or .NET.
  ///
  /// ```swift
  /// let report = try Database.upgrade("catalog.cblite2", to: "catalog", engine: .lmdb)
  /// ```
  ///
  /// `source` is a `.cblite2` directory, or a `.cblite` file with its attachments beside it. It is only read:
  /// nothing in it or beside it changes. The new database appears at `path` only when it is complete and
  /// synced to disk. The next upgrade removes what a crash left. The report lists the data that couldn't be
  /// carried over.
  ///
  /// - Parameters:
  ///   - source: the 1.x database.
  ///   - path: where the new database is made.
  ///   - directory: the directory that `path` starts from; nil for the current directory.
  ///   - engine: the new engine; nil for SQLite, or for SQLCipher if there is a key.
  ///   - key: the key of the new database, which is then encrypted. The key of the source is in `options`.
  ///   - options: what is carried over, and the key of the source.
  ///   - progress: receives the progress. If it throws, the upgrade is abandoned and removed.
  ///
  /// Throws an `UpgradeError` for problems with the source, and `alreadyExists` if there is something at
  /// `path`.
  @discardableResult
  public static func upgrade(
    _ source: String, to path: String, in directory: String? = nil, engine: EngineName? = nil,
    key: UserKey? = nil, options: UpgradeOptions = UpgradeOptions(), progress: UpgradeProgress.Handler? = nil
  ) throws -> UpgradeReport {
    try upgrade(
      source, to: path, in: directory, engine, key, options, isInPlace: false, progress: progress)
  }

  private static func upgrade(
    _ source: String, to path: String, in directory: String?, _ engine: EngineName?, _ key: UserKey?,
    _ options: UpgradeOptions, isInPlace: Bool, progress: UpgradeProgress.Handler? = nil
  ) throws -> UpgradeReport {
    let type = try Engines.type(engine ?? (key == nil ? .sqlite : .sqlcipher))
    let location = try SourceFiles(source)
    let target = try DatabaseDirectory(path, in: directory)
    guard !location.contains(target.path) else {
      throw DatabaseError(
        .invalidName, "the new database can't be made inside the old one, which stays as it is",
        path: target.path)
    }
    return try UpgradeInstaller(at: target).install(
      from: location, type, key: key, options, isInPlace: isInPlace, progress)
  }

  /// Upgrades a 1.x database to one of the same name beside it: `catalog.cblite2` becomes
  /// `catalog.touchstone`.
  ///
  /// The old database is kept as a backup. With `removesSource`, it is removed after the new one is synced to
  /// disk, unless something couldn't be carried over (`losses` of the report). The new files get the owner, the group
  /// and the permissions of the old ones. The rest is as in `upgrade(_:to:)`.
  @discardableResult
  public static func upgradeInPlace(
    _ source: String, engine: EngineName? = nil, key: UserKey? = nil,
    options: UpgradeOptions = UpgradeOptions(), removesSource: Bool = false,
    progress: UpgradeProgress.Handler? = nil
  ) throws -> UpgradeReport {
    let location = try SourceFiles(source)
    let report = try upgrade(
      source, to: SourceFiles.withoutSuffix(location.path), in: nil, engine, key, options, isInPlace: true,
      progress: progress)
    if removesSource, report.losses == 0 { try removeSource(location) }
    return report
  }

  /// Upgrades a 1.x database of that name, if there is no new one yet, and returns the path to open.
  static func upgraded(
    _ path: String, in directory: String?, _ options: DatabaseOptions, _ upgrade: UpgradeOptions
  ) throws -> String {
    var name = path
    while name.count > 1, name.hasSuffix("/") { name.removeLast() }
    name = SourceFiles.withoutSuffix(name)
    let target = try DatabaseDirectory(name, in: directory)
    guard !target.exists, options.creation != .createNew else { return name }
    let base = String(target.path.dropLast(DatabaseDirectory.suffix.count))
    guard let old = SourceFiles.suffixes.map({ base + $0 }).first(where: target.isThere) else {
      return name
    }
    guard !options.isReadOnly else {
      throw DatabaseError(
        .readOnly,
        "this Couchbase Lite 1.x database must be upgraded first, but it was opened for reading only",
        path: old)
    }
    do {
      _ = try self.upgrade(
        old, to: target.path, in: nil, options.engine, options.key, upgrade, isInPlace: true)
    } catch let error as DatabaseError where error.code == .alreadyExists {
      // Another process has made it in the meantime.
    }
    return name
  }

  /// Removes a 1.x database, the files of its storage first: without them, the rest of an interrupted removal
  /// isn't a database.
  private static func removeSource(_ location: SourceFiles) throws {
    for file in location.mainFiles { try FileTree.remove(file) }
    for part in location.parts { try FileTree.remove(part) }
    // On Android, the directory of attachments is inside a directory of the database's name.
    _ = rmdir(SourceFiles.withoutSuffix(location.path))
    try AtomicFile.syncDirectory(of: location.path)
  }
}
