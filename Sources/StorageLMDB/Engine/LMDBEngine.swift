import CLMDB
import Glibc
import Storage

/// LMDB behind the storage protocol: a copy-on-write B-tree in one memory-mapped file, with snapshot reads
/// that take no lock and copy nothing.
///
/// One environment a path a process: a second open of the same file throws `inUse` until the first is closed
/// (POSIX drops a process's locks on a file when any of its descriptors closes). Other processes may have it
/// open at the same time. An engine isn't carried across `fork`: in the child everything throws
/// `unsupported`, and the child opens the path anew. See docs/storage-lmdb.md.
public final class LMDBEngine: EngineMaintenance {
  let environment: Environment
  let queue: WriteQueue
  private let driver: WriteDriver

  /// Opens or creates the file at `path`; its lock file is `path` with `-lock` appended.
  ///
  /// Throws `notEncrypted` when a key is given, `inUse` when this process has the file open, `notADatabase`,
  /// `unsupportedVersion` or `damaged` for files that LMDB can't safely map.
  public convenience init(path: String, options: EngineOptions) throws {
    try self.init(path: path, options: options, mapBytes: MapSize.wanted())
  }

  init(path: String, options: EngineOptions, mapBytes: Int) throws {
    guard options.key == nil else {
      throw StorageError(.notEncrypted, "LMDB can't encrypt, and a key was given", path: path)
    }
    environment = try EnvironmentRegistry.open(path: path, options: options, mapBytes: mapBytes)
    queue = environment.queue
    driver = WriteDriver(environment)
    if environment.knownHandle(RecordFormat.databaseName) != nil {
      try? environment.close()
      throw StorageError(.keyRequired, "the file is encrypted, and this engine takes no key", path: path)
    }
  }

  deinit { environment.abandon() }

  /// `lmdb`.
  public var name: String { "lmdb" }
  /// The file, as an absolute path.
  public var location: String { environment.path }
  /// What a commit survives.
  public var durability: Durability { environment.durability }
  /// Whether writes throw `readOnly`.
  public var isReadOnly: Bool { environment.isReadOnly }
  /// False: a file gives space back only as a copy.
  public var compactsInPlace: Bool { false }

  /// `LMDB` and its version.
  public var library: String { Self.library }

  static var library: String {
    var major: Int32 = 0
    var minor: Int32 = 0
    var patch: Int32 = 0
    _ = mdb_version(&major, &minor, &patch)
    return "LMDB \(major).\(minor).\(patch)"
  }

  /// LMDB's flags and limits, by its own names.
  public var settings: [(name: String, value: String)] { environment.settings }

  /// Begins a snapshot: renews one of LMDB's read transactions that rests in a pool.
  public func beginRead() throws -> any ReadTransaction {
    try environment.beginRead()
  }

  /// Runs `body` in the write transaction; writers that wait meanwhile join it as child transactions.
  public func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try environment.checkProcess()
    if environment.isReadOnly { throw environment.error(.readOnly, "this database is open for reading only") }
    try queue.run(driver, body)
  }

  /// Sizes and counts of one snapshot; the free pages are counted in the free list.
  public func statistics() throws -> EngineStatistics {
    let snapshot = try environment.beginOwnRead()
    defer { snapshot.end() }
    return try environment.statistics(of: snapshot)
  }

  /// Writes a compacting copy of the last commit. It takes a snapshot as long as it runs.
  public func backup(to path: String) throws {
    // The snapshot keeps the environment from being closed under the copy.
    let snapshot = try environment.beginOwnRead()
    defer { snapshot.end() }
    try Backup(environment: environment, path: path).run()
  }

  /// Throws `unsupported`.
  public func compact() throws {
    if environment.pool.isClosed { throw environment.error(.closed, "the database is closed") }
    throw environment.error(.unsupported, "LMDB can't shrink a file in place: copy it with a backup")
  }

  /// Walks every page of the last commit in the file itself, without LMDB's map: a damaged file can't crash
  /// it.
  public func checkIntegrity() throws -> [String] {
    try PageFile.withPinnedMeta {
      let snapshot = try environment.beginOwnRead()
      defer { snapshot.end() }
      return try environment.checkIntegrity(of: snapshot)
    }
  }

  /// Closes the file, when no snapshot is open. At durability `normal` the last commit is synced first.
  public func close() throws {
    try environment.close()
  }
}
