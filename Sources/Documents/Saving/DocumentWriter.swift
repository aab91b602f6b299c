import Blobs
import Fleece
import Storage

/// The one writer of a store, inside a transaction. Its buffers are used from document to document: saving
/// allocates nothing in the steady state. One thread at a time.
final class DocumentWriter {
  let options: DocumentStore.Options
  /// How many revisions of each branch are remembered, as of the transaction's beginning.
  private(set) var maximumTreeDepth = DocumentStore.defaultTreeDepth
  let blobs: BlobStore?
  let encoder = BodyEncoder()
  let digest: RevisionDigest
  let tree = RevisionTree()
  // Most of what follows is touched for every document. It is unchecked, for checks of exclusive access took a fifth of
  // a delete. None is passed `inout` to code that touches the writer.
  /// What the stored document says of older revisions, which `tree` lacks unless it `isWhole`.
  @exclusivity(unchecked) var history: StoredHistory?
  @exclusivity(unchecked) var isWhole = true
  /// A copy of the stored document: the engine's own bytes end at the next write.
  @exclusivity(unchecked) var stored = ByteBuffer()
  @exclusivity(unchecked) var record = ByteBuffer()
  /// Where the body begins in `record`.
  @exclusivity(unchecked) var bodyStart = 0
  @exclusivity(unchecked) var treeBytes = ByteBuffer(capacity: 1024)
  @exclusivity(unchecked) var other = ByteBuffer()
  @exclusivity(unchecked) var text = ByteBuffer(capacity: 512)

  @exclusivity(unchecked) private(set) var transaction: (any WriteTransaction)?
  @exclusivity(unchecked) private(set) var context: DocumentStore.Context?
  @exclusivity(unchecked) private(set) var keys: SharedKeysBuilder
  /// The indexes to keep; nil while there never was one.
  @exclusivity(unchecked) var indexes: OpenIndexes?
  /// Whether the open transaction has made or removed an index.
  var hasChangedIndexes = false
  /// Whether the open transaction has given a document another body under an old sequence.
  var hasUnsequencedChanges = false
  /// Whether the open transaction has changed when a document expires.
  @exclusivity(unchecked) var hasChangedExpirations = false
  /// How many bodies the open transaction has removed: of purged documents and of dropped revisions.
  var removedBodies = 0
  /// Counts transactions: no two have the same number.
  private(set) var indexBatch: UInt64 = 0
  /// The database's own record as it is stored, with the index generation of the open transaction.
  @exclusivity(unchecked) var state: DocumentStore.State?
  /// The sequence of the latest change, those of the open transaction included; nil outside one.
  @exclusivity(unchecked) var lastSequence: UInt64?
  private var lastSequenceAtBegin: UInt64 = 0
  /// What the last sequence is by the stored changes alone; 0 when that isn't known.
  @exclusivity(unchecked) private var newestChange: UInt64 = 0
  @exclusivity(unchecked) var mayHaveTombstones = true
  @exclusivity(unchecked) private var failure: (any Error)?
  var bodyBlobs = BodyBlobs()
  /// New blobs that this transaction put in place.
  var installedBlobs: [BlobDigest] = []
  @exclusivity(unchecked) private var scans = 0
  /// What observers are to be told.
  var notes = ChangeNotes()
  /// Whether the revision that is being added came from elsewhere.
  @exclusivity(unchecked) var isFromSync = false
  /// The earliest expiration that the transaction has set.
  @exclusivity(unchecked) var earliestExpiration: Int64?
  /// This run of the transaction, once a caller's document was saved in it.
  private(set) var run: TransactionRun?
  /// What `contextOfNow` answered last.
  private var lastContext: DocumentStore.Context?

  init(options: DocumentStore.Options, blobs: BlobStore? = nil) throws {
    self.options = options
    self.blobs = blobs
    digest = try RevisionDigest()
    keys = SharedKeysBuilder(.empty)
  }

  // MARK: The transaction's frame

  func begin(
    _ transaction: any WriteTransaction, _ context: DocumentStore.Context, isObserved: Bool = false
  ) throws {
    let state = try DocumentStore.State(transaction, context.keyspaces.meta)
    // Another process, or a write that shares this commit, may have added keys.
    let base =
      state.sharedKeyCount > context.sharedKeys.count
      ? try DocumentStore.loadSharedKeys(transaction, context.keyspaces.meta) : context.sharedKeys
    guard base.count >= state.sharedKeyCount else {
      throw DocumentError(.damaged, "the table of shared keys is shorter than the database says")
    }
    try openIndexes(state.indexGeneration, transaction, context)
    keys = SharedKeysBuilder(base)
    mayHaveTombstones = try transaction.hasEntries(context.keyspaces.deleted)
    self.state = state
    newestChange = try DocumentStore.newestChange(transaction, context.keyspaces.changes)
    let last = max(state.lowestLastSequence, newestChange)
    lastSequence = last
    lastSequenceAtBegin = last
    indexBatch &+= 1
    hasUnsequencedChanges = false
    hasChangedExpirations = false
    removedBodies = 0
    self.transaction = transaction
    self.context = base === context.sharedKeys ? context : context.with(sharedKeys: base)
    maximumTreeDepth = context.maximumTreeDepth
    failure = nil
    run = nil
    scans = 0
    lastContext = nil
    notes.begin(isCollecting: isObserved)
    isFromSync = false
    earliestExpiration = nil
    if !installedBlobs.isEmpty { installedBlobs = [] }
  }

  /// The last sequence before the transaction, and of it.
  var span: (begin: UInt64, end: UInt64) { (lastSequenceAtBegin, lastSequence ?? lastSequenceAtBegin) }

  /// What reading inside the transaction needs: the shared keys that it added are known to nobody else yet.
  var contextOfNow: DocumentStore.Context? {
    guard let context, keys.hasAdditions else { return context }
    if let lastContext, lastContext.sharedKeys.count == keys.count { return lastContext }
    let now = context.with(sharedKeys: keys.snapshot())
    lastContext = now
    return now
  }

  /// This run of the transaction, for callers' documents.
  var openRun: TransactionRun {
    if let run { return run }
    let new = TransactionRun()
    run = new
    return new
  }

  /// The engine's word, inside this transaction, that it met another one: then it is run again.
  var metConflict: StorageError? {
    (failure as? StorageError).flatMap { $0.code == .conflict ? $0 : nil }
  }

  /// While one scans the batch, nothing can be written: the engine's bytes end at the next write.
  func beginScan() { scans += 1 }
  func endScan() { scans -= 1 }

  /// An operation inside a batch. When it is refused, the shared keys of its body go as well.
  func joined<Result>(_ body: (DocumentWriter) throws -> Result) throws -> Result {
    let count = keys.count
    let installed = installedBlobs.count
    do { return try body(self) } catch {
      installedBlobs.removeLast(installedBlobs.count - installed)
      // In a batch that has failed nothing matters any more.
      if failure == nil, keys.count > count {
        keys.rollBack(to: count)
        lastContext = nil
      }
      throw error
    }
  }

  /// Writes what the transaction owes; returns the shared keys when some were added.
  func finish() throws -> SharedKeys? {
    if let metConflict { throw metConflict }
    if let failure {
      throw DocumentError(.batchFailed, "the batch can't be committed, for a part of it failed: \(failure)")
    }
    // Before the documents that name them.
    if !installedBlobs.isEmpty { try blobs?.sync() }
    guard let transaction, let context, var state, let lastSequence else { return nil }
    try finishIndexes(transaction)
    // Most transactions leave the record as it is: a page less to write for each.
    let isTold = lastSequence == newestChange || lastSequence == state.lowestLastSequence
    guard !isTold || keys.hasAdditions || hasChangedIndexes else { return nil }
    state.lowestLastSequence = lastSequence
    state.sharedKeyCount = keys.count
    try state.write(transaction, context.keyspaces.meta)
    guard keys.hasAdditions else { return nil }
    let sharedKeys = keys.snapshot()
    try transaction.put(Array("sharedKeys".utf8), sharedKeys.encoded(), in: context.keyspaces.meta)
    return sharedKeys
  }

  /// `committing`: its body ended well.
  func end(committing: Bool) {
    if let touched = indexes?.isTouched, touched || hasChangedIndexes {
      if committing, !hasChangedIndexes { indexes?.isTouched = false } else { indexes = nil }
    }
    hasChangedIndexes = false
    transaction = nil
    context = nil
    state = nil
    lastSequence = nil
    lastContext = nil
    run = nil
  }

  /// Makes the transaction's end fail: something half done can't be undone alone.
  func fail(_ error: any Error) {
    if failure == nil { failure = error }
  }

  /// Runs what changes the store; an error in the middle of it fails the whole transaction.
  func mutating<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch {
      fail(error)
      throw error
    }
  }

  func open() throws -> (any WriteTransaction, DocumentStore.Keyspaces) {
    if let failure {
      throw DocumentError(.batchFailed, "the batch has failed already: \(failure)")
    }
    guard let transaction, let context else {
      throw DocumentError(.batchFailed, "there is no open transaction")
    }
    guard scans == 0 else {
      throw DocumentError(
        .writeInScan, "nothing can be written inside a scan of the same batch: collect first, then write")
    }
    return (transaction, context.keyspaces)
  }

  func nextSequence() throws -> UInt64 {
    let last = lastSequence ?? 0
    guard last < maximumSequence else {
      throw DocumentError(.damaged, "the last sequence is \(last): there are no more")
    }
    lastSequence = last + 1
    return last + 1
  }

  /// Stores a change, from `other`, under a sequence above all that are stored.
  func appendChange(
    _ sequence: UInt64, _ transaction: any WriteTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws {
    try withSequenceKey(sequence) { try transaction.append($0, other.bytes, in: keyspaces.changes) }
    newestChange = sequence
  }

  func deleteChange(
    _ sequence: UInt64, _ transaction: any WriteTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws {
    try deleteSequence(sequence, in: keyspaces.changes, transaction)
    if sequence == newestChange { newestChange = 0 }
  }

  // MARK: Encoding bodies

  /// Encodes a body. Names that begin with an underscore are the database's own: a user can't set them at the
  /// top, what comes from another database may have them. A body whose revision has its ID already needs no text
  /// to make one of: `hasRevisionID`.
  func encode(
    _ body: DocumentBody, of id: UnsafeRawBufferPointer, isForeign: Bool = false, hasRevisionID: Bool = false
  ) throws {
    switch body {
    case .json(let bytes):
      try bytes.withUnsafeBytes {
        try encode(json: $0, of: id, isForeign: isForeign, hasRevisionID: hasRevisionID)
      }
    case .value(let value):
      do { try encoder.encode(value, keys: keys, withCanonicalJSON: !hasRevisionID) } catch {
        throw refused(error, id)
      }
      try checkBody(id, isForeign)
    }
  }

  func encode(
    json: UnsafeRawBufferPointer, of id: UnsafeRawBufferPointer, isForeign: Bool = false,
    hasRevisionID: Bool = false
  ) throws {
    do { try encoder.encode(json: json, keys: keys, withCanonicalJSON: !hasRevisionID) } catch {
      throw refused(error, id)
    }
    try checkBody(id, isForeign)
  }

  private func refused(_ error: FleeceError, _ id: UnsafeRawBufferPointer) -> DocumentError {
    DocumentError(.invalidBody, error.description, documentID: idText(id))
  }

  private func checkBody(_ id: UnsafeRawBufferPointer, _ isForeign: Bool) throws {
    guard encoder.isObject else {
      throw DocumentError(.invalidBody, "a document's body has to be a JSON object", documentID: idText(id))
    }
    if !isForeign, let name = encoder.underscoredName, name != Attachment.property {
      throw reserved(name, id)
    }
    noteBlobs(isForeign: isForeign)
  }

  func reserved(_ name: String, _ id: UnsafeRawBufferPointer) -> DocumentError {
    DocumentError(
      .reservedProperty,
      "the property \"\(name)\" is reserved: names at the top can't begin with an underscore",
      documentID: idText(id))
  }

  func idText(_ id: UnsafeRawBufferPointer) -> String { String(decoding: id, as: UTF8.self) }
}
