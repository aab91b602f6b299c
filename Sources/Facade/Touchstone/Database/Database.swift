import Documents
import Encryption
import Logs
import Query
import Storage
import Synchronization

/// A database of JSON documents with revisions, in a directory of its own.
///
/// ```swift
/// let travel = try Database.open("travel", options: .init(engine: .lmdb))
/// var hotel = MutableDocument(id: "hotel_1", ["type": "hotel", "name": "Apple Droid"])
/// try travel.save(&hotel)
/// print(try travel.document("hotel_1")?["name"].string ?? "-")
/// ```
///
/// It may be used from any thread. All opens of one path in a process share the engine. Other processes may
/// have the database open at the same time.
public final class Database: Sendable {
  let open: OpenDatabase
  /// Set by `close()`, so that this open is given up only once.
  private let isClosed = Atomic<Bool>(false)
  /// The running live queries, and the steps of replications.
  let liveRuns = LiveRuns()
  /// What is called after the database was closed, by numbers.
  let closeHandlers = Lock<(next: Int, handlers: [Int: @Sendable () -> Void])>((0, [:]))

  /// Whether it was opened for reading only. Another `Database` of the same path may still write.
  public let isReadOnly: Bool

  /// The database's name: the one that it was opened with in a `DatabaseFolder`, or the name of its directory
  /// without the suffix.
  public let name: String
  /// The options of queries that are prepared without options.
  let queryOptions: Query.Options
  /// From which time on a query is slow, in nanoseconds; nil if none is.
  let slowQueryThreshold: UInt64?

  init(_ open: OpenDatabase, _ options: DatabaseOptions, name: String) {
    self.open = open
    isReadOnly = options.isReadOnly
    self.name = name
    queryOptions = options.queryOptions
    slowQueryThreshold = options.slowQueryThreshold.map { threshold in
      let (seconds, attoseconds) = threshold.components
      guard seconds >= 0, attoseconds >= 0 else { return 0 }
      return UInt64(min(seconds, 1_000_000_000)) * 1_000_000_000 + UInt64(attoseconds / 1_000_000_000)
    }
  }

  deinit {
    do { try close() } catch {
      Log.write(
        .warning, .database, path,
        "a database was released without a close, and closing it failed: \(LogText.of(error))")
    }
  }

  /// Opens the database at `path`, and makes it if there is none and the options allow it. `path` is a
  /// directory `NAME.touchstone`; the suffix is optional. It may be a location on a server instead, such as
  /// `postgres://host/db#travel` (`DatabaseLocation`).
  ///
  /// Throws a `DatabaseError` for problems with the database as a whole (`notFound`, `wrongKey`, `inUse`, …),
  /// and a `StorageError` for problems with its file.
  public static func open(
    _ path: String, in directory: String? = nil, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(path, in: directory, options, name: nil)
  }

  /// Opens the database at `path`, which has the name `name` in a folder.
  static func open(
    _ path: String, in directory: String? = nil, _ options: DatabaseOptions, name: String?
  ) throws -> Database {
    try open(DatabaseLocation(path), in: directory, options, name: name)
  }

  /// Opens the database at a location, and makes it if there is none and the options allow it.
  ///
  /// - Parameters:
  ///   - location: where it is.
  ///   - options: the options of the open.
  ///
  /// Throws a `DatabaseError` for problems with the database as a whole (`notFound`, `inUse`, `unknownEngine` if this build doesn't
  /// have the engine of the location), and a `StorageError` for problems with its file or its server (`permissionDenied` for a wrong
  /// password, `notFound` for a database that the server doesn't have, `ioError` for a server that can't be reached).
  public static func open(
    _ location: DatabaseLocation, options: DatabaseOptions = DatabaseOptions()
  ) throws -> Database {
    try open(location, in: nil, options, name: nil)
  }

  static func open(
    _ location: DatabaseLocation, in directory: String?, _ options: DatabaseOptions, name: String?
  ) throws -> Database {
    let place =
      location.isOnServer
      ? try DatabasePlace(location)
      : .directory(try directoryToOpen(location.text, in: directory, options))
    do { return Database(try OpenDatabase.open(place, options), options, name: name ?? place.name) } catch {
      // The caller gets the error.
      Log.write(
        LogText.isDamage(error) ? .error : .info, .database, place.path,
        "can't be opened: \(LogText.of(error))")
      throw error
    }
  }

  /// The directory of a database that is opened. Upgrades a 1.x database and makes parent directories, if the options say so.
  private static func directoryToOpen(
    _ path: String, in directory: String?, _ options: DatabaseOptions
  ) throws -> DatabaseDirectory {
    let path = try options.upgrade.map { try upgraded(path, in: directory, options, $0) } ?? path
    var database = try DatabaseDirectory(path, in: directory)
    if options.makesParents, !options.isReadOnly, options.creation != .openExisting {
      try DatabaseDirectory.makeParents(of: database.path)
      // Now the path can be resolved.
      database = try DatabaseDirectory(path, in: directory)
    }
    return database
  }

  /// Whether there is a complete database at `path`, which may be a location on a server. False if the server can't be asked.
  public static func exists(_ path: String, in directory: String? = nil) -> Bool {
    (try? DatabasePlace(path, in: directory).isComplete()) ?? false
  }

  /// Whether the database at `path` is encrypted. `path` may be a location on a server.
  public static func isEncrypted(_ path: String, in directory: String? = nil) throws -> Bool {
    try DatabasePlace(path, in: directory).isEncrypted()
  }

  /// Removes the database at `path` with all its files, and the symbolic link if `path` is one. `path` may be a location on a
  /// server. Throws `inUse` if it is open.
  public static func delete(_ path: String, in directory: String? = nil) throws {
    try DatabasePlace(path, in: directory).delete()
  }

  /// Closes the database. The last close of a path in a process closes its files, after waiting for running
  /// live queries. That close throws `inUse` while the database is being read, and inside a batch of the same
  /// thread. A second call does nothing.
  public func close() throws {
    try closing {
      guard
        isClosed.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
      else { return }
      do {
        try open.close()
        open.store.endObservers(of: ObjectIdentifier(self))
      } catch {
        isClosed.store(false, ordering: .releasing)
        throw error
      }
    }
  }

  /// Closes the database and removes its files. If it fails, the database stays open. Throws `inUse` while
  /// the database is being read or is open elsewhere, also in this process, and `readOnly` if it was opened
  /// for reading only.
  public func delete() throws {
    guard !isReadOnly else {
      throw DatabaseError(.readOnly, "the database is open for reading only", path: path)
    }
    try closing {
      guard
        isClosed.compareExchange(expected: false, desired: true, ordering: .acquiringAndReleasing).exchanged
      else { return try open.place.delete() }
      do {
        try open.delete()
        open.store.endObservers(of: ObjectIdentifier(self))
      } catch {
        isClosed.store(false, ordering: .releasing)
        throw error
      }
    }
  }

  /// Runs `body`, which closes the database, while no live query and no step of a replication runs, and then tells
  /// those who want to know.
  private func closing(_ body: () throws -> Void) throws {
    try liveRuns.whileIdle(body)
    let handlers = closeHandlers.withLock { state in
      defer { state.handlers = [:] }
      return state.handlers
    }
    for handler in handlers.values { handler() }
  }

  /// The document store. Throws `closed` after `close()`.
  var store: DocumentStore {
    get throws {
      guard !isClosed.load(ordering: .relaxed) else {
        throw DatabaseError(.closed, "the database is closed", path: path)
      }
      return open.store
    }
  }

  /// The document store, for writing. Throws `closed` after `close()`, and `readOnly` if it was opened for
  /// reading only.
  var writable: DocumentStore {
    get throws {
      let store = try store
      guard !isReadOnly else {
        throw StorageError(.readOnly, "the database is open for reading only", path: path)
      }
      return store
    }
  }

  // MARK: What it is

  /// The absolute path of its directory. For a database on a server, the location without passwords.
  public var path: String { open.path }
  /// The engine that stores the data.
  public var engineName: EngineName { EngineName(rawValue: open.store.engine.name) }
  /// Whether its files are encrypted.
  public var isEncrypted: Bool { open.isEncrypted }

  /// The engine's library and its version, for people.
  public var engineLibrary: String { open.store.engine.library }

  /// The storage engine, for tools that measure or inspect it.
  package var engine: any StorageEngine { open.store.engine }

  /// The path of the engine's file. A compaction may change it. For a database on a server, the location without passwords.
  public var engineFile: String { open.engineFile }

  /// The UUID that identifies this database to its sync peers.
  public var publicUUID: String { DocumentID.uuidText(open.store.publicUUID) }

  /// A UUID used in the IDs of sync checkpoints. It never leaves the device.
  public var privateUUID: String { DocumentID.uuidText(open.store.privateUUID) }

  /// Returns the raw data key, for tools that open the engine's file; nil if the database isn't encrypted.
  package func dataKey(_ key: UserKey) throws -> SecretBytes? { try open.dataKey(key) }

  // MARK: Housekeeping

  /// Drops the bodies of replaced revisions, removes blobs that no revision has, and returns unused space to
  /// the file system.
  ///
  /// Readers can go on. An engine that compacts into a new file (LMDB) blocks writers meanwhile, and throws
  /// `inUse` if another process has the database open. Throws `nestedWrite` inside a batch.
  public func compact() throws {
    _ = try store
    guard !isReadOnly else {
      throw DatabaseError(.readOnly, "the database is open for reading only", path: path)
    }
    try open.compact()
  }

  /// Runs the engine's own check of its file. Returns one line per fault; empty if the file is sound.
  public func checkIntegrity() throws -> [String] { try store.engine.maintenance.checkIntegrity() }
}
