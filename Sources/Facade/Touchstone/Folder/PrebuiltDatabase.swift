import Encryption
import Logs
import Storage
import Upgrade

#if canImport(Glibc)
  import Glibc
#endif

/// A database to install, and what the copy of it gets.
struct PrebuiltDatabase {
  /// What lies at the path of the source.
  private enum Kind {
    case database(DatabaseDirectory)
    case archive
    /// A Couchbase Lite database of any version: a directory or a file.
    case couchbaseLite
  }

  private let path: String
  private let kind: Kind
  private let engine: EngineName?
  private let key: UserKey?
  private let newKey: UserKey?
  private let options: DatabaseOptions
  private let progress: ConversionProgress.Handler?

  /// Looks at what lies at `path`. `options` are those of the folder.
  ///
  /// Throws `notFound` or `notADatabase` if there is nothing that could be a database.
  init(
    _ path: String, engine: EngineName?, key: UserKey?, newKey: UserKey?, options: DatabaseOptions,
    progress: ConversionProgress.Handler?
  ) throws {
    kind = try Self.kind(path)
    self.path = path
    self.engine = engine
    self.key = key
    self.newKey = newKey ?? options.key
    self.options = options
    self.progress = progress
  }

  private static func kind(_ path: String) throws -> Kind {
    let database = try DatabaseDirectory(path)
    var status = stat()
    let isThere = stat(path, &status) == 0
    if isThere, status.st_mode & S_IFMT == S_IFREG { return try isArchive(path) ? .archive : .couchbaseLite }
    if isThere, database.isThere(path + "/db.sqlite3") { return .couchbaseLite }
    if database.isComplete { return .database(database) }
    // A directory that is no database: the reader of Couchbase Lite databases says what it is.
    if isThere, !database.exists { return .couchbaseLite }
    throw database.missing
  }

  /// Whether a file begins as a zip file does.
  private static func isArchive(_ path: String) throws -> Bool {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw StorageError.system(errno, "can't open", path) }
    defer { close(file) }
    var bytes: [UInt8] = [0, 0]
    return pread(file, &bytes, bytes.count, 0) == bytes.count && bytes.elementsEqual("PK".utf8)
  }

  /// Checks that the source isn't the database at `target` or inside it. Throws `invalidSource`.
  func checkIsOutside(_ target: DatabaseDirectory) throws {
    var source = path
    if case .database(let database) = kind { source = database.path }
    var status = (source: stat(), target: stat())
    let isSame =
      stat(source, &status.source) == 0 && stat(target.path, &status.target) == 0
      && status.source.st_dev == status.target.st_dev && status.source.st_ino == status.target.st_ino
    guard !isSame else {
      throw DatabaseError(.invalidSource, "a database can't be replaced by itself", path: target.path)
    }
    guard let resolved = realpath(source, nil) else { return }
    defer { free(resolved) }
    guard !String(cString: resolved).utf8.starts(with: (target.path + "/").utf8) else {
      throw DatabaseError(
        .invalidSource, "the database to install lies inside the directory of the one that it would replace",
        path: source)
    }
  }

  /// Makes the copy in `partial`, without its final name. Errors name `target`.
  func make(in partial: PartialDirectory, for target: DatabaseDirectory) throws -> UnfinishedDatabase {
    switch kind {
    case .database(let source): return try copy(source, in: partial, target)
    case .couchbaseLite: return try convert(path, in: partial, target)
    case .archive:
      let archive = try ZipArchive(path)
      let isForeign = !archive.contains(.database) && archive.contains(.couchbaseLite)
      let unpacked = partial.path + "/unpacked" + (isForeign ? ".cblite2" : DatabaseDirectory.suffix)
      try archive.unpackDatabase(to: unpacked, isForeign ? .couchbaseLite : .database) { done, total in
        try progress?(ConversionProgress(phase: .unpacking, done: done, total: total))
      }
      if isForeign { return try convert(unpacked, in: partial, target) }
      let database = try DatabaseDirectory(unpacked)
      try useCurrentLibrary(database)
      return try copy(database, in: partial, target)
    }
  }

  /// Has a plain SQLite file opened with the system's SQLite. SQLCipher's library, which can read it too, may be years
  /// older, and a stranger may know its faults.
  private func useCurrentLibrary(_ unpacked: DatabaseDirectory) throws {
    var description = try unpacked.readDescription()
    guard description.engine == EngineName.sqlcipherPlain.rawValue else { return }
    description.engine = EngineName.sqlite.rawValue
    try unpacked.write(description)
  }

  private func copy(
    _ source: DatabaseDirectory, in partial: PartialDirectory, _ target: DatabaseDirectory
  ) throws -> UnfinishedDatabase {
    var type: EngineType?
    if let wanted = engine ?? (options.requireEngine ? options.engine : nil) {
      type = try Engines.type(wanted, encrypted: newKey != nil)
    } else if newKey != nil {
      let old = EngineName(rawValue: try source.readDescription().engine)
      if try !Engines.type(old).encrypts { type = try Engines.encrypting(old).map(Engines.type) }
    }
    let new = try DatabaseInstaller(replacing: target).make(
      in: partial, from: .directory(source), engine: type, key: key ?? options.key, newKey: newKey,
      isAnotherPeer: true,
      progress: progress)
    // Nobody else hears of it.
    if !new.report.isComplete {
      Log.write(.warning, .database, target.path, "made from \(source.path)\(new.report.logText)")
    }
    return new
  }

  private func convert(
    _ source: String, in partial: PartialDirectory, _ target: DatabaseDirectory
  ) throws -> UnfinishedDatabase {
    // What was encrypted stays so.
    let newKey = newKey ?? key
    let type = try Engines.type(
      engine ?? options.engine ?? (newKey == nil ? .sqlite : .sqlcipher), encrypted: newKey != nil)
    do {
      let options = UpgradeOptions(isStrict: true, sourceKey: key)
      return try UpgradeInstaller(replacing: target).make(
        in: partial, from: SourceFiles(source), type, key: newKey, options, isAnotherPeer: true
      ) { state in
        try progress?(ConversionProgress(phase: .copying, done: state.done, total: state.total))
      }.new
    } catch let error as UpgradeError where error.code == .laterVersion || error.code == .unknownCipher {
      try UnfinishedDatabase.remove(in: partial)
      return try CBLite2Installer(target: target).make(
        in: partial, from: source, type, key: newKey, progress: progress)
    }
  }
}
