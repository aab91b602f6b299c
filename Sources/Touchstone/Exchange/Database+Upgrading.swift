import Encryption
import Storage
import Upgrade

#if canImport(Glibc)
  import Glibc
#endif

extension Database {
  /// Makes a database at `path` from one that Couchbase Lite 1.0 to 1.4 wrote, on iOS, Android or .NET.
  ///
  /// ```swift
  /// let report = try Database.upgrade("catalog.cblite2", to: "catalog", engine: .lmdb)
  /// ```
  ///
  /// `source` is a `.cblite2` directory, or a `.cblite` file that has its attachments beside it. It is only read: nothing in
  /// it changes, and nothing is made beside it. The new database appears at `path` when it is whole and on the disk, or not
  /// at all; a crash leaves nothing that the next one doesn't remove. What can't be carried over is in the report.
  ///
  /// - Parameters:
  ///   - engine: nil for SQLite, or SQLCipher when there is a key.
  ///   - key: the key of the new database, which is encrypted then. That of the source is in `options`.
  ///   - progress: is told how far it is; what it throws ends the upgrade, and nothing is left of it.
  ///
  /// Throws an `UpgradeError` for the source, `alreadyExists` when there is something at `path`.
  @discardableResult
  public static func upgrade(
    _ source: String, to path: String, in directory: String? = nil, engine: EngineName? = nil,
    key: UserKey? = nil, options: UpgradeOptions = UpgradeOptions(), progress: UpgradeProgress.Handler? = nil
  ) throws -> UpgradeReport {
    let type = try Engines.type(engine ?? (key == nil ? .sqlite : .sqlcipher))
    return try UpgradeInstaller(at: DatabaseDirectory(path, in: directory)).install(
      from: SourceFiles(source), type, key: key, options, progress)
  }

  /// Makes a database of the name that a 1.x one has, beside it: of `catalog.cblite2` it makes `catalog.touchstone`.
  ///
  /// The old database stays where it is, as a backup; with `removesSource` it goes once the new one is on the disk. The rest
  /// is as in `upgrade(_:to:)`.
  @discardableResult
  public static func upgradeInPlace(
    _ source: String, engine: EngineName? = nil, key: UserKey? = nil,
    options: UpgradeOptions = UpgradeOptions(), removesSource: Bool = false,
    progress: UpgradeProgress.Handler? = nil
  ) throws -> UpgradeReport {
    let location = try SourceFiles(source)
    let report = try upgrade(
      source, to: SourceFiles.withoutSuffix(location.path), engine: engine, key: key, options: options,
      progress: progress)
    if removesSource { try removeSource(location) }
    return report
  }

  /// The path of the database that `path` stands for when 1.x databases are upgraded at opening, after that was done.
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
        .readOnly, "the database is one of 1.x that has to be upgraded, and open for reading only", path: old)
    }
    do {
      try self.upgrade(old, to: target.path, engine: options.engine, key: options.key, options: upgrade)
    } catch let error as DatabaseError where error.code == .alreadyExists {
      // Another process was faster.
    }
    return name
  }

  /// Removes a 1.x database, its SQLite file first: what is left when it is interrupted is none any more.
  private static func removeSource(_ location: SourceFiles) throws {
    if location.file != location.path { try FileTree.remove(location.file) }
    for part in location.parts { try FileTree.remove(part) }
    // Android's directory of attachments lies in one of the database's name.
    _ = rmdir(SourceFiles.withoutSuffix(location.path))
    try AtomicFile.syncDirectory(of: location.path)
  }
}
