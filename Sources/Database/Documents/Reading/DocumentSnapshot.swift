import Fleece
import Storage

/// One snapshot of a database's documents. Using it after the closure that received it throws
/// `snapshotEnded`.
///
/// Use it on one thread at a time. If the task of an asynchronous read is cancelled, its methods throw
/// `CancellationError`. In a batch it is the batch's own transaction: it sees the writes of the
/// batch, also those made while it is used. During one of its scans, a write throws `writeInScan`.
public final class DocumentSnapshot {
  let store: DocumentStore
  private var transaction: (any ReadTransaction)?
  private let begun: DocumentStore.Context
  let isOfBatch: Bool
  /// The number of earlier commits of this process known to have changed bodies without a new sequence.
  /// `forEachChange` doesn't report those.
  package internal(set) var unsequencedCommits: UInt64 = 0
  /// The record `meta/state`, once it was read. Not kept in a batch, which may change it.
  private var knownState: DocumentStore.State?
  private var knownLastSequence: UInt64?
  /// Set if the task that waits for the reader can be cancelled.
  let cancellation: JobCancellation?

  init(
    _ store: DocumentStore, _ transaction: any ReadTransaction, _ context: DocumentStore.Context,
    isOfBatch: Bool, cancellation: JobCancellation? = nil
  ) {
    self.store = store
    self.transaction = transaction
    begun = context
    self.isOfBatch = isOfBatch
    self.cancellation = cancellation
  }

  func end() { transaction = nil }

  func open() throws -> (any ReadTransaction, DocumentStore.Context) {
    guard let transaction else {
      throw DocumentError(.snapshotEnded, "the snapshot was used after its closure returned")
    }
    try cancellation?.check()
    guard isOfBatch else { return (transaction, begun) }
    try store.writer.writePending()
    // The batch may have added shared keys since the snapshot began.
    return (transaction, store.writer.contextOfNow ?? begun)
  }

  /// The record `meta/state`.
  var state: DocumentStore.State {
    get throws {
      let (transaction, context) = try open()
      if let knownState { return knownState }
      if isOfBatch, let state = store.writer.state { return state }
      guard !isOfBatch else { return try DocumentStore.State(transaction, context.keyspaces.meta) }
      let state = try context.state(of: transaction)
      knownState = state
      return state
    }
  }

  /// The indexes of this snapshot.
  var indexCatalog: IndexCatalog {
    get throws {
      let (transaction, context) = try open()
      return try store.indexCatalog(transaction, context)
    }
  }

  /// The version of the committed data that it reads. Nil in a batch, and if the engine doesn't know.
  package var version: SnapshotVersion? { get throws { try open().0.snapshotVersion } }

  /// The transaction below, for readers of indexes. It must not be kept.
  package var storage: any ReadTransaction { get throws { try open().0 } }

  /// The shared keys for reading every body of the snapshot.
  package var sharedKeys: SharedKeys {
    get throws {
      let (transaction, context) = try open()
      return try store.sharedKeys(try state.sharedKeyCount, transaction, context)
    }
  }

  /// Returns the live document with this ID, or nil. With `includeDeleted`, it also finds a tombstone.
  public func document(_ id: String, includeDeleted: Bool = false) throws -> Document? {
    let (transaction, context) = try open()
    return try store.document(id, includeDeleted: includeDeleted, in: transaction, context)
  }

  /// The number of live documents. Constant time.
  public var documentCount: Int {
    get throws {
      let (transaction, context) = try open()
      return try transaction.count(of: context.keyspaces.docs)
    }
  }

  /// The number of tombstones. Constant time.
  public var tombstoneCount: Int {
    get throws {
      let (transaction, context) = try open()
      return try transaction.count(of: context.keyspaces.deleted)
    }
  }

  /// The sequence of the latest change, 0 if there was none.
  public var lastSequence: UInt64 {
    get throws {
      let (transaction, context) = try open()
      if let knownLastSequence { return knownLastSequence }
      if isOfBatch, let sequence = store.writer.lastSequence { return sequence }
      let sequence = try state.lastSequence(
        DocumentStore.newestChange(transaction, context.keyspaces.changes))
      if !isOfBatch { knownLastSequence = sequence }
      store.greatestSequence.max(sequence, ordering: .relaxed)
      return sequence
    }
  }

  /// The approximate last sequence, for estimates. It reads nothing. So it may lack commits of other
  /// processes, and it may include commits that are newer than the snapshot. 0 if nothing is known.
  package var estimatedLastSequence: UInt64 {
    isOfBatch ? store.writer.lastSequence ?? 0 : store.greatestSequence.load(ordering: .relaxed)
  }

  /// Calls `body` with each change after `sequence`, oldest first, until it returns false. Each document
  /// appears once, with its latest change.
  public func forEachChange(since sequence: UInt64, _ body: (Change) throws -> Bool) throws {
    let (transaction, context) = try open()
    try store.forEachChange(since: sequence, transaction, context, isOfBatch: isOfBatch) { change in
      try cancellation?.check()
      return try body(change)
    }
  }

  /// Resolves a property's name once. The key is valid for every document of this snapshot.
  public func key(_ name: String) throws -> Key { Key(name, in: try sharedKeys) }

  /// Calls `body` with each live document until it returns false, in the engine's own order. The view is valid
  /// until `body` returns.
  ///
  /// This is the fastest scan of all documents. `enumerate` has an order, ranges of IDs and more.
  public func forEachDocument(_ body: (DocumentView) throws -> Bool) throws {
    try forEachDocument(order: .stored, body)
  }

  /// The same in an order: the engine's own (`.stored`), or by ID. `range` is a range of IDs.
  package func forEachDocument(
    in range: KeyRange = .all, order: ScanOrder, _ body: (DocumentView) throws -> Bool
  ) throws {
    let (transaction, context) = try open()
    try scan(transaction, context, context.keyspaces.docs, range, order, body)
  }

  /// Calls `body` with the ID and the stored record of each live document, in place, until it returns false.
  /// It is for scans that read little of most documents (see
  /// `DocumentView.init(idBytes:record:sharedKeys:)`).
  package func forEachRecord(
    in range: KeyRange = .all, order: ScanOrder = .stored,
    _ body: (_ id: RawSpan, _ record: RawSpan) throws -> Bool
  ) throws {
    let (transaction, context) = try open()
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    try transaction.scan(context.keyspaces.docs, range, order: order, fetch: .entries, body)
  }

  /// Calls `body` with each tombstone, in ascending order of IDs, until it returns false.
  public func forEachTombstone(_ body: (DocumentView) throws -> Bool) throws {
    let (transaction, context) = try open()
    try scan(transaction, context, context.keyspaces.deleted, .all, .ascending, body)
  }

  @inline(__always)
  private func scan(
    _ transaction: any ReadTransaction, _ context: DocumentStore.Context, _ keyspace: Keyspace,
    _ range: KeyRange, _ order: ScanOrder, _ body: (DocumentView) throws -> Bool
  ) throws {
    let sharedKeys = try sharedKeys
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    let cancellation = cancellation
    let blobs = store.blobSource
    try transaction.scan(keyspace, range, order: order, fetch: .entries) { key, value in
      try cancellation?.check()
      return try body(DocumentView(idBytes: key, record: value, sharedKeys: sharedKeys, blobs: blobs))
    }
  }
}
