import Blobs
import Fleece
import Storage

/// One side of a comparison: a snapshot whose documents, live and deleted, are visited in the order of their IDs.
final class ComparedDocuments {
  /// A document where it is stored: valid until the side advances.
  struct Stored {
    let id: UnsafeRawBufferPointer
    let bytes: UnsafeRawBufferPointer
    let isDeleted: Bool
    func record() throws -> DocumentRecord { try DocumentRecord(bytes) }
  }

  let sharedKeys: SharedKeys
  let tree = RevisionTree()
  private(set) var current: Stored?
  private let store: DocumentStore
  private let transaction: any ReadTransaction
  private let context: DocumentStore.Context
  private let keyspaces: DocumentStore.Keyspaces
  private let blobs: BlobStore?
  private let live: any UnsafeCursor
  private let deleted: any UnsafeCursor
  private var nextLive: Entry?
  private var nextDeleted: Entry?

  init(_ store: DocumentStore, _ transaction: any ReadTransaction, _ context: DocumentStore.Context) throws {
    self.store = store
    self.transaction = transaction
    self.context = context
    keyspaces = context.keyspaces
    sharedKeys = try store.currentSharedKeys(transaction, context)
    blobs = store.blobs
    live = try transaction.unsafeCursor(in: keyspaces.docs, .all)
    deleted = try transaction.unsafeCursor(in: keyspaces.deleted, .all)
  }

  // MARK: Documents

  func start() throws {
    nextLive = try live.first()
    nextDeleted = try deleted.first()
    try choose()
  }

  func advance() throws {
    if current?.isDeleted == true { nextDeleted = try deleted.next() } else { nextLive = try live.next() }
    try choose()
  }

  private func choose() throws {
    var takesDeleted = nextLive == nil
    if let nextLive, let nextDeleted {
      let order = compareBytes(nextLive.key, nextDeleted.key)
      guard order != 0 else {
        throw DocumentError(
          .damaged, "there are a live document and a tombstone of one ID",
          documentID: String(decoding: nextLive.key, as: UTF8.self))
      }
      takesDeleted = order > 0
    }
    current = (takesDeleted ? nextDeleted : nextLive).map {
      Stored(id: $0.key, bytes: $0.value, isDeleted: takesDeleted)
    }
  }

  /// Reads all revisions of a document into `tree`.
  func loadTree(of document: Stored, _ record: DocumentRecord) throws {
    try tree.decode(record.tree)
    if let history = record.history { try tree.addHistory(of: document.id, history, transaction) }
  }

  func lastSequence() throws -> UInt64 {
    try DocumentStore.State(transaction, keyspaces.meta).lastSequence
  }

  /// The body of a revision that isn't current, valid until the next; nil when it isn't here any more.
  func body(_ sequence: UInt64, isLeaf: Bool) throws -> UnsafeRawBufferPointer? {
    try withSequenceKey(sequence) { key in
      try transaction.get(key, in: isLeaf ? keyspaces.conflicts : keyspaces.bodies).map {
        try BodyRecord($0).body
      }
    }
  }

  func writeJSON(_ body: UnsafeRawBufferPointer, into json: inout [UInt8]) throws {
    guard let root = FleeceReader.root(of: body) else { throw DocumentRecord.damaged }
    do { try root.writeJSON(sharedKeys: sharedKeys, canonical: true, into: &json) } catch {
      throw DocumentError(.damaged, "a stored body can't be read: \(error)")
    }
  }

  // MARK: Blobs

  /// What there is of a blob, in words: its bytes are read and held against the digest.
  func state(of digest: BlobDigest) throws -> String {
    guard let blobs, try blobs.contains(digest) else { return "not here" }
    do {
      let found = try blobs.verify(fileName: try blobs.fileName(of: digest))
      return found.digest == digest ? "here, \(found.length) bytes" : "here, with other bytes"
    } catch let error as StorageError { return "damaged: \(error.message)" }
  }

  // MARK: What lies under names

  /// A cursor before the first entry; nil when there is no such keyspace.
  func cursor(over keyspace: String) throws -> (any UnsafeCursor)? {
    try transaction.keyspace(named: keyspace).map { try transaction.unsafeCursor(in: $0, .all) }
  }

  /// The indexes by name: kind and definition in words.
  func indexes() throws -> [String: String] {
    let records = try store.indexCatalog(transaction, context).records
    return Dictionary(
      records.map { ($0.name, "\($0.kind) \(String(decoding: $0.definition, as: UTF8.self))") },
      uniquingKeysWith: { first, _ in first })
  }

  /// A named entry for people.
  static func words(_ entry: Entry, _ kind: DocumentDifference.Kind) throws -> String {
    let id = String(decoding: entry.key, as: UTF8.self)
    switch kind {
    case .local:
      let document = try LocalDocument(id: id, entry.value)
      return "\(document.revisionID) \((try? document.body.canonicalJSON()) ?? "?")"
    case .expiration: return "\(try ExpirationTime.read(entry.value)) ms"
    default: return "\(entry.value.count) bytes"
    }
  }
}

extension DocumentStore {
  /// Compares everything that is stored here with what is in `other`, and calls `report` with each difference in the
  /// order of the documents' IDs; says how many documents and tombstones were compared.
  ///
  /// Equal are databases with the same documents, tombstones, revision trees, flags, bodies that are still here, local
  /// documents, expirations, indexes, and blobs, whose bytes are read; sequences count only when asked for. Both are
  /// read from one snapshot each; memory doesn't grow with them. `progress` is called now and then with the number of
  /// documents so far; what it or `report` throws ends the comparison. Throws `damaged` for what can't be read.
  @discardableResult
  public func compare(
    with other: DocumentStore, sequences: Bool = false, progress: @escaping (Int) throws -> Void = { _ in },
    report: @escaping (DocumentDifference) throws -> Void
  ) throws -> Int {
    try reading { left, leftContext in
      try other.reading { right, rightContext in
        try DocumentComparison(
          try ComparedDocuments(self, left, leftContext), try ComparedDocuments(other, right, rightContext),
          sequences: sequences, progress: progress, report: report
        ).run()
      }
    }
  }
}
