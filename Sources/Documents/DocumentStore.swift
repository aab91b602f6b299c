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
//   expiry       time document ID → nothing        when documents expire (Expiration.swift)
//   expirations  document ID → time                the same by document
//
//   meta/format       version:u8 = 1, or 2 once there was an index
//   meta/publicUUID   16 bytes
//   meta/privateUUID  16 bytes
//   meta/state        last sequence:u64 big-endian  number of shared keys:u16 big-endian
//                     index generation:u32 big-endian, left out while it is 0
//   meta/index/NAME   IndexRecord
//   meta/sharedKeys   Fleece array of strings

/// Documents with their revisions over any engine: what `Database` is a face of.
///
/// Thread safe: any number of readers beside one writer.
public final class DocumentStore: Sendable {
  /// How documents are kept.
  public struct Options: Sendable {
    /// How many revisions of each branch are remembered (1 or more).
    public var maximumTreeDepth: Int
    /// Whether the bodies of replaced revisions stay until `compact()`.
    public var keepsReplacedBodies: Bool
    /// The kinds of indexes that are known. A database with another can only be read.
    public var indexKinds: [any IndexKind]

    /// A depth below 1 is taken for 1.
    public init(
      maximumTreeDepth: Int = 20, keepsReplacedBodies: Bool = true, indexKinds: [any IndexKind] = []
    ) {
      self.maximumTreeDepth = max(1, maximumTreeDepth)
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

    init(engine: any StorageEngine, keyspaces: Keyspaces, sharedKeys: SharedKeys) {
      self.engine = engine
      self.keyspaces = keyspaces
      self.sharedKeys = sharedKeys
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
  /// The thread whose batch is open (0: none).
  private let batchThread = Atomic<UInt>(0)
  /// Passed by writers, closed by who replaces the engine.
  private let gate = WriteGate()
      var committing = false
      var finished = FinishedTransaction()
      do {
        try context.engine.write { (transaction: any WriteTransaction) throws -> Void in
          if commitFailed.load(ordering: .acquiring) {
            commitFailed.store(false, ordering: .relaxed)
            writer.indexes = nil
          }
          try writer.begin(transaction, context, isObserved: feed.isActive)
          batchThread.store(thread, ordering: .relaxed)
          defer {
            batchThread.store(0, ordering: .relaxed)
            writer.end(committing: committing)
          }
          result = try body(writer)
          added = try writer.finish()
          installed = writer.installedBlobs
          // In here transactions are in order.
          finished = FinishedTransaction(writer, feed)
          committing = true
        }
      } catch {
        if committing { commitFailed.store(true, ordering: .releasing) }
        finished.hasFailed(feed)
        throw error
      }
      if let added { publish(added) }
      if !installed.isEmpty { blobs?.commit(installed) }
      finished.isCommitted(feed, upkeep: { upkeep })
      // The body ran and did not throw, so it gave a result.
      return result.unsafelyUnwrapped
    }
  }

  /// Runs `body` in one transaction, all or nothing. What is read inside on the same thread sees what was
  /// written. Nested calls join it; one that throws makes the whole batch fail, also where its error is
  /// caught, for what it did can't be undone alone.
  @discardableResult
  public func inBatch<Result>(_ body: () throws -> Result) throws -> Result {
    let isNested = isInBatch
    return try writing { writer in
      do { return try body() } catch {
        if isNested { writer.fail(error) }
        throw error
      }
    }
  }

  // MARK: Counting

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
      let bytes = try State.key.withUnsafeBytes { try transaction.get($0, in: meta) }
      guard let bytes else { return }
      guard bytes.count == 10 || bytes.count == 14 else {
        throw DocumentError(.damaged, "the record of the last sequence can't be read")
      }
      lastSequence = UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))
      sharedKeyCount = Int(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt16.self)))
      if bytes.count == 14 {
        indexGeneration = UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: 10, as: UInt32.self))
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
        try State.key.withUnsafeBytes { try transaction.put($0, record, in: meta) }
      }
    }
  }
}
