import Blobs
import Fleece
import Storage

/// One side of a comparison: a snapshot whose live and deleted documents are visited in the order of their
/// IDs.
final class ComparedDocuments {
  /// A stored document, in place.
  struct Stored: ~Escapable {
    let id: RawSpan
    let bytes: RawSpan
    let isDeleted: Bool

    @_lifetime(copy id, copy bytes)
    init(id: RawSpan, bytes: RawSpan, isDeleted: Bool) {
      self.id = id
      self.bytes = bytes
      self.isDeleted = isDeleted
    }
  }

  let sharedKeys: SharedKeys
  let tree = RevisionTree()
  /// Whether there is a current document.
  private(set) var hasCurrent = false
  private let store: DocumentStore
  private let transaction: any ReadTransaction
  private let context: DocumentStore.Context
  private let keyspaces: DocumentStore.Keyspaces
  private let blobs: BlobStore?
  private let live: any Cursor
  private let deleted: any Cursor
  private var hasLive = false
  private var hasDeleted = false
  private var currentIsDeleted = false

  init(_ store: DocumentStore, _ transaction: any ReadTransaction, _ context: DocumentStore.Context) throws {
    self.store = store
    self.transaction = transaction
    self.context = context
    keyspaces = context.keyspaces
    sharedKeys = try store.sharedKeys(transaction, context)
    blobs = store.blobs
    live = try transaction.cursor(in: keyspaces.docs, .all)
    deleted = try transaction.cursor(in: keyspaces.deleted, .all)
  }

  // MARK: Documents

  func start() throws {
    hasLive = try live.first()
    hasDeleted = try deleted.first()
    try choose()
  }

  func advance() throws {
    if currentIsDeleted { hasDeleted = try deleted.next() } else { hasLive = try live.next() }
    try choose()
  }

  private func choose() throws {
    hasCurrent = hasLive || hasDeleted
    currentIsDeleted = !hasLive
    guard hasLive, hasDeleted else { return }
    let order = try live.withEntry { id, _ in
      let order = try deleted.withEntry { other, _ in id.compare(other) }
      guard order != 0 else {
        throw DocumentError(
          .damaged, "a live document and a tombstone have the same ID", documentID: String(copying: id))
      }
      return order
    }
    currentIsDeleted = order > 0
  }

  /// Lends the current document.
  func withCurrent<Result>(_ body: (Stored) throws -> Result) throws -> Result {
    let isDeleted = currentIsDeleted
    return try (isDeleted ? deleted : live).withEntry {
      try body(Stored(id: $0, bytes: $1, isDeleted: isDeleted))
    }
  }

  /// Reads all revisions of a document into `tree`.
  func loadTree(of id: RawSpan, _ record: DocumentRecord) throws {
    try tree.decode(record.tree)
    guard let history = record.history else { return }
    try id.withUnsafeBytes { try tree.addHistory(of: $0, history, transaction) }
  }

  func lastSequence() throws -> UInt64 {
    try DocumentStore.lastSequence(transaction, keyspaces)
  }

  /// Lends the body of a revision. The current revision's body is in the record. Other bodies are stored
  /// under their sequences. `body` is called with nil if the body isn't stored any more.
  func withBody<Result>(
    of index: Int, _ record: DocumentRecord, _ body: (RawSpan?) throws -> Result
  ) throws -> Result {
    let node = tree.nodes[index]
    guard index > 0 else { return try body(record.body) }
    guard node.flags.contains(.hasBody) else { return try body(nil) }
    let found = try withSequenceKey(node.sequence) { key in
      try transaction.withValue(at: key.bytes, in: node.isLeaf ? keyspaces.conflicts : keyspaces.bodies) {
        try body(BodyRecord($0).body)
      }
    }
    return try found ?? body(nil)
  }

  func writeJSON(_ body: RawSpan, into json: inout [UInt8]) throws {
    guard let root = Value(rootOf: body) else { throw DocumentRecord.damaged }
    do { try root.writeJSON(sharedKeys: sharedKeys, canonical: true, into: &json) } catch {
      throw DocumentError(.damaged, "a stored body can't be read: \(error)")
    }
  }

  // MARK: Blobs

  /// Describes the state of a blob. Reads its bytes and verifies them against the digest.
  func state(of digest: BlobDigest) throws -> String {
    guard let blobs, try blobs.contains(digest) else { return "not here" }
    do {
      let found = try blobs.verify(fileName: try blobs.fileName(of: digest))
      return found.digest == digest ? "here, \(found.length) bytes" : "here, with other bytes"
    } catch let error as StorageError { return "damaged: \(error.message)" }
  }

  // MARK: Named records

  /// Returns a cursor before the first entry, nil if there is no such keyspace.
  func cursor(over keyspace: String) throws -> (any Cursor)? {
    try transaction.keyspace(named: keyspace).map { try transaction.cursor(in: $0, .all) }
  }

  /// Returns a description of each index by name: its kind and definition.
  func indexes() throws -> [ByteString: String] {
    let records = try store.indexCatalog(transaction, context).records
    return Dictionary(
      records.map { (ByteString($0.name), "\($0.kind) \(String(decoding: $0.definition, as: UTF8.self))") },
      uniquingKeysWith: { first, _ in first })
  }

  /// Describes a named entry for people.
  static func words(_ key: RawSpan, _ value: RawSpan, _ kind: DocumentDifference.Kind) throws -> String {
    switch kind {
    case .local:
      let document = try LocalDocument(id: String(copying: key), value)
      return "\(document.revisionID) \((try? document.body.canonicalJSON()) ?? "?")"
    case .expiration: return "\(try ExpirationTime.read(value)) ms"
    default: return "\(value.byteCount) bytes"
    }
  }
}

extension DocumentStore {
  /// Compares everything stored with `other`, each in one snapshot, and reports the differences.
  @discardableResult
  package func compare(
    with other: DocumentStore, sequences: Bool = false, onlyCurrent: Bool = false,
    progress: @escaping (Int) throws -> Void = { _ in },
    report: @escaping (DocumentDifference) throws -> Void
  ) throws -> ComparedCounts {
    try withSnapshot(attempts: 1, verifying: true) { left, leftContext in
      try other.withSnapshot(attempts: 1, verifying: true) { right, rightContext in
        try DocumentComparison(
          try ComparedDocuments(self, left, leftContext), try ComparedDocuments(other, right, rightContext),
          sequences: sequences, onlyCurrent: onlyCurrent, progress: progress, report: report
        ).run()
      }
    }
  }
}
