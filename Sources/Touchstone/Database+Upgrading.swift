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
      from: SourceLocation(source), type, key: key, options, progress)
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
    let location = try SourceLocation(source)
    let report = try upgrade(
      source, to: SourceLocation.withoutSuffix(location.path), engine: engine, key: key, options: options,
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
    name = SourceLocation.withoutSuffix(name)
    let target = try DatabaseDirectory(name, in: directory)
    guard !target.exists, options.creation != .createNew else { return name }
    let base = String(target.path.dropLast(DatabaseDirectory.suffix.count))
    guard let old = SourceLocation.suffixes.map({ base + $0 }).first(where: target.isThere) else {
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
  private static func removeSource(_ location: SourceLocation) throws {
    if location.file != location.path { try FileTree.remove(location.file) }
    for part in location.parts { try FileTree.remove(part) }
    // Android's directory of attachments lies in one of the database's name.
    _ = rmdir(SourceLocation.withoutSuffix(location.path))
    try AtomicFile.syncDirectory(of: location.path)
  }
}

/// Makes a database from one of 1.x, in a place where there is none: whole, or not at all.
struct UpgradeInstaller {
  let target: DatabaseDirectory

  init(at target: DatabaseDirectory) throws {
    guard !target.exists else {
      throw DatabaseError(.alreadyExists, "there is something already", path: target.path)
    }
    self.target = target
  }

  func install(
    from location: SourceLocation, _ type: EngineType, key: UserKey?, _ options: UpgradeOptions,
    _ progress: UpgradeProgress.Handler?
  ) throws -> UpgradeReport {
    let recipe = try DatabaseRecipe(
      type, isEncrypted: false, key: nil, newKey: key, renewsDataKey: true, path: target.path)
    let partial = try PartialDirectory(beside: target.path)
    let new = try DatabaseDirectory(partial.path + "/new" + DatabaseDirectory.suffix)
    guard mkdir(new.path, 0o755) == 0 else {
      throw StorageError.system(errno, "can't make the directory", new.path)
    }
    let description = DatabaseDirectory.Description(
      version: DatabaseDirectory.version, engine: type.name, file: "data-1.\(type.fileExtension)",
      key: type.encrypts ? DatabaseDirectory.key : nil)
    let file = new.file(description.file)
    let upgrade = try Upgrade(location, options, scratch: partial.path) { state in
      // Neither writing nor comparing comes back to a page soon.
      MappedFile.release(file, above: 48 << 20)
      try progress?(state)
    }
    let dataKey = try recipe.dataKey(from: nil)
    if case .wrapped(let key, _) = recipe.key, let dataKey, let path = new.keyPath(description) {
      try KeyFile.write(dataKey, to: path, key: key, replacement: .refused)
    }
    // Nobody knows the files yet: they are synced once, at the end.
    let unsynced = DatabaseOptions(durability: .none)
    func write(_ creation: EngineOptions.Creation, _ body: (DocumentStore) throws -> UpgradeReport) throws
      -> UpgradeReport
    {
      let engine = try OpenDatabase.openEngine(type, file, creation, dataKey, unsynced)
      do {
        let blobs = try OpenDatabase.blobStore(new.blobsPath(description), dataKey, unsynced)
        defer { blobs.discardUnsaved() }
        let report = try body(DocumentStore(engine: engine, blobs: blobs))
        try engine.close()
        return report
      } catch {
        try? engine.close()
        throw error
      }
    }
    var report = try write(.createNew) { try upgrade.run(into: $0) }
    let sync = try BackgroundSync(file)
    do {
      if options.verifies { report = try write(.openExisting) { try upgrade.verify($0) } }
    } catch {
      try? sync.finish()
      throw error
    }
    try sync.finish()
    // For those who open it where nothing can be made.
    _ = try DirectoryLock(new.file("lock"), in: new.path, creates: true)
    try new.write(description)
    try partial.publish(new.path, as: target.path)
    report.target = target.path
    return report
  }
}
