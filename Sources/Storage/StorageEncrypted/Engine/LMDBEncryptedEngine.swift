import CLMDB
import Storage
import StorageLMDB

/// A storage engine over LMDB with a key. It has its own trees, whose nodes are stored in LMDB as encrypted
/// and authenticated records.
///
/// LMDB provides snapshots, the single writer, durability, locks and sharing between processes, as in
/// `LMDBEngine`. The same rules hold for `fork` and for opening a file only once per process.
/// docs/storage-lmdb-encrypted.md describes what the file reveals without the key.
final class LMDBEncryptedEngine: EngineMaintenance, PageUse {
  let file: EncryptedFile
  private var environment: Environment { file.environment }
  private let queue: GroupCommit
  private let driver: EncryptedWriteDriver

  /// Opens or creates the file at `path`. The lock file is `path` with `-lock` appended.
  ///
  /// Throws `keyRequired` without a key, `invalidArgument` for a key that doesn't have 32 bytes, and
  /// `wrongKey` for another file's key. Throws `notEncrypted` for a file of `LMDBEngine`, and `damaged` for a
  /// file whose header or root was changed. Also throws what `LMDBEngine` throws.
  convenience init(path: String, options: EngineOptions) throws {
    try self.init(
      path: path, options: options, mapBytes: MapSize.wanted(path), nodePages: RecordFormat.standardNodePages)
  }

  /// `nodePages` is the size of the nodes in a new file, in pages of 4,096 bytes.
  init(path: String, options: EngineOptions, mapBytes: Int, nodePages: Int) throws {
    file = try EncryptedFile.open(path: path, options: options, mapBytes: mapBytes, nodePages: nodePages)
    queue = file.environment.queue
    driver = EncryptedWriteDriver(file)
  }

  deinit { environment.abandon() }

  /// The name of the engine: `lmdb-encrypted`.
  var name: String { LMDBEngines.encryptedName }
  /// The absolute path of the file.
  var location: String { file.path }
  /// The failures that a commit survives.
  var durability: Durability { environment.durability }
  /// Whether the engine was opened only for reading. If so, writes throw `readOnly`.
  var isReadOnly: Bool { environment.isReadOnly }
  /// False: only a copy of the file gives space back.
  var compactsInPlace: Bool { false }
  /// The library and its version: `LMDB` and three numbers.
  var library: String { LMDBEngine.library }

  /// LMDB's flags and limits, by LMDB's names, the cipher, and the sizes of the nodes and of their cache.
  var settings: [(name: String, value: String)] {
    environment.settings + [
      ("cipher", "AES-256-GCM"),
      ("node bytes", String(file.nodePages * RecordFormat.pageBytes)),
      ("cache bytes", String(file.cacheBytes)),
    ]
  }

  /// Begins a snapshot: one of LMDB's, with the root that it sees.
  func beginRead() throws -> any ReadTransaction { try file.beginRead() }

  /// Runs `body` in the write transaction. Writers that wait meanwhile join it. Most changes are encrypted
  /// after all bodies have run; large values, and the nodes of very large transactions, are encrypted
  /// earlier.
  func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try environment.checkWritable()
    try queue.run(driver, body)
  }

  /// Returns the sizes of LMDB's file and the entry counts of the encrypted keyspaces.
  func statistics() throws -> EngineStatistics {
    let snapshot = try file.beginRead(isOwn: true)
    defer { snapshot.end() }
    var statistics = try environment.statistics(of: snapshot.outer)
    statistics.entries = Dictionary(
      uniqueKeysWithValues: snapshot.state.table.items.map { ($0.name, $0.tree.count) })
    return statistics
  }

  /// Writes a compacting copy of the last commit, with the same key. It holds a snapshot while it runs.
  func backup(to path: String) throws {
    try environment.backup(to: path)
  }

  /// Throws `unsupported`: LMDB can't compact a file in place.
  func compact() throws {
    try environment.compact()
  }

  /// Checks LMDB's pages in the file itself. If they are sound, it also decrypts every record of the last
  /// commit and checks the order and number of entries. Decryption detects any change of a record.
  func checkIntegrity() throws -> [String] {
    try PageFile.withPinnedMeta {
      let snapshot = try file.beginRead(isOwn: true)
      defer { snapshot.end() }
      let faults = try environment.checkIntegrity(of: snapshot.outer)
      return try faults.isEmpty ? TreeCheck(snapshot).run() : faults
    }
  }

  func pageUse() throws -> (Int) -> Bool {
    try PageFile.withPinnedMeta {
      let snapshot = try file.beginRead(isOwn: true)
      defer { snapshot.end() }
      return try environment.pageUse(of: snapshot.outer)
    }
  }

  /// Closes the file and drops all decrypted data. Throws `inUse` while snapshots are open.
  func close() throws {
    try environment.close()
    file.forget()
  }
}
