import Blobs
import Bytes
import Fleece
import Storage

/// Adds documents of another database to a store, with their whole revision trees. `DocumentImport` copies
/// them unchanged into a new store.
///
/// Revision IDs are kept, and nothing is pruned until the next save. A document that exists already gets the
/// branches that it lacks, as from a sync. All bodies are validated. Use it on one thread at a time.
package final class DocumentInserter {
  /// The result of inserting a document.
  package struct Outcome: Sendable, Equatable {
    /// Whether the document is new in this database.
    package var isNew = true
    /// The number of added revisions. 0 if the stored document had them all.
    package var revisions = 0
    /// The index of the current revision among the given revisions. Only set for a new document.
    package var current = 0
    /// Whether the document has more than one live leaf. Only set for a new document.
    package var isConflicted = false
    /// The blobs that its bodies refer to and that can't be found.
    package var missingBlobs: [BlobDigest] = []
  }

  /// The maximum sequence to keep. A higher one can't be genuine, and would leave few sequences for later
  /// changes.
  private static let highestKept: UInt64 = 1 << 56

  private let store: DocumentStore
  private let sharedKeys: SharedKeys
  private let keepsSequences: Bool
  /// Whether bodies can be stored unchanged, because the database has the same shared keys as the source.
  private var takesBodies = false
  /// Sequences of bodies that differ from their document's sequence.
  private var bodySequences: Set<UInt64> = []
  // Reused for each document.
  private var isParent: ContiguousArray<Bool> = []
  private var bodies = ByteBuffer()
  private var places: ContiguousArray<Place> = []
  private var text = ByteBuffer(capacity: 512)

  /// The present location of a revision's body.
  private enum Place {
    case none
    /// In the caller's buffer, unchanged.
    case given(UnsafeRawBufferPointer)
    /// In the encoder.
    case encoded(EncodedBody)
    case copied(Range<Int>)
  }

  /// Creates an inserter of documents whose bodies use `sharedKeys`. With `keepsSequences`, sequences are
  /// kept where possible. That requires documents in ascending order of sequences.
  package init(_ store: DocumentStore, sharedKeys: SharedKeys = .empty, keepsSequences: Bool = false) {
    self.store = store
    self.sharedKeys = sharedKeys
    self.keepsSequences = keepsSequences
  }

  /// Runs `body`, which inserts documents, in one transaction. `body` runs only once, because it reads from a
  /// source that can't be rewound.
  package func inBatch<Result>(_ body: () throws -> Result) throws -> Result {
    try store.inBatch(attempts: 1) {
      try store.writing { takesBodies = $0.keys.adopt(sharedKeys) }
      return try body()
    }
  }

  /// Raises the last sequence to `sequence`, the last sequence of the other database, if it is lower.
  package func raiseLastSequence(to sequence: UInt64) throws {
    try store.writing { $0.raiseLastSequence(to: sequence, limit: Self.highestKept) }
  }

  /// Inserts a document, inside `inBatch`. `sequence` is the sequence of its latest change. `findBlob` is
  /// called for each blob that isn't stored. If it has the blob, it stores it with a writer of the store and
  /// returns true.
  ///
  /// Throws a `DocumentError` when the ID, the tree or a body is invalid. Then nothing has changed, and the
  /// batch can continue.
  package func insert(
    _ id: UnsafeRawBufferPointer, sequence: UInt64, _ revisions: UnsafeBufferPointer<ForeignRevision>,
    expiration: Int64? = nil, findBlob: (BlobDigest) throws -> Bool = { _ in false }
  ) throws -> Outcome {
    try DocumentID.checkStored(id)
    return try store.writing { writer in
      try writer.checkWritable()
      // The tree becomes that of this document.
      try writer.writePending()
      writer.forgetWide()
      let isStored = try writer.contains(id)
      try buildTree(id, revisions, writer)
      var outcome = Outcome()
      if isStored {
        outcome.isNew = false
        try merge(id, revisions, writer, &outcome, findBlob)
      } else {
        outcome.revisions = revisions.count
        outcome.current = Int(writer.tree.nodes[0].sequence) - 1
        outcome.isConflicted = writer.tree.isConflicted
        try prepareBodies(id, revisions, writer, &outcome, findBlob)
        try writer.mutating { try write(id, sequence, revisions, writer) }
      }
      if let expiration { _ = try writer.setExpiration(id, expiration) }
      return outcome
    }
  }

  /// Stores a local document at its generation, inside `inBatch`. Returns false if there is one with this
  /// name already.
  package func insertLocalDocument(_ name: String, generation: UInt64, _ body: JSONValue) throws -> Bool {
    guard try store.localDocument(name) == nil else { return false }
    try store.saveLocalDocument(name, body, generation: max(1, generation))
    return true
  }

  private func refused(_ reason: String, _ id: UnsafeRawBufferPointer) -> DocumentError {
    DocumentError(.invalidHistory, reason, documentID: String(decoding: id, as: UTF8.self))
  }

  // MARK: The tree

  /// Builds the writer's tree from the revisions. The sequence of each node is the index of its revision plus
  /// 1.
  private func buildTree(
    _ id: UnsafeRawBufferPointer, _ revisions: UnsafeBufferPointer<ForeignRevision>, _ writer: DocumentWriter
  ) throws {
    guard !revisions.isEmpty else { throw refused("it has no revision", id) }
    isParent.removeAll(keepingCapacity: true)
    isParent.append(contentsOf: repeatElement(false, count: revisions.count))
    for revision in revisions where revision.parent >= 0 {
      guard revision.parent < revisions.count,
        revisions[revision.parent].generation < revision.generation
      else { throw refused("the parent of the revision \(revision.id) isn't an older one", id) }
      isParent[revision.parent] = true
    }
    let tree = writer.tree
    tree.removeAll()
    var known: Set<RevisionID>? = revisions.count > 64 ? [] : nil
    for (index, revision) in revisions.enumerated() {
      let stored = try storedID(revision, id)
      let isTwice = known.map { _ in known?.insert(revision.id).inserted == false }
      if index > 0, isTwice ?? (tree.index(of: stored) != nil) {
        throw refused("the revision \(revision.id) occurs twice", id)
      }
      var flags: RevisionFlags = revision.isDeleted ? .deleted : []
      if !isParent[index] { flags.formUnion([.leaf, .hasBody]) }
      if revision.isClosed { flags.insert(.closed) }
      if revision.body.isHere { flags.insert(.hasBody) }
      tree.add(stored, parent: revision.parent, sequence: UInt64(index + 1), flags: flags)
    }
    if revisions.count > 1 { _ = tree.sort(watching: 0) }
  }

  /// Returns the ID in its one stored form, valid until the next call.
  private func storedID(_ revision: ForeignRevision, _ id: UnsafeRawBufferPointer) throws -> StoredRevisionID
  {
    guard revision.generation > 0, revision.generation <= RevisionID.maximumGeneration else {
      throw refused("\(revision.generation) isn't a valid generation of a revision", id)
    }
    let suffix = revision.suffix
    let isValid =
      revision.isText
      ? RevisionID.isValid(suffix: suffix)
      : !suffix.isEmpty && suffix.count <= RevisionID.maximumSuffixBytes / 2
    guard isValid else {
      throw refused("a revision ID of generation \(revision.generation) can't be stored", id)
    }
    if revision.isText {
      text.removeAll()
      let isText = text.append(suffix: suffix)
      return StoredRevisionID(
        generation: revision.generation, suffix: StoredSuffix(bytes: text.bytes, isText: isText))
    }
    return StoredRevisionID(
      generation: revision.generation, suffix: StoredSuffix(bytes: suffix, isText: false))
  }

  // MARK: Bodies

  /// Converts every body to its stored form and puts its blobs in place.
  private func prepareBodies(
    _ id: UnsafeRawBufferPointer, _ revisions: UnsafeBufferPointer<ForeignRevision>, _ writer: DocumentWriter,
    _ outcome: inout Outcome, _ findBlob: (BlobDigest) throws -> Bool
  ) throws {
    bodies.removeAll()
    places.removeAll(keepingCapacity: true)
    for (index, revision) in revisions.enumerated() {
      var place = try prepare(revision, isLeaf: !isParent[index], id, writer)
      if revisions.count > 1, case .encoded(let body) = place {
        let start = bodies.count
        bodies.append(body.fleece)
        place = .copied(start..<bodies.count)
      }
      places.append(place)
      if case .none = place { continue }
      try settleBlobs(bytes(of: place), writer, &outcome, findBlob)
    }
  }

  private func prepare(
    _ revision: ForeignRevision, isLeaf: Bool, _ id: UnsafeRawBufferPointer, _ writer: DocumentWriter
  ) throws -> Place {
    do throws(FleeceError) {
      switch revision.body {
      case .none:
        guard isLeaf else { return .none }
        guard revision.isDeleted else { throw .invalidFleece(reason: "there is no body", offset: 0) }
        return .given(Self.emptyObject)
      case .json(let json): return .encoded(try writer.encodeImported(json: json))
      case .fleece(let fleece):
        guard let root = FleeceReader.root(of: fleece), root.type == .dict else {
          throw .invalidFleece(reason: "the body isn't an object", offset: 0)
        }
        // Bodies that fail validation are encoded again.
        if takesBodies {
          do throws(FleeceError) {
            try validate(fleece, sharedKeyCount: sharedKeys.count)
            return .given(fleece)
          } catch {}
        }
        return .encoded(try writer.encodeImported(root, sharedKeys))
      }
    } catch {
      throw DocumentError(
        .invalidBody, "the revision \(revision.id): \(error)",
        documentID: String(decoding: id, as: UTF8.self))
    }
  }

  private func bytes(of place: Place) -> UnsafeRawBufferPointer {
    switch place {
    case .none: Self.emptyObject
    case .given(let bytes): bytes
    case .encoded(let body): body.fleece
    case .copied(let range): UnsafeRawBufferPointer(rebasing: bodies.bytes[range])
    }
  }

  /// The body of tombstones without one.
  private static var emptyObject: UnsafeRawBufferPointer { emptyObjectBytes.bytes }
  private static let emptyObjectBytes: EmptyObject = EmptyObject()
  private struct EmptyObject: @unchecked Sendable {
    let bytes: UnsafeRawBufferPointer
    init() {
      let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 2, alignment: 2)
      bytes.copyBytes(from: [0x70, 0])
      self.bytes = UnsafeRawBufferPointer(bytes)
    }
  }

  private func settleBlobs(
    _ body: UnsafeRawBufferPointer, _ writer: DocumentWriter, _ outcome: inout Outcome,
    _ findBlob: (BlobDigest) throws -> Bool
  ) throws {
    guard let blobs = writer.blobs, mayNameBlob(body) else { return }
    var missing = try writer.installBlobs(of: body, in: blobs, find: findBlob)
    guard !missing.isEmpty, let root = FleeceReader.root(of: body) else { return }
    try forEachBlobReference(in: root, sharedKeys: writer.keys.snapshot()) { reference in
      guard let digest = reference.digest, missing.remove(digest) != nil else { return }
      if !outcome.missingBlobs.contains(digest) { outcome.missingBlobs.append(digest) }
    }
  }

  // MARK: A new document

  private func write(
    _ id: UnsafeRawBufferPointer, _ sequence: UInt64, _ revisions: UnsafeBufferPointer<ForeignRevision>,
    _ writer: DocumentWriter
  ) throws {
    let tree = writer.tree
    let keyCount = writer.keys.count
    let current = Int(tree.nodes[0].sequence) - 1
    let sequence = try numberRevisions(sequence, revisions, writer)
    if revisions.count > 1 {
      for (index, node) in tree.nodes.enumerated() where index > 0 && node.flags.contains(.hasBody) {
        guard node.isLeaf || writer.options.keepsReplacedBodies else { continue }
        try writer.putBody(
          bytes(of: places[sourceIndices[index]]), keyCount: keyCount, at: node.sequence,
          in: node.isLeaf ? writer.keyspaces.conflicts : writer.keyspaces.bodies)
      }
    }
    let flags = try writer.insertRecord(id, sequence, keyCount: keyCount, body: bytes(of: places[current]))
    try writer.addChange(id, flags: flags, sequence)
  }

  /// The index of each node's revision among the given revisions.
  private var sourceIndices: ContiguousArray<Int> = []

  /// Assigns the sequences of all nodes and returns the document's sequence. Non-current bodies need
  /// sequences of their own.
  private func numberRevisions(
    _ wanted: UInt64, _ revisions: UnsafeBufferPointer<ForeignRevision>, _ writer: DocumentWriter
  ) throws -> UInt64 {
    let tree = writer.tree
    if revisions.count == 1 {
      let given = revisions[0].sequence
      let own = try isFree(given, below: wanted, writer)
      let sequence = try documentSequence(wanted, writer)
      tree.setSequence(own && given < sequence ? given : sequence, of: 0)
      if own, given < sequence { bodySequences.insert(given) }
      return sequence
    }
    sourceIndices.removeAll(keepingCapacity: true)
    for node in tree.nodes { sourceIndices.append(Int(node.sequence) - 1) }
    // The oldest come first. Each body gets its own sequence. The last one may have the document's sequence.
    func sourceSequence(_ index: Int) -> UInt64 {
      let given = revisions[sourceIndices[index]].sequence
      return given == 0 || given > wanted ? wanted : given
    }
    let withBodies = tree.nodes.indices.filter { tree.nodes[$0].flags.contains(.hasBody) }.sorted {
      let (a, b) = (sourceSequence($0), sourceSequence($1))
      return a == b ? $0 > $1 : a < b
    }
    for index in withBodies.dropLast() {
      var sequence = sourceSequence(index)
      if try !isFree(sequence, below: wanted, writer) {
        sequence = try nextSequence(writer)
      }
      bodySequences.insert(sequence)
      tree.setSequence(sequence, of: index)
    }
    // The current revision always has a body.
    let last = withBodies.last ?? 0
    let given = sourceSequence(last)
    let keepsLast = try isFree(given, below: wanted, writer)
    let sequence = try documentSequence(wanted, writer)
    if keepsLast { bodySequences.insert(given) }
    tree.setSequence(keepsLast ? given : sequence, of: last)
    for index in tree.nodes.indices where !tree.nodes[index].flags.contains(.hasBody) {
      let given = revisions[sourceIndices[index]].sequence
      tree.setSequence(keepsSequences && given > 0 && given < sequence ? given : sequence, of: index)
    }
    return sequence
  }

  private func documentSequence(_ wanted: UInt64, _ writer: DocumentWriter) throws -> UInt64 {
    guard keepsSequences, let last = writer.lastSequence, wanted > last, wanted <= Self.highestKept else {
      return try nextSequence(writer)
    }
    writer.lastSequence = wanted
    return wanted
  }

  /// Returns the next sequence that no body has.
  private func nextSequence(_ writer: DocumentWriter) throws -> UInt64 {
    var sequence = try writer.nextSequence()
    while bodySequences.contains(sequence) { sequence = try writer.nextSequence() }
    return sequence
  }

  /// Returns whether a body may keep its sequence of the other database: no document and no body has it here.
  private func isFree(_ sequence: UInt64, below document: UInt64, _ writer: DocumentWriter) throws -> Bool {
    guard keepsSequences, sequence > 0, sequence < document, let last = writer.lastSequence, document > last,
      document <= Self.highestKept,
      !bodySequences.contains(sequence)
    else { return false }
    return try withSequenceKey(sequence) {
      try !writer.transaction.contains($0.bytes, in: writer.keyspaces.changes)
    }
  }

  // MARK: An existing document

  /// Adds the branches that the stored document lacks, in reverse order of priority.
  private func merge(
    _ id: UnsafeRawBufferPointer, _ revisions: UnsafeBufferPointer<ForeignRevision>, _ writer: DocumentWriter,
    _ outcome: inout Outcome, _ findBlob: (BlobDigest) throws -> Bool
  ) throws {
    // `apply` replaces the writer's tree with the stored one.
    let leaves = writer.tree.nodes.filter(\.isLeaf).map { Int($0.sequence) - 1 }
    for leaf in leaves.reversed() {
      let revision = revisions[leaf]
      let place = try prepare(revision, isLeaf: true, id, writer)
      try settleBlobs(bytes(of: place), writer, &outcome, findBlob)
      let body: EncodedBody
      if case .encoded(let encoded) = place {
        body = encoded
      } else {
        do throws(FleeceError) {
          guard let root = FleeceReader.root(of: bytes(of: place)) else {
            throw .invalidFleece(reason: "the body isn't an object", offset: 0)
          }
          body = try writer.encodeImported(root, sharedKeys)
        } catch {
          throw DocumentError(.invalidBody, "\(error)", documentID: String(decoding: id, as: UTF8.self))
        }
      }
      var history: [String] = []
      var index = leaf
      while index >= 0 {
        history.append(revisions[index].id.description)
        index = revisions[index].parent
      }
      if try writer.apply(id, body, history: history, deleted: revision.isDeleted) { outcome.revisions += 1 }
    }
  }
}
