import Fleece
import Storage

/// One snapshot of a database's documents. After the closure it was handed to, its use throws `snapshotEnded`.
///
/// One thread at a time. In a batch it is the batch's own transaction: it sees what the batch has written, also
/// what is written while it is used, but not inside a scan, where a write throws `writeInScan`.
public final class DocumentSnapshot {
  let store: DocumentStore
  private var transaction: (any ReadTransaction)?
  private let begun: DocumentStore.Context
  let isOfBatch: Bool
  /// How many commits before this one are known to have changed bodies without a new sequence, which `forEachChange`
  /// doesn't tell.
  public internal(set) var unsequencedCommits: UInt64 = 0
  /// What `meta/state` says, once it was read: not in a batch, where it changes.
  private var knownState: DocumentStore.State?
  private var knownLastSequence: UInt64?

  init(
    _ store: DocumentStore, _ transaction: any ReadTransaction, _ context: DocumentStore.Context,
    isOfBatch: Bool
  ) {
    self.store = store
    self.transaction = transaction
    begun = context
    self.isOfBatch = isOfBatch
  }

  func end() { transaction = nil }

  func open() throws -> (any ReadTransaction, DocumentStore.Context) {
    guard let transaction else {
      throw DocumentError(.snapshotEnded, "a snapshot can't be used after the closure that it was handed to")
    }
    // A batch may have added shared keys since.
    return (transaction, isOfBatch ? store.writer.contextOfNow ?? begun : begun)
  }

  /// The database's own record.
  var state: DocumentStore.State {
    get throws {
      let (transaction, context) = try open()
      if let knownState { return knownState }
      if isOfBatch, let state = store.writer.state { return state }
      let state = try DocumentStore.State(transaction, context.keyspaces.meta)
      if !isOfBatch { knownState = state }
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

  /// The engine's own snapshot below, for readers of indexes. Not to be kept.
  public var storage: any ReadTransaction { get throws { try open().0 } }

  /// The names that every body of the snapshot can be read with.
  public var sharedKeys: SharedKeys {
    get throws {
      let (transaction, context) = try open()
      return try store.sharedKeys(try state.sharedKeyCount, transaction, context)
    }
  }

  /// The live document of that ID, or nil. With `includeDeleted`, a tombstone as well.
  public func document(_ id: String, includeDeleted: Bool = false) throws -> Document? {
    let (transaction, context) = try open()
    return try store.document(id, includeDeleted: includeDeleted, in: transaction, context)
  }

  /// How many live documents there are. Constant time.
  public var documentCount: Int {
    get throws {
      let (transaction, context) = try open()
      return try transaction.count(of: context.keyspaces.docs)
    }
  }

  /// The sequence of the latest change, 0 when there was none.
  public var lastSequence: UInt64 {
    get throws {
      let (transaction, context) = try open()
      if let knownLastSequence { return knownLastSequence }
      if isOfBatch, let sequence = store.writer.lastSequence { return sequence }
      let sequence = try max(
        state.lowestLastSequence, DocumentStore.newestChange(transaction, context.keyspaces.changes))
      if !isOfBatch { knownLastSequence = sequence }
      store.greatestSequence.max(sequence, ordering: .relaxed)
      return sequence
    }
  }

  /// About the last sequence, for estimates: nothing is read, so commits of other processes may be missing, and there may be
  /// some that are younger than the snapshot. 0 when nothing is known.
  public var estimatedLastSequence: UInt64 {
    isOfBatch ? store.writer.lastSequence ?? 0 : store.greatestSequence.load(ordering: .relaxed)
  }

  /// Calls `body` with each change after `sequence`, oldest first, until it returns false. Each document comes once, with
  /// its latest change.
  public func forEachChange(since sequence: UInt64, _ body: (Change) throws -> Bool) throws {
    let (transaction, context) = try open()
    try store.forEachChange(since: sequence, transaction, context, isOfBatch: isOfBatch, body)
  }

  /// A property's name resolved once. It is right for every document of this snapshot.
  public func key(_ name: String) throws -> Key { Key(name, in: try sharedKeys) }

  /// Calls `body` with each live document until it returns false. The view ends when `body` returns.
  ///
  /// In the order of the engine (`.stored`) this is the fastest way over all documents; `.ascending` and
  /// `.descending` go by ID. `range` is of IDs.
  public func forEachDocument(
    in range: KeyRange = .all, order: ScanOrder = .stored, _ body: (DocumentView) throws -> Bool
  ) throws {
    let (transaction, context) = try open()
    try scan(transaction, context, context.keyspaces.docs, range, order, body)
  }

  /// The same with each document's ID and stored record as they lie there, for who looks at little of most documents
  /// (`DocumentView.init(idBytes:record:sharedKeys:)`).
  public func forEachRecord(
    in range: KeyRange = .all, order: ScanOrder = .stored,
    _ body: (_ id: RawSpan, _ record: RawSpan) throws -> Bool
  ) throws {
    let (transaction, context) = try open()
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    try transaction.scan(context.keyspaces.docs, range, order: order, fetch: .entries, body)
  }

  /// The same for tombstones, by ID.
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
    try transaction.scan(keyspace, range, order: order, fetch: .entries) { key, value in
      try body(DocumentView(idBytes: key, record: value, sharedKeys: sharedKeys))
    }
  }
}
