import Encryption
import Storage
import Upgrade

/// How a database is opened or made.
///
/// Opens of one path in a process share the engine. So a second one that can write has to have the options of the first
/// (`otherOptions`), but for `engine`, `requireEngine`, `creation`, `key`, `makesParents` and `upgrade`; one that only
/// reads goes by those of the first, and one that can write beside one that only reads decides for both.
public struct DatabaseOptions: Sendable {
  /// The engine of a new database; one that exists opens with the engine that made it. Without a name it is
  /// SQLite, or SQLCipher when there is a key; `lmdb` with a key is `lmdb-encrypted`.
  public var engine: EngineName?
  /// Whether a database that exists has to be of that engine: one of another engine is converted in place before it
  /// opens (`Database.convert`), and encrypted with `key` when that is given and the engine encrypts. It is never
  /// decrypted by that.
  public var requireEngine: Bool
  /// Whether a database that isn't there is made, or has to be.
  public var creation: EngineOptions.Creation
  /// Nothing is written through this open, not even in the directory; writes throw `readOnly`. Others that this process
  /// opens may write.
  public var isReadOnly: Bool
  /// Whether the directory that a new database is made in is made too, with those above it.
  public var makesParents: Bool
  /// What a commit survives.
  public var durability: Durability
  /// The key of an encrypted database; for a new one it makes the database encrypted.
  public var key: UserKey?
  /// How many revisions of each branch are remembered, 1 or more, by this open. Nil, as 0 and less: as the database says
  /// (`Database.setMaximumTreeDepth(_:)`), which is 20 for a new one.
  public var maximumTreeDepth: Int?
  /// Whether the bodies of replaced revisions stay until `compact()`, or until `compaction` drops them.
  public var keepsReplacedBodies: Bool
  /// Whether each stored entry that is read is held against its checksum: a damaged one then throws `damaged`. Without,
  /// `Database.check(deep:)` and `Database.compare` do. Index entries have no checksums.
  public var verifiesChecksums: Bool
  /// How many revisions of a deep history are stored together (`DocumentStore.Options`). For tests.
  package var revisionsPerBlock: Int?
  /// When the database is compacted by itself.
  public var compaction: CompactionPolicy
  /// What the engine's own cache of pages may hold, in bytes (`EngineOptions.cacheBytes`).
  public var cacheBytes: Int
  /// The library to load in place of the system's SQLite or SQLCipher.
  public var libraryPath: String?

  /// Whether a 1.x database of the name is upgraded when there is no other one of it, and how (`Database.upgrade`): of
  /// `catalog` that is `catalog.cblite2` or `catalog.cblite`. The name may have that ending too. The old one stays.
  public var upgrade: UpgradeOptions?

  /// The defaults: SQLite, made when it isn't there, durability `normal`.
  public init(
    engine: EngineName? = nil, requireEngine: Bool = false, creation: EngineOptions.Creation = .openOrCreate,
    isReadOnly: Bool = false, durability: Durability = .normal, key: UserKey? = nil,
    maximumTreeDepth: Int? = nil, keepsReplacedBodies: Bool = true, verifiesChecksums: Bool = false,
    compaction: CompactionPolicy = .standard, cacheBytes: Int = EngineOptions.defaultCacheBytes,
    libraryPath: String? = nil,
    makesParents: Bool = false,
    upgrade: UpgradeOptions? = nil
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
    self.makesParents = makesParents
    self.upgrade = upgrade
  }
}
