import Blobs
import Fleece
import Storage
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

// The keyspaces of a database:
//
//   meta       name → value                        see below
//   docs       document ID → DocumentRecord        live documents
//   deleted    document ID → DocumentRecord        tombstones
//   changes    sequence → flags:u8 document ID     the latest change of each document (flags as in the record,
//                                                  and 4: it came by sync)
//   bodies     sequence → BodyRecord               bodies of replaced revisions, until compaction
//   conflicts  sequence → BodyRecord               bodies of leaves that aren't current
//   history      document ID, generation → HistoryBlock.swift: older revisions of deep histories; made with the first
//   expiry       time document ID → nothing        when documents expire (Expiration.swift)
//   expirations  document ID → time                the same by document
//   local        name → LocalDocument.swift        local documents; made with the first one
//
//   meta/format       version:u8 = 1, or 2 once there was an index
//   meta/publicUUID   16 bytes
//   meta/privateUUID  16 bytes
//   meta/previousPrivateUUID  16 bytes, in a copy: the private UUID of what it was copied from
//   meta/state        last sequence:u64 big-endian  number of shared keys:u16 big-endian
//                     index generation:u32 big-endian, left out while it is 0
//   meta/index/NAME   IndexRecord
//   meta/sharedKeys   Fleece array of strings
//   meta/treeDepth    revisions that are remembered of each branch:u32 big-endian; missing: 20

/// Documents with their revisions over any engine: what `Database` is a face of.
///
/// Thread safe: any number of readers beside one writer.
public final class DocumentStore: Sendable {
  /// How documents are kept.
  public struct Options: Sendable {
    /// How many revisions of each branch are remembered; nil, as 0 and less: as the database says.
    public var maximumTreeDepth: Int?
    /// Whether the bodies of replaced revisions stay until `compact()`.
    public var keepsReplacedBodies: Bool
    /// How many revisions of a deep history are stored together; a record keeps up to twice as many. For tests.
    package var revisionsPerBlock = 32
    /// The kinds of indexes that are known. A database with another can only be read.
    public var indexKinds: [any IndexKind]

    /// Options; see the properties.
    public init(
      maximumTreeDepth: Int? = nil, keepsReplacedBodies: Bool = true, indexKinds: [any IndexKind] = []
    ) {
      self.maximumTreeDepth = maximumTreeDepth.flatMap { $0 < 1 ? nil : $0 }
      self.keepsReplacedBodies = keepsReplacedBodies
      self.indexKinds = indexKinds
    }
  }

  struct Keyspaces: Sendable {
    let meta, docs, deleted, changes, bodies, conflicts, expiry, expirations: Keyspace
  }

  /// What an operation needs, taken once at its start.
  final class Context: Sendable {
    let engine: any StorageEngine
    let keyspaces: Keyspaces
    let sharedKeys: SharedKeys
    let maximumTreeDepth: Int

    init(
      engine: any StorageEngine, keyspaces: Keyspaces, sharedKeys: SharedKeys, maximumTreeDepth: Int
    ) {
      self.engine = engine
      self.keyspaces = keyspaces
      self.sharedKeys = sharedKeys
      self.maximumTreeDepth = maximumTreeDepth
    }
  }

  /// How documents are kept, as it was said at the opening.
  public let options: Options
  /// Where blobs are; nil when there is no place for them.
  public let blobs: BlobStore?
  /// Identifies the database to others: 16 bytes.
  public let publicUUID: [UInt8]
  /// Never leaves the device: 16 bytes.
  public let privateUUID: [UInt8]
  private let current: Lock<Context>
  /// What a check looks at besides the documents.
  let checkers = Lock<[any IntegrityChecker]>([])
  /// The thread whose batch is open (0: none).
  let batchThread = Atomic<UInt>(0)
  /// Passed by writers, closed by who replaces the engine.
  let gate = WriteGate()
  /// Whether a commit failed since the writer last began: what it remembers of indexes may never have been.
  let commitFailed = Atomic<Bool>(false)
  /// Counts commits of this process that gave documents other bodies under old sequences, as the purge of a branch does.
  let unsequencedCommits = Atomic<UInt64>(0)
  /// Counts bodies that this process has removed: of purged documents and of dropped revisions.
  let removedBodies = Atomic<UInt64>(0)
  /// Passed by work in the background that reads or writes, closed by who closes the engine.
  let background = WriteGate()
  /// Tells observers of commits.
  let feed = ChangeFeed()
  /// Told of what asks for work in the background. Set before the store is shared.
  public nonisolated(unsafe) weak var upkeep: (any DocumentUpkeep)?
  /// Used by one thread at a time: the one that is in a write transaction.
  nonisolated(unsafe) let writer: DocumentWriter
  /// The indexes of a committed state, as read last.
  let lastCatalog = Lock<IndexCatalog>(.empty)

  /// What a new database begins with, and what it has once there is an index: releases that don't maintain
  /// indexes must not write to it.
  static let formatVersion: UInt8 = 1
  static let formatVersionWithIndexes: UInt8 = 2

  /// Opens the documents in `engine`, or makes an empty set of them.
  ///
  /// Throws `unsupportedVersion` for a format of a later release and `damaged` for one that can't be read.
  public init(engine: any StorageEngine, options: Options = Options(), blobs: BlobStore? = nil) throws {
    self.options = options
    self.blobs = blobs
    let isComplete = try engine.read { transaction in
      let format = try transaction.keyspace(named: "meta").flatMap {
        try transaction.bytes(Array("format".utf8), in: $0)
      }
      // The youngest keyspace: a database may be older.
      guard format == [DocumentStore.formatVersion], !engine.isReadOnly else { return format != nil }
      return try transaction.keyspace(named: "expirations") != nil
    }
    if !isComplete {
      guard !engine.isReadOnly else {
        throw DocumentError(.notFound, "there is no database in \(engine.path)")
      }
      try engine.writeRepeating { transaction in try DocumentStore.create(in: transaction) }
    }
    let opened = try engine.readRepeating { transaction in
      try DocumentStore.load(from: transaction, engine: engine, options)
    }
    publicUUID = opened.publicUUID
    privateUUID = opened.privateUUID
    if !engine.isReadOnly {
      for index in opened.indexes.records { _ = try options.kind(of: index) }
    }
    current = Lock(opened.context)
    writer = try DocumentWriter(options: options, blobs: blobs)
  }

  private static func create(in transaction: any WriteTransaction) throws {
    let meta = try transaction.createKeyspace("meta", shape: .entries)
    let shapes: [(String, KeyspaceShape)] = [
      ("docs", .documents), ("deleted", .documents), ("changes", .sequences), ("bodies", .sequences),
      ("conflicts", .sequences), ("expiry", .entries), ("expirations", .entries),
    ]
    for (name, shape) in shapes where try transaction.keyspace(named: name) == nil {
      _ = try transaction.createKeyspace(name, shape: shape)
    }
    // Another process may have been first.
    guard try transaction.bytes(Array("format".utf8), in: meta) == nil else { return }
    try transaction.put(Array("format".utf8), [formatVersion], in: meta)
    for name in ["publicUUID", "privateUUID"] {
      try transaction.put(Array(name.utf8), randomUUID(), in: meta)
    }
  }

  private static func load(
    from transaction: any ReadTransaction, engine: any StorageEngine, _ options: Options
  ) throws -> (
    context: Context, publicUUID: [UInt8], privateUUID: [UInt8], indexes: IndexCatalog
  ) {
    func keyspace(_ name: String) throws -> Keyspace {
      guard let keyspace = try transaction.keyspace(named: name) else {
        throw DocumentError(.damaged, "the keyspace \(name) is missing in \(engine.path)")
      }
      return keyspace
    }
    let keyspaces = Keyspaces(
      meta: try keyspace("meta"), docs: try keyspace("docs"), deleted: try keyspace("deleted"),
      changes: try keyspace("changes"), bodies: try keyspace("bodies"), conflicts: try keyspace("conflicts"),
      expiry: try keyspace("expiry"), expirations: try keyspace("expirations"))
    func meta(_ name: String) throws -> [UInt8]? {
      try transaction.bytes(Array(name.utf8), in: keyspaces.meta)
    }
    let format = try meta("format")
    if let version = format?.first, version > formatVersionWithIndexes {
      throw DocumentError(
        .unsupportedVersion,
        "the documents in \(engine.path) are of format \(version); this release knows \(formatVersionWithIndexes)"
      )
    }
    guard format == [formatVersion] || format == [formatVersionWithIndexes],
      let publicUUID = try meta("publicUUID"), publicUUID.count == 16,
      let privateUUID = try meta("privateUUID"), privateUUID.count == 16
    else { throw DocumentError(.damaged, "the database's own records can't be read in \(engine.path)") }
    let sharedKeys = try loadSharedKeys(transaction, keyspaces.meta)
    let depth = try options.maximumTreeDepth ?? storedTreeDepth(transaction, keyspaces.meta)
    let context = Context(
      engine: engine, keyspaces: keyspaces, sharedKeys: sharedKeys,
      maximumTreeDepth: depth ?? defaultTreeDepth)
    let indexes = try IndexCatalog.load(
      State(transaction, keyspaces.meta).indexGeneration, transaction, keyspaces.meta)
    return (context, publicUUID, privateUUID, indexes)
  }

  static func loadSharedKeys(_ transaction: any ReadTransaction, _ meta: Keyspace) throws -> SharedKeys {
    guard let bytes = try transaction.bytes(Array("sharedKeys".utf8), in: meta) else { return .empty }
    do { return try bytes.withUnsafeBytes { try SharedKeys(fleece: $0) } } catch {
      throw DocumentError(.damaged, "the table of shared keys can't be read: \(error)")
    }
  }

  // MARK: The current context

  var context: Context { current.withLock { $0 } }

  /// The engine below, as of now: a compaction may put another in its place.
  public var engine: any StorageEngine { context.engine }

  /// The names of properties that are stored as numbers, as known now.
  public var sharedKeys: SharedKeys {
    if isInBatch, let context = writer.contextOfNow { return context.sharedKeys }
    return context.sharedKeys
  }

  /// Makes later operations use `engine`, which holds the same data (after a compaction into a new file).
  public func replaceEngine(_ engine: any StorageEngine) throws {
    let opened = try engine.read { transaction in
      try DocumentStore.load(from: transaction, engine: engine, options)
    }
    current.withLock { $0 = opened.context }
  }

  /// Remembers shared keys that a committed transaction added, or that a reader found.
  func publish(_ sharedKeys: SharedKeys) {
    current.withLock { context in
      guard sharedKeys.count > context.sharedKeys.count else { return }
      context = Context(
        engine: context.engine, keyspaces: context.keyspaces, sharedKeys: sharedKeys,
        maximumTreeDepth: context.maximumTreeDepth)
    }
  }

  /// Makes later transactions prune to `depth`.
  func publish(maximumTreeDepth depth: Int) {
    current.withLock { context in
      context = Context(
        engine: context.engine, keyspaces: context.keyspaces, sharedKeys: context.sharedKeys,
        maximumTreeDepth: depth)
    }
  }

  // MARK: Counting

  /// How many bodies this process has removed since it opened the database, of purged documents and of dropped
  /// revisions: what only they named may be garbage.
  public var removedBodyCount: UInt64 { removedBodies.load(ordering: .relaxed) }

  /// How many live documents there are. Constant time.
  public var documentCount: Int {
    get throws {
      try reading { transaction, context in try transaction.count(of: context.keyspaces.docs) }
    }
  }

  /// How many tombstones there are. Constant time.
  public var tombstoneCount: Int {
    get throws {
      try reading { transaction, context in try transaction.count(of: context.keyspaces.deleted) }
    }
  }

  /// The sequence of the latest change, 0 when there was none.
  public var lastSequence: UInt64 {
    get throws {
      if isInBatch, let sequence = writer.lastSequence { return sequence }
      return try reading { transaction, context in
        try State(transaction, context.keyspaces.meta).lastSequence
      }
    }
  }

  /// The record `meta/state`.
  struct State {
    static let key = Array("state".utf8)
    var lastSequence: UInt64 = 0
    var sharedKeyCount = 0
    /// Changes whenever an index is made or removed; 0 while there never was one.
    var indexGeneration: UInt32 = 0

    init(_ transaction: any ReadTransaction, _ meta: Keyspace) throws {
      let key = State.key
      _ = try transaction.read(key.span.bytes, in: meta) { try read($0) }
    }

    private mutating func read(_ bytes: RawSpan) throws {
      guard bytes.byteCount == 10 || bytes.byteCount == 14 else {
        throw DocumentError(.damaged, "the record of the last sequence can't be read")
      }
      lastSequence = UInt64(bigEndian: bytes.unsafeLoadUnaligned(as: UInt64.self))
      sharedKeyCount = Int(UInt16(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt16.self)))
      if bytes.byteCount == 14 {
        indexGeneration = UInt32(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 10, as: UInt32.self))
      }
      guard lastSequence <= maximumSequence, sharedKeyCount <= 2048 else {
        throw DocumentError(.damaged, "the record of the last sequence can't be right")
      }
    }

    func write(_ transaction: any WriteTransaction, _ meta: Keyspace) throws {
      try withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { bytes in
        bytes.storeBytes(of: lastSequence.bigEndian, as: UInt64.self)
        bytes.storeBytes(of: UInt16(sharedKeyCount).bigEndian, toByteOffset: 8, as: UInt16.self)
        // At byte 10 four bytes aren't aligned.
        withUnsafeBytes(of: indexGeneration.bigEndian) { generation in
          UnsafeMutableRawBufferPointer(rebasing: bytes[10..<14]).copyMemory(from: generation)
        }
        let record = UnsafeRawBufferPointer(rebasing: bytes[..<(indexGeneration == 0 ? 10 : 14)])
        let key = State.key
        try transaction.put(key.span.bytes, record.bytes, in: meta)
      }
    }
  }
}
