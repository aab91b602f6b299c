import Fleece
import Storage

/// What a local write made.
public struct SavedRevision: Sendable {
  public let sequence: UInt64
  public let generation: UInt64
  let digest: InlineArray<20, UInt8>

  public var revisionID: RevisionID {
    let suffix = digest.span.withUnsafeBytes { StoredSuffix(bytes: $0, isText: false).text }
    return RevisionID(generation: generation, suffix: suffix)
  }
}

/// What a local write demands of the document that is stored.
enum Precondition {
  /// None: the write becomes a child of the revision it is based on while that is a leaf, else of what is
  /// current. Based on none, it is taken for a new document, which saves looking for an old one first.
  case lastWriteWins(basedOn: RevisionID?)
  /// The revision it is based on is still a leaf; none: there is no live document.
  case based(on: RevisionID?)
}

/// The one writer of a store, inside a transaction. Its buffers are used from document to document: saving
/// allocates nothing in the steady state. One thread at a time.
final class DocumentWriter {
  let options: DocumentStore.Options
  let encoder = BodyEncoder()
  private let digest: RevisionDigest
  private let tree = RevisionTree()
  /// A copy of the stored document: the engine's own bytes end at the next write.
  private var stored = ByteBuffer()
  private var record = ByteBuffer()
  private var treeBytes = ByteBuffer(capacity: 1024)
  private var other = ByteBuffer()
  private var text = ByteBuffer(capacity: 512)

  private(set) var transaction: (any WriteTransaction)?
  private(set) var context: DocumentStore.Context?
  private var keys: SharedKeysBuilder
  private var state: DocumentStore.State?
  private var stateAtBegin: UInt64 = 0
  private var mayHaveTombstones = true
  private var failure: (any Error)?
  private var scans = 0
  /// What `contextOfNow` answered last.
  private var lastContext: DocumentStore.Context?

  init(options: DocumentStore.Options) throws {
    self.options = options
    digest = try RevisionDigest()
    keys = SharedKeysBuilder(.empty)
  }

  // MARK: The transaction's frame

  func begin(_ transaction: any WriteTransaction, _ context: DocumentStore.Context) throws {
    let state = try DocumentStore.State(transaction, context.keyspaces.meta)
    // Another process, or a write that shares this commit, may have added keys.
    let base =
      state.sharedKeyCount > context.sharedKeys.count
      ? try DocumentStore.loadSharedKeys(transaction, context.keyspaces.meta) : context.sharedKeys
    guard base.count >= state.sharedKeyCount else {
      throw DocumentError(.damaged, "the table of shared keys is shorter than the database says")
    }
    keys = SharedKeysBuilder(base)
    mayHaveTombstones = try transaction.count(of: context.keyspaces.deleted) > 0
    self.state = state
    stateAtBegin = state.lastSequence
    self.transaction = transaction
    self.context = context
    failure = nil
    scans = 0
    lastContext = nil
  }

  /// The sequence of the latest change, those of this transaction included.
  var lastSequence: UInt64? { state?.lastSequence }

  /// What reading inside the transaction needs: the shared keys that it added are known to nobody else yet.
  var contextOfNow: DocumentStore.Context? {
    guard let context, keys.hasAdditions else { return context }
    if let lastContext, lastContext.sharedKeys.count == keys.count { return lastContext }
    let now = DocumentStore.Context(
      engine: context.engine, keyspaces: context.keyspaces, sharedKeys: keys.snapshot())
    lastContext = now
    return now
  }

  /// While one scans the batch, nothing can be written: the engine's bytes end at the next write.
  func beginScan() { scans += 1 }
  func endScan() { scans -= 1 }

  /// An operation inside a batch. When it is refused, the shared keys of its body go as well.
  func joined<Result>(_ body: (DocumentWriter) throws -> Result) throws -> Result {
    let count = keys.count
    do { return try body(self) } catch {
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
    if let failure {
      throw DocumentError(.batchFailed, "the batch can't be committed, for a part of it failed: \(failure)")
    }
    guard let transaction, let context, var state else { return nil }
    guard state.lastSequence != stateAtBegin || keys.hasAdditions else { return nil }
    state.sharedKeyCount = keys.count
    try state.write(transaction, context.keyspaces.meta)
    guard keys.hasAdditions else { return nil }
    let sharedKeys = keys.snapshot()
    try transaction.put(Array("sharedKeys".utf8), sharedKeys.encoded(), in: context.keyspaces.meta)
    return sharedKeys
  }

  func end() {
    transaction = nil
    context = nil
    state = nil
    lastContext = nil
  }

  /// Makes the transaction's end fail: something half done can't be undone alone.
  func fail(_ error: any Error) {
    if failure == nil { failure = error }
  }

  /// Runs what changes the store; an error in the middle of it fails the whole transaction.
  private func mutating<Result>(_ body: () throws -> Result) throws -> Result {
    do { return try body() } catch {
      fail(error)
      throw error
    }
  }

  private func open() throws -> (any WriteTransaction, DocumentStore.Keyspaces) {
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

  private func nextSequence() throws -> UInt64 {
    let last = state?.lastSequence ?? 0
    guard last < maximumSequence else {
      throw DocumentError(.damaged, "the last sequence is \(last): there are no more")
    }
    state?.lastSequence = last + 1
    return last + 1
  }

  // MARK: Encoding bodies

  /// Encodes a body. Names that begin with an underscore are the database's own: a user can't set them at the
  /// top, what comes from another database may have them.
  func encode(_ body: DocumentBody, of id: UnsafeRawBufferPointer, isForeign: Bool = false) throws {
    switch body {
    case .json(let bytes):
      try bytes.withUnsafeBytes { try encode(json: $0, of: id, isForeign: isForeign) }
    case .value(let value):
      do { try encoder.encode(value, keys: keys) } catch { throw refused(error, id) }
      try checkBody(id, isForeign)
    }
  }

  func encode(json: UnsafeRawBufferPointer, of id: UnsafeRawBufferPointer, isForeign: Bool = false) throws {
    do { try encoder.encode(json: json, keys: keys) } catch { throw refused(error, id) }
    try checkBody(id, isForeign)
  }

  private func refused(_ error: FleeceError, _ id: UnsafeRawBufferPointer) -> DocumentError {
    DocumentError(.invalidBody, error.description, documentID: idText(id))
  }

  private func checkBody(_ id: UnsafeRawBufferPointer, _ isForeign: Bool) throws {
    guard encoder.isObject else {
      throw DocumentError(.invalidBody, "a document's body has to be a JSON object", documentID: idText(id))
    }
    if !isForeign, let name = encoder.underscoredName {
      throw DocumentError(
        .reservedProperty,
        "the property \"\(name)\" is reserved: names at the top can't begin with an underscore",
        documentID: idText(id))
    }
  }

  // MARK: Local writes

  /// Adds a revision with the body that was encoded last.
  func save(_ id: UnsafeRawBufferPointer, deleted: Bool = false, _ precondition: Precondition) throws
    -> SavedRevision
  {
    let (transaction, keyspaces) = try open()
    if case .lastWriteWins(basedOn: nil) = precondition, !mayHaveTombstones, !deleted,
      let saved = try insertNew(id, transaction, keyspaces)
    {
      return saved
    }
    let isStored = try load(id, transaction, keyspaces)
    var parent = -1
    if isStored != nil {
      parent = try self.parent(for: precondition, deleting: deleted, id: id)
    } else if deleted {
      throw DocumentError(.notFound, "there is no such document to delete", documentID: idText(id))
    }
    text.removeAll()
    var generation: UInt64 = 1
    if parent >= 0 {
      let node = tree.nodes[parent]
      generation = node.generation + 1
      guard generation <= RevisionID.maximumGeneration else {
        throw DocumentError(
          .invalidRevisionID, "there is no generation above that of \(tree.revisionID(of: parent))",
          documentID: idText(id))
      }
      StoredRevisionID(generation: node.generation, suffix: tree.suffix(of: node)).appendText(to: &text)
    }
    let suffix = try digest.digest(parent: text.bytes, deleted: deleted, body: encoder.canonicalJSON)
    let new = StoredRevisionID(generation: generation, suffix: StoredSuffix(bytes: suffix, isText: false))
    if isStored != nil, let known = tree.index(of: new) {
      return try saveKnown(
        known, on: parent, id, stored: isStored, generation, suffix, transaction, keyspaces)
    }
    let sequence = try nextSequence()
    var flags: RevisionFlags = [.leaf, .hasBody]
    if deleted { flags.insert(.deleted) }
    return try mutating {
      if isStored == nil { tree.removeAll() }
      let index = tree.addChild(new, of: parent, sequence: sequence, flags: flags)
      try write(id, stored: isStored, newRevision: index, parent: parent, sequence, transaction, keyspaces)
      return saved(sequence, generation, suffix)
    }
  }

  /// A local save of a revision that came from elsewhere before, without its parent: the same parent and body
  /// give the same ID everywhere. Then the two are joined; when it has another parent, nothing changes.
  private func saveKnown(
    _ known: Int, on parent: Int, _ id: UnsafeRawBufferPointer, stored: Stored?, _ generation: UInt64,
    _ suffix: UnsafeRawBufferPointer, _ transaction: any WriteTransaction,
    _ keyspaces: DocumentStore.Keyspaces
  ) throws -> SavedRevision {
    guard tree.nodes[known].parent < 0 else { return saved(stored?.sequence ?? 0, generation, suffix) }
    let sequence = try nextSequence()
    return try mutating {
      tree.join(known, to: parent)
      try write(
        id, stored: stored, newRevision: known, hasNewBody: false, parent: parent, sequence, transaction,
        keyspaces)
      return saved(sequence, generation, suffix)
    }
  }

  private func saved(_ sequence: UInt64, _ generation: UInt64, _ suffix: UnsafeRawBufferPointer)
    -> SavedRevision
  {
    SavedRevision(
      sequence: sequence, generation: generation,
      digest: suffix.loadUnaligned(as: InlineArray<20, UInt8>.self))
  }

  /// The first revision of a document, when there is none of that ID: without looking first.
  private func insertNew(
    _ id: UnsafeRawBufferPointer, _ transaction: any WriteTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws -> SavedRevision? {
    let suffix = try digest.digest(
      parent: UnsafeRawBufferPointer(start: nil, count: 0), deleted: false, body: encoder.canonicalJSON)
    let last = state?.lastSequence ?? 0
    guard last < maximumSequence else { return nil }
    let sequence = last + 1
    treeBytes.removeAll()
    treeBytes.append(1)
    treeBytes.append((RevisionFlags.leaf.union(.hasBody)).rawValue)
    treeBytes.append(0)
    treeBytes.append(varint: sequence)
    StoredRevisionID(generation: 1, suffix: StoredSuffix(bytes: suffix, isText: false))
      .append(to: &treeBytes)
    compose(flags: [], sequence, keyCount: encoder.sharedKeyCount, body: encoder.fleece)
    return try mutating {
      guard try transaction.insert(id, record.bytes, in: keyspaces.docs) else { return nil }
      try addChange(id, flags: [], sequence, transaction, keyspaces)
      state?.lastSequence = sequence
      return saved(sequence, 1, suffix)
    }
  }

  /// The node that a local write goes on top of.
  private func parent(for precondition: Precondition, deleting: Bool, id: UnsafeRawBufferPointer) throws
    -> Int
  {
    let base: RevisionID?
    let canFail: Bool
    switch precondition {
    case .lastWriteWins(let revision): (base, canFail) = (revision, false)
    case .based(let revision): (base, canFail) = (revision, true)
    }
    if let base {
      if let index = leaf(base) { return index }
      if canFail {
        throw DocumentError(
          .conflict,
          "the revision \(base) that the change is based on isn't current any more, \(tree.revisionID(of: 0)) is:"
            + " read the document again, or let the last write win", documentID: idText(id))
      }
    }
    if tree.nodes[0].isDeleted {
      // A tombstone may be written over, but there is nothing more to delete.
      guard deleting else { return 0 }
      throw DocumentError(.notFound, "the document to delete has been deleted", documentID: idText(id))
    }
    guard canFail else { return 0 }
    throw DocumentError(
      .conflict, "there is a document of this ID already: read it and change it, or let the last write win",
      documentID: idText(id))
  }

  /// The index of the revision when it is a leaf of the document in `tree`.
  private func leaf(_ revision: RevisionID) -> Int? {
    var suffix = revision.suffix
    text.removeAll()
    let isText = suffix.withUTF8 { utf8 in
      let bytes = UnsafeRawBufferPointer(utf8)
      if text.append(hex: bytes) { return false }
      text.append(bytes)
      return true
    }
    let stored = self.suffix(revision.generation, 0, isText)
    guard let index = tree.index(of: stored), tree.nodes[index].isLeaf else { return nil }
    return index
  }

  func idText(_ id: UnsafeRawBufferPointer) -> String { String(decoding: id, as: UTF8.self) }

  // MARK: Revisions from elsewhere

  /// Adds a revision that another database made, with the body that was encoded last. False when it was
  /// known already, and nothing changed. `history` is newest first and begins with the revision itself.
  func apply(
    _ id: UnsafeRawBufferPointer, history: [String], deleted: Bool
  ) throws -> Bool {
    let (transaction, keyspaces) = try open()
    let isStored = try load(id, transaction, keyspaces)
    if isStored == nil { tree.removeAll() }
    // Where each ID of the history lies in `text`: the new ones are added from there, oldest first.
    text.removeAll()
    var ids: [(generation: UInt64, start: Int, count: Int, isText: Bool)] = []
    ids.reserveCapacity(history.count)
    var ancestor = -1
    var last = UInt64.max
    for revision in history {
      guard let generation = appendSuffix(of: revision) else {
        throw DocumentError(
          .invalidRevisionID, "\"\(revision)\" is no revision ID", documentID: idText(id))
      }
      guard generation.value < last else {
        throw DocumentError(
          .invalidHistory, "the history doesn't descend at \"\(revision)\"", documentID: idText(id))
      }
      last = generation.value
      if isStored != nil,
        let known = tree.index(of: suffix(generation.value, generation.start, generation.isText))
      {
        ancestor = known
        break
      }
      ids.append(
        (generation.value, generation.start, text.count - generation.start, generation.isText))
    }
    guard !history.isEmpty else {
      throw DocumentError(.invalidHistory, "a revision needs a history", documentID: idText(id))
    }
    // The revision itself is known.
    if ids.isEmpty { return false }
    if ancestor < 0, ids.count > options.maximumTreeDepth {
      ids.removeLast(ids.count - options.maximumTreeDepth)
    }
    let sequence = try nextSequence()
    return try mutating {
      var parent = ancestor
      for (position, id) in ids.enumerated().reversed() {
        var flags: RevisionFlags = []
        if position == 0 {
          flags = [.leaf, .hasBody]
          if deleted { flags.insert(.deleted) }
        }
        let stored = StoredRevisionID(
          generation: id.generation,
          suffix: StoredSuffix(
            bytes: UnsafeRawBufferPointer(rebasing: text.bytes[id.start..<(id.start + id.count)]),
            isText: id.isText))
        parent = tree.addChild(stored, of: parent, sequence: sequence, flags: flags)
      }
      try write(
        id, stored: isStored, newRevision: parent, parent: ancestor, sequence, transaction, keyspaces)
      return true
    }
  }

  /// Parses a revision ID into `text`, packed when it can be.
  private func appendSuffix(of revision: String) -> (value: UInt64, start: Int, isText: Bool)? {
    var revision = revision
    return revision.withUTF8 { utf8 in
      var generation: UInt64 = 0
      var index = 0
      while index < utf8.count, utf8[index] != UInt8(ascii: "-") {
        let digit = utf8[index] &- 0x30
        // 19 digits are less than 2^64.
        guard digit < 10, index < 19, index > 0 || digit > 0 else { return nil }
        generation = generation * 10 + UInt64(digit)
        index += 1
      }
      guard index > 0, index < utf8.count, generation <= RevisionID.maximumGeneration else { return nil }
      let suffix = UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(utf8)[(index + 1)...])
      guard RevisionID.isValid(suffix: suffix) else { return nil }
      let start = text.count
      if text.append(hex: suffix) { return (generation, start, false) }
      text.append(suffix)
      return (generation, start, true)
    }
  }

  private func suffix(_ generation: UInt64, _ start: Int, _ isText: Bool) -> StoredRevisionID {
    StoredRevisionID(
      generation: generation,
      suffix: StoredSuffix(
        bytes: UnsafeRawBufferPointer(rebasing: text.bytes[start...]), isText: isText))
  }

  // MARK: Purging and compaction

  /// Forgets the document and all its revisions: no tombstone, no change. False when there was none.
  func purge(_ id: UnsafeRawBufferPointer) throws -> Bool {
    let (transaction, keyspaces) = try open()
    guard let old = try load(id, transaction, keyspaces) else { return false }
    return try mutating {
      for (index, node) in tree.nodes.enumerated() where index > 0 && node.flags.contains(.hasBody) {
        try deleteBody(node.sequence, isLeaf: node.isLeaf, transaction, keyspaces)
      }
      try transaction.delete(id, in: old.isDeleted ? keyspaces.deleted : keyspaces.docs)
      try deleteSequence(old.sequence, in: keyspaces.changes, transaction)
      return true
    }
  }

  /// Drops the bodies of all replaced revisions, and says how many there were.
  func dropReplacedBodies() throws -> Int {
    let (transaction, keyspaces) = try open()
    return try mutating { try transaction.deleteRange(.all, in: keyspaces.bodies) }
  }

  // MARK: Records

  /// What was found of a document.
  private struct Stored {
    var isDeleted: Bool
    var sequence: UInt64
    var keyCount: Int
    /// Where the body begins in `stored`.
    var bodyStart: Int
  }

  /// Copies the stored document into `stored` and its tree into `tree`; nil when there is none.
  private func load(
    _ id: UnsafeRawBufferPointer, _ transaction: any WriteTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws -> Stored? {
    var found = try transaction.get(id, in: keyspaces.docs)
    let isDeleted = found == nil
    if isDeleted, mayHaveTombstones { found = try transaction.get(id, in: keyspaces.deleted) }
    guard let found else { return nil }
    stored.removeAll()
    stored.append(found)
    let record = try DocumentRecord(stored.bytes)
    try tree.decode(record.tree)
    guard record.flags.contains(.deleted) == isDeleted, tree.nodes[0].isDeleted == isDeleted else {
      throw DocumentRecord.damaged
    }
    return Stored(
      isDeleted: record.flags.contains(.deleted), sequence: record.sequence, keyCount: record.keyCount,
      bodyStart: stored.count - record.body.count)
  }

  /// Writes the document after a revision was added to `tree`: bodies to where they belong now, record, change.
  /// `newRevision` is its index, `parent` the index it had when it was added on top of. Without `hasNewBody` it was
  /// known with its body, and only got a parent.
  private func write(
    _ id: UnsafeRawBufferPointer, stored old: Stored?, newRevision: Int, hasNewBody: Bool = true, parent: Int,
    _ sequence: UInt64, _ transaction: any WriteTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws {
    // The old current revision and the parent, by the sequences of their bodies, before indices change.
    let oldCurrent = old == nil ? nil : tree.nodes[0]
    let parentNode = parent > 0 ? tree.nodes[parent] : nil
    var forgetsOldCurrent = false
    var forgetsParent = false
    var index = tree.sort(watching: newRevision)
    index = try tree.prune(depth: options.maximumTreeDepth, watching: index) { sequence in
      if sequence == oldCurrent?.sequence {
        forgetsOldCurrent = true
      } else if sequence == parentNode?.sequence {
        // To a depth of 1: it was a leaf until now, so its body is where those of leaves are.
        forgetsParent = true
      } else {
        // What a branch loses to pruning is no leaf.
        try deleteBody(sequence, isLeaf: false, transaction, keyspaces)
      }
    }
    // A leaf that lost is replaced: its body is no leaf's any more.
    if let parentNode, parentNode.flags.contains(.hasBody) {
      try moveToReplaced(parentNode.sequence, keeps: !forgetsParent, transaction, keyspaces)
    }
    var flags: DocumentRecord.Flags = tree.nodes[0].isDeleted ? .deleted : []
    if tree.isConflicted { flags.insert(.conflicted) }
    if index == 0, hasNewBody {
      // The new revision is current; what was goes aside.
      if let old, let oldCurrent, oldCurrent.flags.contains(.hasBody), !forgetsOldCurrent {
        try keepOldCurrent(old, oldCurrent, becameParent: parent == 0, transaction, keyspaces)
      }
      treeBytes.removeAll()
      tree.encode(into: &treeBytes)
      compose(flags: flags, sequence, keyCount: encoder.sharedKeyCount, body: encoder.fleece)
    } else {
      if hasNewBody {
        try putBody(
          encoder.fleece, keyCount: encoder.sharedKeyCount, at: sequence, in: keyspaces.conflicts, transaction
        )
      }
      treeBytes.removeAll()
      tree.encode(into: &treeBytes)
      if let old, let oldCurrent, tree.nodes[0].sequence == oldCurrent.sequence, parent != 0 {
        // What was current still is.
        compose(
          flags: flags, sequence, keyCount: old.keyCount,
          body: UnsafeRawBufferPointer(rebasing: stored.bytes[old.bodyStart...]))
      } else {
        // The new revision ended the current branch, and another leaf takes its place.
        if let old, let oldCurrent, oldCurrent.flags.contains(.hasBody), !forgetsOldCurrent {
          try keepOldCurrent(old, oldCurrent, becameParent: true, transaction, keyspaces)
        }
        try composeFromConflict(tree.nodes[0].sequence, flags: flags, sequence, transaction, keyspaces)
      }
    }
    let isDeleted = flags.contains(.deleted)
    if isDeleted { mayHaveTombstones = true }
    if let old, old.isDeleted != isDeleted {
      try transaction.delete(id, in: old.isDeleted ? keyspaces.deleted : keyspaces.docs)
    }
    try transaction.put(id, record.bytes, in: isDeleted ? keyspaces.deleted : keyspaces.docs)
    if let old { try deleteSequence(old.sequence, in: keyspaces.changes, transaction) }
    try addChange(id, flags: flags, sequence, transaction, keyspaces)
  }

  /// Puts the record together from `treeBytes` and a body.
  private func compose(
    flags: DocumentRecord.Flags, _ sequence: UInt64, keyCount: Int, body: UnsafeRawBufferPointer
  ) {
    record.removeAll()
    record.reserve(body.count + treeBytes.count + 32)
    record.append(DocumentRecord.version)
    record.append(flags.rawValue)
    record.append(varint: sequence)
    record.append(varint: UInt64(keyCount))
    record.append(varint: UInt64(treeBytes.count))
    record.append(treeBytes.bytes)
    record.append(body)
  }

  /// Puts the record together with the body of a leaf that becomes current, which leaves `conflicts`.
  private func composeFromConflict(
    _ leaf: UInt64, flags: DocumentRecord.Flags, _ sequence: UInt64, _ transaction: any WriteTransaction,
    _ keyspaces: DocumentStore.Keyspaces
  ) throws {
    try withSequenceKey(leaf) { key in
      guard let bytes = try transaction.get(key, in: keyspaces.conflicts) else {
        throw DocumentError(.damaged, "the body of a conflicting revision is missing (sequence \(leaf))")
      }
      let body = try BodyRecord(bytes)
      compose(flags: flags, sequence, keyCount: body.keyCount, body: body.body)
      try transaction.delete(key, in: keyspaces.conflicts)
    }
  }

  private func keepOldCurrent(
    _ old: Stored, _ node: RevisionTree.Node, becameParent: Bool, _ transaction: any WriteTransaction,
    _ keyspaces: DocumentStore.Keyspaces
  ) throws {
    guard !becameParent || options.keepsReplacedBodies else { return }
    try putBody(
      UnsafeRawBufferPointer(rebasing: stored.bytes[old.bodyStart...]), keyCount: old.keyCount,
      at: node.sequence, in: becameParent ? keyspaces.bodies : keyspaces.conflicts, transaction)
  }

  private func moveToReplaced(
    _ sequence: UInt64, keeps: Bool, _ transaction: any WriteTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws {
    try withSequenceKey(sequence) { key in
      if keeps, options.keepsReplacedBodies, let bytes = try transaction.get(key, in: keyspaces.conflicts) {
        other.removeAll()
        other.append(bytes)
        try transaction.put(key, other.bytes, in: keyspaces.bodies)
      }
      try transaction.delete(key, in: keyspaces.conflicts)
      if !keeps { try transaction.delete(key, in: keyspaces.bodies) }
    }
  }

  private func putBody(
    _ body: UnsafeRawBufferPointer, keyCount: Int, at sequence: UInt64, in keyspace: Keyspace,
    _ transaction: any WriteTransaction
  ) throws {
    other.removeAll()
    other.append(varint: UInt64(keyCount))
    other.append(body)
    try withSequenceKey(sequence) { try transaction.put($0, other.bytes, in: keyspace) }
  }

  private func deleteBody(
    _ sequence: UInt64, isLeaf: Bool, _ transaction: any WriteTransaction,
    _ keyspaces: DocumentStore.Keyspaces
  ) throws {
    try deleteSequence(sequence, in: isLeaf ? keyspaces.conflicts : keyspaces.bodies, transaction)
  }

  private func addChange(
    _ id: UnsafeRawBufferPointer, flags: DocumentRecord.Flags, _ sequence: UInt64,
    _ transaction: any WriteTransaction, _ keyspaces: DocumentStore.Keyspaces
  ) throws {
    other.removeAll()
    other.append(flags.rawValue)
    other.append(id)
    try withSequenceKey(sequence) { try transaction.append($0, other.bytes, in: keyspaces.changes) }
  }

  private func deleteSequence(
    _ sequence: UInt64, in keyspace: Keyspace, _ transaction: any WriteTransaction
  ) throws {
    _ = try withSequenceKey(sequence) { try transaction.delete($0, in: keyspace) }
  }
}

/// Calls `body` with the key of a sequence: 8 bytes, big-endian.
@inline(__always)
func withSequenceKey<Result>(_ sequence: UInt64, _ body: (UnsafeRawBufferPointer) throws -> Result) rethrows
  -> Result
{
  var bigEndian = sequence.bigEndian
  return try withUnsafeBytes(of: &bigEndian) { try body($0) }
}
