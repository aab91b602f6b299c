import CLMDB
import Storage

/// LMDB with a key: trees of this module's own, whose nodes lie in LMDB encrypted and authenticated, as a whole.
///
/// Snapshots, the one writer, durability, locks and processes are LMDB's, as for `LMDBEngine`; so are the rules of
/// opening a file once a process, and of `fork`. What the file tells to who hasn't the key is in
/// docs/storage-lmdb-encrypted.md.
public final class LMDBEncryptedEngine: EngineMaintenance {
  let file: EncryptedFile
  private var environment: Environment { file.environment }
  private let queue: WriteQueue
  private let driver: EncryptedWriteDriver

  /// Opens or creates the file at `path`; its lock file is `path` with `-lock` appended.
  ///
  /// Throws `keyRequired` without a key, `invalidArgument` for one that hasn't 32 bytes, `wrongKey`, `notEncrypted` for
  /// a file of `LMDBEngine`, `damaged` for one whose header or root was changed, and what that engine throws.
  public convenience init(path: String, options: EngineOptions) throws {
    try self.init(
      path: path, options: options, mapBytes: MapSize.wanted(), nodePages: RecordFormat.standardNodePages)
  }

  /// `nodePages` is the size of a new file's nodes, in pages of 4,096 bytes.
  init(path: String, options: EngineOptions, mapBytes: Int, nodePages: Int) throws {
    file = try EncryptedFile.open(path: path, options: options, mapBytes: mapBytes, nodePages: nodePages)
    queue = file.environment.queue
    driver = EncryptedWriteDriver(file)
  }

  deinit { environment.abandon() }

  /// `lmdb-encrypted`.
  public var name: String { LMDBEngines.encryptedName }
  /// The file, as an absolute path.
  public var location: String { file.path }
  /// What a commit survives.
  public var durability: Durability { environment.durability }
  /// Whether writes throw `readOnly`.
  public var isReadOnly: Bool { environment.isReadOnly }
  /// False: a file gives space back only as a copy.
  public var compactsInPlace: Bool { false }
  /// `LMDB` and its version.
  public var library: String { LMDBEngine.library }

  /// LMDB's flags and limits, by its own names, the cipher, and the sizes of nodes and of their cache.
  public var settings: [(name: String, value: String)] {
    environment.settings + [
      ("cipher", "AES-256-GCM"),
      ("node bytes", String(file.nodePages * RecordFormat.pageBytes)),
      ("cache bytes", String(file.cacheBytes)),
    ]
  }

  /// Begins a snapshot: one of LMDB's, and the root that it sees.
  public func beginRead() throws -> any ReadTransaction { try file.beginRead() }

  /// Runs `body` in the write transaction; writers that wait meanwhile join it. What it changes is encrypted when all
  /// have run.
  public func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try environment.checkProcess()
    if environment.isReadOnly { throw environment.error(.readOnly, "this database is open for reading only") }
    try queue.run(driver, body)
  }

  /// Sizes of LMDB's file, and the counts of the encrypted keyspaces.
  public func statistics() throws -> EngineStatistics {
    let snapshot = try file.beginRead(isOwn: true)
    defer { snapshot.end() }
    var statistics = try environment.statistics(of: snapshot.outer)
    statistics.entries = Dictionary(
      uniqueKeysWithValues: snapshot.state.table.items.map { ($0.name, $0.tree.count) })
    return statistics
  }

  /// Writes a compacting copy of the last commit, with the same key. It takes a snapshot as long as it runs.
  public func backup(to path: String) throws {
    let snapshot = try environment.beginOwnRead()
    defer { snapshot.end() }
    try Backup(environment: environment, path: path).run()
  }

  /// Throws `unsupported`.
  public func compact() throws {
    if environment.pool.isClosed { throw environment.error(.closed, "the database is closed") }
    throw environment.error(.unsupported, "LMDB can't shrink a file in place: copy it with a backup")
  }

  /// Walks LMDB's pages in the file itself, and then, when they are sound, every record of the last commit: each is
  /// decrypted, which finds any change, and the order and number of entries are looked at.
  public func checkIntegrity() throws -> [String] {
    try PageFile.withPinnedMeta {
      let snapshot = try file.beginRead(isOwn: true)
      defer { snapshot.end() }
      let faults = try environment.checkIntegrity(of: snapshot.outer)
      return try faults.isEmpty ? TreeCheck(snapshot).run() : faults
    }
  }

  /// Closes the file, when no snapshot is open, and forgets what was decrypted.
  public func close() throws {
    try environment.close()
    file.forget()
  }
}
