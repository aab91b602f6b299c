import CLMDB
import Glibc
import Storage

/// A storage engine over LMDB: a copy-on-write B-tree in one memory-mapped file. Snapshot reads take no lock
/// and copy nothing.
///
/// A process may open a path only once. A second open of the same file throws `inUse` until the first one is
/// closed, because POSIX drops a process's locks on a file when any of its descriptors closes. Other
/// processes may have the file open at the same time. An engine doesn't survive `fork`: in the child all
/// calls throw `unsupported`, and the child must open the path itself. See docs/storage-lmdb.md.
package final class LMDBEngine: EngineMaintenance {
  /// The keyspace of a file that is encrypted as a whole (`StorageEncrypted`). No user's keyspace can have its
  /// name.
  package static let encryptedKeyspace = "@records"

  let environment: Environment
  let queue: GroupCommit
  private let driver: WriteDriver

  /// Opens or creates the file at `path`. The lock file is `path` with `-lock` appended.
  ///
  /// Throws `notEncrypted` if a key is given, `keyRequired` if the file is encrypted, and `inUse` if this
  /// process has the file open. Throws `notADatabase`, `unsupportedVersion` or `damaged` for files that LMDB
  /// can't safely map.
  package convenience init(path: String, options: EngineOptions) throws {
    try self.init(path: path, options: options, mapBytes: MapSize.wanted(path))
  }

  init(path: String, options: EngineOptions, mapBytes: Int) throws {
    guard options.key == nil else {
      throw StorageError(
        .notEncrypted, "a key was given, but the engine lmdb can't encrypt; use lmdb-encrypted", path: path)
    }
    environment = try EnvironmentRegistry.open(path: path, options: options, mapBytes: mapBytes)
    queue = environment.queue
    driver = WriteDriver(environment)
    if environment.knownHandle(Self.encryptedKeyspace) != nil {
      try? environment.close()
      throw StorageError(
        .keyRequired, "the file is encrypted; open it with the engine lmdb-encrypted", path: path)
    }
  }

  deinit { environment.abandon() }

  /// The name of the engine: `lmdb`.
  package var name: String { "lmdb" }
  /// The absolute path of the file.
  package var location: String { environment.path }
  /// The failures that a commit survives.
  package var durability: Durability { environment.durability }
  /// Whether the engine was opened only for reading. If so, writes throw `readOnly`.
  package var isReadOnly: Bool { environment.isReadOnly }
  /// False: only a copy of the file gives space back.
  package var compactsInPlace: Bool { false }

  /// The library and its version: `LMDB` and three numbers.
  package var library: String { Self.library }

  package static var library: String {
    var major: Int32 = 0
    var minor: Int32 = 0
    var patch: Int32 = 0
    _ = mdb_version(&major, &minor, &patch)
    return "LMDB \(major).\(minor).\(patch)"
  }

  /// LMDB's flags and limits, by LMDB's names.
  package var settings: [(name: String, value: String)] { environment.settings }

  /// Begins a snapshot. It renews one of the pool's read transactions of LMDB.
  package func beginRead() throws -> any ReadTransaction {
    try environment.beginRead()
  }

  /// Runs `body` in the write transaction. Writers that wait meanwhile join it as child transactions.
  package func write(_ body: (any WriteTransaction) throws -> Void) throws {
    try environment.checkWritable()
    try queue.run(driver, body)
  }

  /// Returns sizes and counts of one snapshot. The number of free pages comes from the free list.
  package func statistics() throws -> EngineStatistics {
    let snapshot = try environment.beginOwnRead()
    defer { snapshot.end() }
    return try environment.statistics(of: snapshot)
  }

  /// Writes a compacting copy of the last commit. It holds a snapshot while it runs.
  package func backup(to path: String) throws {
    try environment.backup(to: path)
  }

  /// Throws `unsupported`: LMDB can't compact a file in place.
  package func compact() throws {
    try environment.compact()
  }

  /// Checks every page of the last commit. It reads the file itself, without LMDB's map, so a damaged file
  /// can't crash it.
  package func checkIntegrity() throws -> [String] {
    try PageFile.withPinnedMeta {
      let snapshot = try environment.beginOwnRead()
      defer { snapshot.end() }
      return try environment.checkIntegrity(of: snapshot)
    }
  }

  /// Closes the file. Throws `inUse` while snapshots are open. At durability `normal` it first syncs the last
  /// commit.
  package func close() throws {
    try environment.close()
  }
}
