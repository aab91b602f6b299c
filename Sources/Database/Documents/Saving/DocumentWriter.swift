import Blobs
import Bytes
import Fleece
import Storage

/// The single writer of a store, inside a transaction. It reuses its buffers from document to document, so
/// saving allocates no memory in the steady state. Used on one thread at a time.
final class DocumentWriter {
  let options: DocumentStore.Options
  /// The number of revisions that are kept of each branch, as of the beginning of the transaction.
  private(set) var maximumTreeDepth = DocumentStore.defaultTreeDepth
  /// The depth of trees that the transaction has read, because it may have changed.
  private(set) var foundDepth: KnownTreeDepth?
  let blobs: BlobStore?
  /// Private, so that every other step takes the body that it is about as a parameter.
  let encoder = BodyEncoder()
  let digest: RevisionDigest
  let tree = RevisionTree()
  // Most of the following properties are used for every document. They are unchecked because checks of
  // exclusive access took a fifth of the time of a delete. None is passed `inout` to code that uses the
  // writer.
  /// The stored document's older revisions. `tree` lacks them unless `isWhole` is true.
  @exclusivity(unchecked) var history: StoredHistory?
  @exclusivity(unchecked) var isWhole = true
  /// The document with many leaves that the open transaction has changed last.
  @exclusivity(unchecked) var wide: WideDocument?
  /// A copy of the stored document. The engine's own bytes are valid only until the next write.
  @exclusivity(unchecked) var stored = ByteBuffer()
  @exclusivity(unchecked) var record = ByteBuffer()
  /// The offset of the body in `record`.
  @exclusivity(unchecked) var bodyStart = 0
  @exclusivity(unchecked) var treeBytes = ByteBuffer(capacity: 1024)
  @exclusivity(unchecked) var other = ByteBuffer()
  @exclusivity(unchecked) var text = ByteBuffer(capacity: 512)

  /// The open transaction, nil outside of one. Steps of a write use `transaction`.
  @exclusivity(unchecked) private(set) var openTransaction: (any WriteTransaction)?
  @exclusivity(unchecked) private(set) var context: DocumentStore.Context?
  @exclusivity(unchecked) private(set) var keys: SharedKeysBuilder
  /// The indexes to maintain, nil if there never was one.
  @exclusivity(unchecked) var indexes: OpenIndexes?
  /// Whether the open transaction has created or removed an index.
  var hasChangedIndexes = false
  /// Whether the open transaction has stored a document below the last sequence.
  var hasUnsequencedChanges = false
  /// Whether the open transaction has changed an expiration time.
  @exclusivity(unchecked) var hasChangedExpirations = false
  /// The number of bodies that the open transaction has removed: those of purged documents and of dropped
  /// revisions.
  var removedBodies = 0
  /// Counts transactions. Each has a unique number.
  private(set) var indexBatch: UInt64 = 0
  /// The record `meta/state` as stored, with the index generation of the open transaction.
  @exclusivity(unchecked) var state: DocumentStore.State?
  /// The sequence of the latest change, including the open transaction. Nil outside of a transaction.
  @exclusivity(unchecked) var lastSequence: UInt64?
  private var lastSequenceAtBegin: UInt64 = 0
  /// The last sequence according to the stored changes alone, 0 if unknown.
  @exclusivity(unchecked) private var newestChange: UInt64 = 0
  @exclusivity(unchecked) var mayHaveTombstones = true
  /// What the last transaction has left. It holds in the next one of the same lineage.
  @exclusivity(unchecked) private var left: Left?
  @exclusivity(unchecked) private var failure: (any Error)?
  /// The thread of the open transaction.
  let thread = ThreadChecker("the writer of documents")
  /// New blobs that this transaction has put in place.
  var installedBlobs: [BlobDigest] = []
  /// The claims on new blobs that this transaction has made. They end when it is undone. Its commit ends them
  /// too, since each of these blobs was put in place.
  var claimedBlobs: [BlobDigest] = []
  @exclusivity(unchecked) private var scans = 0
  /// The validation functions of this transaction.
  @exclusivity(unchecked) var validations: [NamedValidation] = []
  /// Whether a validation function runs. It must not write: the write around it uses the buffers.
  var isValidating = false
  /// The notes for observers.
  var notes = ChangeNotes()
  /// The purges that the open transaction has recorded for other processes; nil before the first one.
  var recordedPurges: RecordedPurges?
  /// Marks the recorded purges of this open database.
  let purgeWriter: UInt64
  /// The keyspace of the marks of sync, once the open transaction has used it.
  @exclusivity(unchecked) var marks: Keyspace?
  /// The highest number of a remote database, once the open transaction has read it.
  var lastRemote: UInt32?
  @exclusivity(unchecked) var markKey = ByteBuffer(capacity: 512)
  /// Whether the revision that is being added came from another database.
  @exclusivity(unchecked) var isFromSync = false
  /// The earliest expiration time that the transaction has set.
  @exclusivity(unchecked) var earliestExpiration: Int64?
  /// This run of the transaction, once a caller's document was saved in it.
  private(set) var run: TransactionRun?
  /// The last result of `contextOfNow`.
  private var lastContext: DocumentStore.Context?

  init(options: DocumentStore.Options, blobs: BlobStore? = nil, purgeWriter: UInt64) throws {
    self.options = options
    self.purgeWriter = purgeWriter
    self.blobs = blobs
    digest = try RevisionDigest()
    keys = SharedKeysBuilder(.empty)
  }

  // MARK: Beginning and ending a transaction

  func begin(
    _ transaction: any WriteTransaction, _ context: DocumentStore.Context, isObserved: Bool = false
  ) throws {
    let left = try takeLeft(by: transaction)
    let state = try left?.state ?? DocumentStore.State(transaction, context.keyspaces.meta)
    // Another process, or a write that shares this commit, may have added keys.
    let base =
      state.sharedKeyCount > context.sharedKeys.count
      ? try DocumentStore.loadSharedKeys(transaction, context.keyspaces.meta) : context.sharedKeys
    guard base.count >= state.sharedKeyCount else {
      throw DocumentError(
        .damaged, "the table of shared keys has fewer entries than the database's record says")
    }
    try resumeIndexes(state.indexGeneration, transaction, context)
    keys = SharedKeysBuilder(base)
    mayHaveTombstones = try left?.mayHaveTombstones ?? transaction.hasEntries(context.keyspaces.deleted)
    self.state = state
    newestChange =
      try left?.newestChange ?? DocumentStore.newestChange(transaction, context.keyspaces.changes)
    let last = state.lastSequence(newestChange)
    lastSequence = last
    lastSequenceAtBegin = last
    indexBatch &+= 1
    hasUnsequencedChanges = false
    hasChangedExpirations = false
    removedBodies = 0
    openTransaction = transaction
    wide = nil
    self.context = base === context.sharedKeys ? context : context.with(sharedKeys: base)
    foundDepth = nil
    if state.indexGeneration != context.treeDepth.generation {
      foundDepth = try KnownTreeDepth(state.indexGeneration, options, transaction, context.keyspaces.meta)
    }
    maximumTreeDepth = (foundDepth ?? context.treeDepth).depth
    failure = nil
    run = nil
    scans = 0
    lastContext = nil
    notes.begin(isCollecting: isObserved)
    recordedPurges = nil
    marks = nil
    lastRemote = nil
    isFromSync = false
    earliestExpiration = nil
    if !installedBlobs.isEmpty { installedBlobs = [] }
    if !claimedBlobs.isEmpty { claimedBlobs = [] }
  }

  /// What is read at the beginning of a transaction, and only this writer changes.
  private struct Left {
    /// Of the transaction that has left it.
    let lineage, turn: UInt64
    let state: DocumentStore.State
    let newestChange: UInt64
    let mayHaveTombstones: Bool
  }

  /// Returns what the last transaction has left, if `transaction` goes on where that one ended.
  private func takeLeft(by transaction: any WriteTransaction) throws -> Left? {
    guard let left else { return nil }
    self.left = nil
    return try left.turn &+ 1 == transaction.turn && left.lineage == transaction.lineage ? left : nil
  }

  /// Keeps what the open transaction leaves.
  private func leave(_ state: DocumentStore.State, to transaction: any WriteTransaction) throws {
    // The newest change isn't known when it was removed, or when one was stored below the last sequence.
    guard newestChange > 0, !hasUnsequencedChanges, !hasChangedIndexes, let turn = transaction.turn,
      let lineage = try transaction.lineage
    else { return }
    left = Left(
      lineage: lineage, turn: turn, state: state, newestChange: newestChange,
      mayHaveTombstones: mayHaveTombstones)
  }

  /// The last sequence before the transaction, and the last sequence including it.
  var span: (begin: UInt64, end: UInt64) { (lastSequenceAtBegin, lastSequence ?? lastSequenceAtBegin) }

  /// The context for reads inside the transaction. It includes shared keys that the transaction added, which
  /// no other context has yet.
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

  /// The engine's `conflict` error in this transaction, if there was one. Then the transaction runs again.
  var metConflict: StorageError? {
    (failure as? StorageError).flatMap { $0.code == .conflict ? $0 : nil }
  }

  /// Nothing can be written during a scan of the batch: the engine's bytes are valid only until the next
  /// write.
  func beginScan() { scans += 1 }
  func endScan() { scans -= 1 }

  /// Runs an operation inside a batch. If it fails, the shared keys of its body and its installed blobs are
  /// forgotten.
  func joined<Result>(_ body: (DocumentWriter) throws -> Result) throws -> Result {
    guard !isValidating else {
      throw DocumentError(.writeInScan, "a validation function can't write to the database")
    }
    let count = keys.count
    let installed = installedBlobs.count
    let claimed = claimedBlobs.count
    do { return try body(self) } catch {
      installedBlobs.removeLast(installedBlobs.count - installed)
      for digest in claimedBlobs[claimed...] { blobs?.discard(digest) }
      claimedBlobs.removeLast(claimedBlobs.count - claimed)
      // A batch that has failed needs no rollback.
      if failure == nil, keys.count > count {
        keys.rollBack(to: count)
        lastContext = nil
      }
      throw error
    }
  }

  /// Writes the pending state of the transaction. Returns the shared keys if some were added.
  func finish() throws -> SharedKeys? {
    if let metConflict { throw metConflict }
    if let failure {
      throw DocumentError(
        .batchFailed, "the batch can't be committed, because a part of it failed: \(failure)")
    }
    // Blobs must be durable before the documents that refer to them.
    if !installedBlobs.isEmpty { try blobs?.sync() }
    guard let openTransaction, let context, var state, let lastSequence else { return nil }
    try writePending()
    try finishIndexes()
    // Most transactions leave the record unchanged, which saves writing one page for each.
    let isTold = lastSequence == newestChange || lastSequence == state.lowestLastSequence
    if !isTold || keys.hasAdditions || hasChangedIndexes {
      state.lowestLastSequence = lastSequence
      state.sharedKeyCount = keys.count
      try state.write(openTransaction, context.keyspaces.meta)
    }
    try leave(state, to: openTransaction)
    guard keys.hasAdditions else { return nil }
    let sharedKeys = keys.snapshot()
    try openTransaction.put(Array("sharedKeys".utf8), sharedKeys.encoded(), in: context.keyspaces.meta)
    return sharedKeys
  }

  /// Ends the transaction. `committing`: its body completed without an error.
  func end(committing: Bool) {
    if !committing { left = nil }
    if let touched = indexes?.isTouched, touched || hasChangedIndexes {
      if committing, !hasChangedIndexes { indexes?.isTouched = false } else { indexes = nil }
    }
    hasChangedIndexes = false
    wide = nil
    openTransaction = nil
    context = nil
    state = nil
    lastSequence = nil
    lastContext = nil
    run = nil
  }

  /// Makes the transaction fail at its end: a partial change can't be undone alone.
  func fail(_ error: any Error) {
    if failure == nil { failure = error }
  }

  /// Whether the transaction can't be committed any more.
  var hasFailed: Bool { failure != nil }

  /// Runs a change of the store. An error in it fails the whole transaction.
  func mutating<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch {
      fail(error)
      throw error
    }
  }

  /// The transaction that is open. It converts the entries of the documents to their stored form.
  @inline(__always)
  var transaction: any WriteTransaction {
    get throws {
      guard let openTransaction else { throw Self.noTransaction }
      return openTransaction
    }
  }

  @inline(__always)
  var keyspaces: DocumentStore.Keyspaces {
    get throws {
      guard let context else { throw Self.noTransaction }
      return context.keyspaces
    }
  }

  private static var noTransaction: DocumentError {
    DocumentError(.batchFailed, "there is no open transaction")
  }

  /// Every write begins with this check. Throws unless there is a transaction that can be written to now.
  func checkWritable() throws {
    if let failure {
      throw DocumentError(.batchFailed, "the batch has already failed: \(failure)")
    }
    guard openTransaction != nil else { throw Self.noTransaction }
    guard scans == 0 else {
      throw DocumentError(
        .writeInScan,
        "a write inside a scan of the same batch isn't possible; collect the results first, then write")
    }
  }

  func nextSequence() throws -> UInt64 {
    let last = lastSequence ?? 0
    guard last < maximumSequence else {
      throw DocumentError(.damaged, "the last sequence is \(last), and no higher one can be stored")
    }
    lastSequence = last + 1
    return last + 1
  }

  /// Stores a change, from `other`, under a sequence above all stored ones.
  func appendChange(_ sequence: UInt64) throws {
    try withSequenceKey(sequence) { try transaction.append($0, other.bytes, in: keyspaces.changes) }
    newestChange = sequence
  }

  func deleteChange(_ sequence: UInt64) throws {
    try deleteSequence(sequence, in: keyspaces.changes)
    if sequence == newestChange { newestChange = 0 }
  }

  func idText(_ id: UnsafeRawBufferPointer) -> String { String(decoding: id, as: UTF8.self) }
}
