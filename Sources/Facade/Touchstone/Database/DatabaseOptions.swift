import Encryption
import Query
import Scripts
import Storage
import Upgrade

/// Options for opening or making a database.
///
/// All opens of one path in a process share the engine. A second open that can write must therefore have the
/// same options as the first, or it throws `otherOptions`. These options may differ: `engine`,
/// `requireEngine`, `creation`, `key`, `checksFile`, `makesParents`, `upgrade`, `queryOptions`, `slowQueryThreshold`, `watchesOtherProcesses`,
/// `scriptsPath` and `scriptLimits`. An open for reading only uses the
/// options of the first open. If the first is for reading only, the options of the first open that can write
/// replace its options.
public struct DatabaseOptions: Sendable {
  /// The engine of a new database; an existing one opens with the engine that made it. Nil means SQLite, or
  /// SQLCipher if there is a key. `lmdb` with a key means `lmdb-encrypted`.
  public var engine: EngineName?
  /// Whether an existing database must have the engine `engine`. If it has another one, it is converted in
  /// place before it opens (`Database.convert`). It is also encrypted with `key` if there is a key. It is
  /// never decrypted this way.
  public var requireEngine: Bool
  /// Whether the database is created if it doesn't exist, must be new, or must exist.
  public var creation: FileCreation
  /// Whether the database is opened for reading only. This open then writes nothing, not even in the
  /// directory, and writes throw `readOnly`. Other opens in this process may write.
  public var isReadOnly: Bool
  /// Whether missing parent directories of a new database are made.
  public var makesParents: Bool
  /// Which failures a commit survives.
  public var durability: Durability
  /// The key of an encrypted database. A new database with a key is encrypted.
  public var key: UserKey?
  /// The number of revisions that this open keeps per branch, 1 or more. Nil, 0 and less mean the value
  /// stored in the database (`Database.setMaximumTreeDepth(_:)`), which is 20 in a new one.
  public var maximumTreeDepth: Int?
  /// Whether the bodies of replaced revisions are kept until `compact()` or `compaction` drops them.
  public var keepsReplacedBodies: Bool
  /// Whether each stored entry is compared with its checksum when it is read. A damaged entry then throws
  /// `damaged`. If false, only `Database.check(deep:)` and `Database.compare` compare checksums. Index
  /// entries have none.
  public var verifiesChecksums: Bool
  /// Whether the engine checks its whole file before anything else is read of it, as `Database.check` does. A file with faults
  /// isn't opened: `Database.open` throws `DamagedFile`. Damaged pages of LMDB can otherwise end the process
  /// (docs/storage-lmdb.md). It takes as long as reading the file. Only the first open of a path in a process checks it.
  public var checksFile = false
  /// The number of revisions stored together in a deep history (`DocumentStore.Options`). For tests.
  package var revisionsPerBlock: Int?
  /// The number of revisions from which the record of a document with several leaves is written once a transaction
  /// (`DocumentStore.Options`). For tests.
  package var wideTree: Int?
  /// The engine of a new database, instead of the one that `engine` names.
  var engineType: EngineType?
  /// When the database compacts itself.
  public var compaction: CompactionPolicy
  /// The maximum size of the engine's page cache, in bytes (`EngineOptions.cacheBytes`).
  public var cacheBytes: Int
  /// How the engine compresses what is new: one of its library's names in `EngineType.compressions`, such as `zstd`. Nil for the engine's
  /// default (docs/storage-rocksdb.md, docs/storage-wiredtiger.md). Opening throws `invalidArgument` for one that it doesn't have.
  public var compression: String?
  /// The path of a library to load instead of the system's SQLite or SQLCipher.
  public var libraryPath: String?

  /// The path of the program that runs scripts of design documents, `touchstone-scripts`. Nil: the one that the
  /// environment variable `TOUCHSTONE_SCRIPTS` names, otherwise the one beside the program that runs. The first open of
  /// a path decides.
  public var scriptsPath: String?
  /// What scripts may use. The first open of a path decides.
  public var scriptLimits: ScriptLimits

  /// From which time on a query that this open runs is slow. The text of a slow query is logged once, with its plan
  /// (`Log`, domain `query`, level `info`). Nil: no query is slow.
  public var slowQueryThreshold: Duration?

  /// Whether observers and live queries hear of the commits and purges of other processes by themselves. If any open
  /// of a path asks for it, all opens in the process get it.
  ///
  /// It costs a thread and a file descriptor while there are observers. The system tells of changes of the files,
  /// and news arrive about 20 ms after a commit. Every commit, also one of this process, costs the thread a read,
  /// at most one in 20 ms; without commits it reads once in ten seconds. Where the system can't tell, it reads
  /// four times a second (docs/documents.md). The database then also records its last 1,024 purges, for good.
  public var watchesOtherProcesses: Bool

  /// Whether and how a 1.x database of the same name is upgraded at opening, if there is no other database of
  /// that name (`Database.upgrade`). For `catalog` that is `catalog.cblite2` or `catalog.cblite`. The name to
  /// open may have that suffix too. The old database is kept.
  public var upgrade: UpgradeOptions?

  /// The options of queries that are prepared without options. They belong to this open alone.
  public var queryOptions: Query.Options

  /// Makes options. By default: SQLite, created if it doesn't exist, durability `normal`.
  public init(
    engine: EngineName? = nil, requireEngine: Bool = false, creation: FileCreation = .openOrCreate,
    isReadOnly: Bool = false, durability: Durability = .normal, key: UserKey? = nil,
    maximumTreeDepth: Int? = nil, keepsReplacedBodies: Bool = true, verifiesChecksums: Bool = false,
    compaction: CompactionPolicy = .standard, cacheBytes: Int = EngineOptions.defaultCacheBytes,
    libraryPath: String? = nil, scriptsPath: String? = nil, scriptLimits: ScriptLimits = ScriptLimits(),
    slowQueryThreshold: Duration? = .milliseconds(100), watchesOtherProcesses: Bool = false,
    makesParents: Bool = false,
    upgrade: UpgradeOptions? = nil, queryOptions: Query.Options = Query.Options()
  ) {
    self.engine = engine
    self.requireEngine = requireEngine
    self.creation = creation
    self.isReadOnly = isReadOnly
    self.durability = durability
    self.key = key
    self.maximumTreeDepth = maximumTreeDepth
    self.keepsReplacedBodies = keepsReplacedBodies
    self.verifiesChecksums = verifiesChecksums
    self.compaction = compaction
    self.cacheBytes = cacheBytes
    self.libraryPath = libraryPath
    self.scriptsPath = scriptsPath
    self.scriptLimits = scriptLimits
    self.slowQueryThreshold = slowQueryThreshold
    self.watchesOtherProcesses = watchesOtherProcesses
    self.makesParents = makesParents
    self.upgrade = upgrade
    self.queryOptions = queryOptions
  }
}
