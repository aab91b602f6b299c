import Blobs
import Fleece
import Storage
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

// The keyspaces of a database. Every entry's value ends with a checksum (EntryChecksums.swift), not shown
// here:
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
//   purges       number → PurgeRecord.swift        the last purges, for other processes and views; made when they ask for them
//   sync, marks  SyncRecords.swift                 checkpoints, and what is known to be on remote databases
//   views        what the module Views keeps of each view (docs/views.md); made with the first view
//   view.N…      the rows of view N
//
//   meta/format       version:u8 (DocumentStore+Format.swift)
//   meta/publicUUID   16 bytes
//   meta/privateUUID  16 bytes
//   meta/previousPrivateUUID  16 bytes, in a copy: the private UUID of the original
//   meta/state        last sequence:u64 big-endian  number of shared keys:u16 big-endian
//                     index generation:u32 big-endian, left out while it is 0
//   meta/index/NAME   IndexRecord
//   meta/sharedKeys   Fleece array of strings
//   meta/security     CouchDB's security object, JSON text; missing: the default (DocumentStore+Security.swift)
//   meta/purgeLimit   requests to purge that are kept:u64 big-endian; missing: 1,000 (DocumentStore+PurgeRequests.swift)
//   meta/partitioned  one byte, 1: the IDs of documents name partitions (DocumentStore+Partitions.swift); missing: they don't
//   meta/treeDepth    revisions that are kept of each branch:u32 big-endian; missing: 20

/// Stores documents and their revisions in any storage engine. Any number of readers can run beside one writer.
///
/// `Database` is built on it, and documents the methods that both have.
package final class DocumentStore: Sendable {
  /// Options of a document store.
  package struct Options: Sendable {
    /// How many revisions of each branch are kept. Nil, 0 or less: the number that is stored in the database.
    package var maximumTreeDepth: Int?
    /// Whether the bodies of replaced revisions stay until `compact()`.
    package var keepsReplacedBodies: Bool
    /// How many revisions of a deep history are stored together. A record keeps up to twice as many. For
    /// tests.
    package var revisionsPerBlock = 32
    /// How many revisions a document with several leaves has at least whose record is written once a transaction. For tests.
    package var wideTree = 64
    /// Whether every entry that is read is verified against its checksum.
    package var verifiesChecksums: Bool
    /// The known kinds of indexes. A database with an index of another kind can only be opened read-only.
    package var indexKinds: [any IndexKind]

    /// The path that log entries name. Nil: the engine's location.
    package var path: String?

    /// Creates options. See the properties.
    package init(
      maximumTreeDepth: Int? = nil, keepsReplacedBodies: Bool = true, verifiesChecksums: Bool = false,
      indexKinds: [any IndexKind] = []
    ) {
      self.maximumTreeDepth = maximumTreeDepth.flatMap { $0 < 1 ? nil : $0 }
      self.keepsReplacedBodies = keepsReplacedBodies
      self.verifiesChecksums = verifiesChecksums
      self.indexKinds = indexKinds
    }
  }

  struct Keyspaces: Sendable {
    let meta, docs, deleted, changes, bodies, conflicts, expiry, expirations: Keyspace
  }

  /// The state that an operation needs. An operation takes it once, at its start.
  final class Context: Sendable {
    let engine: any StorageEngine
    let keyspaces: Keyspaces
    /// Nil for documents of an earlier format, which can only be read.
    let checksums: EntryChecksums?
    /// Whether every entry that is read is verified against its checksum.
    let verifiesChecksums: Bool
    let sharedKeys: SharedKeys
    let treeDepth: KnownTreeDepth
    /// The record `meta/state` that a snapshot has read last, with the version of that snapshot.
    private let lastState = Lock<(version: SnapshotVersion, state: State)?>(nil)

    init(
      engine: any StorageEngine, keyspaces: Keyspaces, checksums: EntryChecksums?, verifiesChecksums: Bool,
      sharedKeys: SharedKeys, treeDepth: KnownTreeDepth
    ) {
      self.engine = engine
      self.keyspaces = keyspaces
      self.checksums = checksums
      self.verifiesChecksums = verifiesChecksums
      self.sharedKeys = sharedKeys
      self.treeDepth = treeDepth
    }

    /// The record `meta/state` of a snapshot.
    func state(of transaction: any ReadTransaction) throws -> State {
      guard let version = transaction.snapshotVersion else { return try State(transaction, keyspaces.meta) }
      if let last = lastState.withLock({ $0 }), last.version == version { return last.state }
      let state = try State(transaction, keyspaces.meta)
      lastState.withLock { $0 = (version, state) }
      return state
    }

    /// Returns a copy with other shared keys or another tree depth.
    func with(sharedKeys: SharedKeys? = nil, treeDepth: KnownTreeDepth? = nil) -> Context {
      Context(
        engine: engine, keyspaces: keyspaces, checksums: checksums, verifiesChecksums: verifiesChecksums,
        sharedKeys: sharedKeys ?? self.sharedKeys, treeDepth: treeDepth ?? self.treeDepth)
    }
  }

  /// The options that the store was opened with.
  package var options: Options { currentOptions.withLock { $0 } }
  private let currentOptions: Lock<Options>
  /// The blob store, or nil if the database has none.
  package let blobs: BlobStore?
  /// The source of the blobs of documents that were read, or nil.
  let blobSource: BlobSource?
  /// Identifies the database to other peers: 16 bytes.
  package let publicUUID: [UInt8]
  /// A private identifier that never leaves the device: 16 bytes.
  package let privateUUID: [UInt8]
  private let current: Lock<Context>
  /// Additional checkers that an integrity check runs besides those of the documents.
  let checkers = Lock<[any IntegrityChecker]>([])
  /// The thread whose batch is open, 0 if there is none.
  let batchThread = Atomic<UInt>(0)
  /// Writers pass this gate. Replacing the engine closes it.
  let gate = WriteGate()
  /// The validation functions, ordered by name.
  let validations = Lock<[NamedValidation]>([])
  /// Whether there are validation functions.
  let hasValidations = Atomic<Bool>(false)
  /// Counts commits of this process that stored documents below the last sequence, as an import may.
  let unsequencedCommits = Atomic<UInt64>(0)
  /// Counts bodies that this process has removed: those of purged documents and of dropped revisions.
  let removedBodies = Atomic<UInt64>(0)
  /// The greatest last sequence that a commit of this process wrote or a snapshot of it read. For estimates.
  let greatestSequence = Atomic<UInt64>(0)
  /// Background reads and writes pass this gate. Closing the engine closes it.
  let background = WriteGate()
  /// Marks the recorded purges of this open database.
  let purgeWriter = UInt64.random(in: .min ... .max)
  /// Notifies observers of commits.
  let notifier = ObserverNotifier()
  /// The delegate that is notified when background work is due. Set before the store is shared.
  package nonisolated(unsafe) weak var upkeep: (any DocumentUpkeep)?
  /// Used by one thread at a time: the one in a write transaction. Replaced only while no thread writes.
  private(set) nonisolated(unsafe) var writer: DocumentWriter
  /// Held while the engine is closed and reopened. Readers that find the engine closed wait for it.
  private let reopening = Lock(())
  /// The indexes of the committed state that was last read.
  let lastCatalog = Lock<IndexCatalog>(.empty)

  /// Opens the documents in `engine`, or creates an empty store. Documents of an earlier format are converted
  /// in one transaction. An engine that was opened read-only is read in its present format.
  ///
  /// Throws `unsupportedVersion` for the format of a later release, `damaged` for a format that can't be
  /// read, and `unsupported` when the engine's limits are too low. Throws `notFound` when a read-only engine
  /// has no documents, and `unknownIndexKind` when a writable engine has an index whose kind isn't in the
  /// options.
  package init(engine: any StorageEngine, options: Options = Options(), blobs: BlobStore? = nil) throws {
    currentOptions = Lock(options)
    self.blobs = blobs
    blobSource = blobs.map { BlobSource(blobsOf: $0) }
    guard engine.limits.keyBytes >= StorageLimits.maximumKeyBytes else {
      throw StorageError(
        .unsupported,
        "documents need keys of \(StorageLimits.maximumKeyBytes) bytes, but the engine \(engine.name) allows only"
          + " \(engine.limits.keyBytes)", path: engine.location)
    }
    let opened = try Self.open(engine, options)
    publicUUID = opened.publicUUID
    privateUUID = opened.privateUUID
    if !engine.isReadOnly { try Self.check(opened.indexes, options) }
    current = Lock(opened.context)
    writer = try DocumentWriter(options: options, blobs: blobs, purgeWriter: purgeWriter)
  }

  /// Throws `unknownIndexKind` unless all indexes are of known kinds.
  private static func check(_ indexes: IndexCatalog, _ options: Options) throws {
    for index in indexes.records { _ = try options.kind(of: index) }
  }

  /// The state of the documents in an engine after opening.
  private struct Opened {
    let context: Context
    let publicUUID: [UInt8]
    let privateUUID: [UInt8]
    let indexes: IndexCatalog
  }

  /// Opens the documents in `engine`. Creates what is missing and converts an earlier format.
  private static func open(_ engine: any StorageEngine, _ options: Options) throws -> Opened {
    func load() throws -> Opened? {
      try engine.readRepeating { transaction in
        guard let format = try storedFormat(transaction, in: engine.location),
          format.isCurrent || engine.isReadOnly
        else { return nil }
        return try self.load(from: transaction, format, engine: engine, options)
      }
    }
    // Most databases exist and are current. They need one snapshot only.
    if let opened = try load() { return opened }
    if !engine.isReadOnly {
      try engine.writeRepeating { try create(in: $0, location: engine.location) }
      if let opened = try load() { return opened }
    }
    throw missing(in: engine)
  }

  private static func missing(in engine: any StorageEngine) -> DocumentError {
    DocumentError(.notFound, "there are no documents in \(engine.location)")
  }

  /// Loads the state of documents of this format from the engine's own transaction.
  private static func load(
    from plain: any ReadTransaction, _ format: StoredFormat, engine: any StorageEngine, _ options: Options
  ) throws -> Opened {
    let checksums = format.checksums
    let transaction =
      checksums.map { ChecksummedReadTransaction(plain, $0, verifies: options.verifiesChecksums) } ?? plain
    func keyspace(_ name: String) throws -> Keyspace {
      guard let keyspace = try transaction.keyspace(named: name) else {
        throw DocumentError(.damaged, "there is no keyspace \(name) in \(engine.location)")
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
    guard
      let publicUUID = try meta("publicUUID"), publicUUID.count == 16,
      let privateUUID = try meta("privateUUID"), privateUUID.count == 16
    else { throw DocumentError(.damaged, "the database's own records can't be read in \(engine.location)") }
    let sharedKeys = try loadSharedKeys(transaction, keyspaces.meta)
    let generation = try State(transaction, keyspaces.meta).indexGeneration
    let context = Context(
      engine: engine, keyspaces: keyspaces, checksums: checksums,
      verifiesChecksums: options.verifiesChecksums, sharedKeys: sharedKeys,
      treeDepth: try KnownTreeDepth(generation, options, transaction, keyspaces.meta))
    let indexes = try IndexCatalog.load(generation, transaction, keyspaces.meta)
    return Opened(context: context, publicUUID: publicUUID, privateUUID: privateUUID, indexes: indexes)
  }

  static func loadSharedKeys(_ transaction: any ReadTransaction, _ meta: Keyspace) throws -> SharedKeys {
    guard let bytes = try transaction.bytes(Array("sharedKeys".utf8), in: meta) else { return .empty }
    do { return try bytes.withUnsafeBytes { try SharedKeys(fleece: $0) } } catch {
      throw DocumentError(.damaged, "the table of shared keys can't be read: \(error)")
    }
  }

  // MARK: The current context

  var context: Context { current.withLock { $0 } }

  /// The current storage engine. A compaction may replace it.
  package var engine: any StorageEngine { context.engine }

  /// The current table of shared keys: the property names that are stored as numbers.
  package var sharedKeys: SharedKeys {
    if isInBatch, let context = writer.contextOfNow { return context.sharedKeys }
    return context.sharedKeys
  }

  /// Makes later operations use `engine`, which holds the same data (after a compaction into a new file).
  /// `publish` is called after the documents in `engine` have been opened and before the switch. After
  /// `publish` nothing can fail.
  package func replaceEngine(_ engine: any StorageEngine, publish: () throws -> Void = {}) throws {
    let opened = try engine.readRepeating { transaction in
      guard let format = try Self.storedFormat(transaction, in: engine.location) else {
        throw Self.missing(in: engine)
      }
      return try Self.load(from: transaction, format, engine: engine, options).context
    }
    try publish()
    current.withLock { $0 = opened }
  }

  /// Makes later operations use the state that this transaction of the engine reads. The format is known
  /// already.
  func replaceContext(
    from transaction: any ReadTransaction, _ format: StoredFormat, _ engine: any StorageEngine
  ) throws -> Context {
    let opened = try Self.load(from: transaction, format, engine: engine, options).context
    current.withLock { $0 = opened }
    return opened
  }

  /// Closes an engine that is open read-only and continues with a writable one, which `open` opens with
  /// `options`.
  ///
  /// Readers wait meanwhile. `close` throws while there are readers, and then nothing has changed. When
  /// `open` fails, or the engine that it opens can't be written, `back` reopens the previous engine.
  package func allowWriting(
    _ options: Options, close: (any StorageEngine) throws -> Void, open: () throws -> any StorageEngine,
    back: () throws -> any StorageEngine
  ) throws {
    try background.alone {
      try reopening.withLock { _ in
        try close(engine)
        do {
          let engine = try open()
          do {
            let opened = try Self.open(engine, options)
            try Self.check(opened.indexes, options)
            writer = try DocumentWriter(options: options, blobs: blobs, purgeWriter: purgeWriter)
            currentOptions.withLock { $0 = options }
            current.withLock { $0 = opened.context }
          } catch {
            try? engine.close()
            throw error
          }
        } catch {
          try replaceEngine(back())
          throw error
        }
      }
    }
  }

  /// Begins a snapshot of the engine and returns it with the context.
  func beginRead() throws -> (any ReadTransaction, Context) {
    let context = context
    do { return (try context.engine.beginRead(), context) } catch let error as StorageError
      where error.code == .closed
    {
      // The engine may be closed in order to be reopened.
      let now = reopening.withLock { _ in self.context }
      guard now.engine !== context.engine else { throw error }
      return (try now.engine.beginRead(), now)
    }
  }

  /// Keeps shared keys that a committed transaction added, or that a reader found.
  func publish(_ sharedKeys: SharedKeys) {
    current.withLock { context in
      guard sharedKeys.count > context.sharedKeys.count else { return }
      context = context.with(sharedKeys: sharedKeys)
    }
  }

  /// Makes later transactions prune revision trees to `depth`, which a commit has left or found.
  func publish(_ depth: KnownTreeDepth) {
    current.withLock { context in
      guard depth.generation >= context.treeDepth.generation else { return }
      context = context.with(treeDepth: depth)
    }
  }

  /// The path that log entries name.
  package var logPath: String { options.path ?? engine.location }

  // MARK: Counting

  /// The number of bodies that this process has removed since it opened the database. They belonged to purged
  /// documents and dropped revisions. Blobs to which only they referred may be garbage.
  package var removedBodyCount: UInt64 { removedBodies.load(ordering: .relaxed) }

  /// The sequence of the latest change.
  package var lastSequence: UInt64 {
    get throws {
      if isInBatch, let sequence = writer.lastSequence { return sequence }
      return try reading { transaction, context in
        try Self.lastSequence(transaction, context.keyspaces)
      }
    }
  }

  /// Returns the last sequence that a transaction sees.
  static func lastSequence(_ transaction: any ReadTransaction, _ keyspaces: Keyspaces) throws -> UInt64 {
    try State(transaction, keyspaces.meta).lastSequence(newestChange(transaction, keyspaces.changes))
  }

  /// Returns the sequence of the newest stored change, 0 if there is none.
  static func newestChange(_ transaction: any ReadTransaction, _ changes: Keyspace) throws -> UInt64 {
    var newest: UInt64 = 0
    // With its value, so that its checksum can be verified.
    try transaction.scan(changes, .all, order: .descending, fetch: .entries) { key, _ in
      guard let sequence = StoredChange.sequence(of: key), sequence <= maximumSequence else {
        throw DocumentError(.damaged, "the key of the newest change is invalid")
      }
      newest = sequence
      return false
    }
    return newest
  }

  /// The record `meta/state`. Most transactions don't change it and don't write it.
  struct State {
    static let key = Array("state".utf8)
    /// A lower bound of the last sequence. It is greater than the newest change if that document was purged,
    /// or if the database continues the sequences of another.
    var lowestLastSequence: UInt64 = 0
    var sharedKeyCount = 0
    /// Changes whenever an index is created or removed, or the depth of trees is set. 0 if that never was.
    var indexGeneration: UInt32 = 0

    init(_ transaction: any ReadTransaction, _ meta: Keyspace) throws {
      let key = State.key
      _ = try transaction.read(key.span.bytes, in: meta) { try read($0) }
    }

    /// Returns the last sequence: that of the newest stored change, or a greater one whose change is gone.
    func lastSequence(_ newestChange: UInt64) -> UInt64 { max(lowestLastSequence, newestChange) }

    private mutating func read(_ bytes: RawSpan) throws {
      guard bytes.byteCount == 10 || bytes.byteCount == 14 else {
        throw DocumentError(.damaged, "the record \"state\" can't be read")
      }
      lowestLastSequence = UInt64(bigEndian: bytes.unsafeLoadUnaligned(as: UInt64.self))
      sharedKeyCount = Int(UInt16(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 8, as: UInt16.self)))
      if bytes.byteCount == 14 {
        indexGeneration = UInt32(bigEndian: bytes.unsafeLoadUnaligned(fromByteOffset: 10, as: UInt32.self))
      }
      guard lowestLastSequence <= maximumSequence, sharedKeyCount <= 2048 else {
        throw DocumentError(.damaged, "the record \"state\" is invalid")
      }
    }

    func write(_ transaction: any WriteTransaction, _ meta: Keyspace) throws {
      try withUnsafeTemporaryAllocation(byteCount: 16, alignment: 8) { bytes in
        bytes.storeBytes(of: lowestLastSequence.bigEndian, as: UInt64.self)
        bytes.storeBytes(of: UInt16(sharedKeyCount).bigEndian, toByteOffset: 8, as: UInt16.self)
        // Four bytes at offset 10 aren't aligned.
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
