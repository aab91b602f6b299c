import Fleece
import Storage

extension DocumentStore {
  /// The live document of that ID, or nil. With `includeDeleted`, a tombstone as well.
  public func document(_ id: String, includeDeleted: Bool = false) throws -> Document? {
    try reading { transaction, context in
      try DocumentStore.document(id, includeDeleted: includeDeleted, in: transaction, context)
    }
  }

  static func document(
    _ id: String, includeDeleted: Bool, in transaction: any ReadTransaction, _ context: Context
  ) throws -> Document? {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      var found = try transaction.get(key, in: context.keyspaces.docs)
      if found == nil, includeDeleted {
        found = try transaction.get(key, in: context.keyspaces.deleted)
      }
      guard let found else { return nil }
      let document = try Document(id: id, record: found, sharedKeys: context.sharedKeys)
      guard document.keyCount > context.sharedKeys.count else { return document }
      return document.with(try laterSharedKeys(document.keyCount, transaction, context))
    }
  }

  /// The table of shared keys as `transaction` has it, for a body that needs more than `context` knows.
  static func laterSharedKeys(_ needed: Int, _ transaction: any ReadTransaction, _ context: Context) throws
    -> SharedKeys
  {
    let keys = try loadSharedKeys(transaction, context.keyspaces.meta)
    guard keys.count >= needed else {
      throw DocumentError(.damaged, "a body needs \(needed) shared keys and the table has \(keys.count)")
    }
    return keys
  }

  /// A property's name resolved once, for reading it from many documents.
  public func key(_ name: String) -> Key { Key(name, in: sharedKeys) }

  /// Runs `body` on one snapshot: what it reads belongs together, whatever is written meanwhile.
  public func read<Result>(_ body: (DocumentSnapshot) throws -> Result) throws -> Result {
    try reading { transaction, context in
      let snapshot = DocumentSnapshot(transaction, context)
      return try body(snapshot)
    }
  }

  /// All known revisions of the document, the current one first; nil when there is none.
  public func revisions(of id: String) throws -> [Revision]? {
    try reading { transaction, context in
      guard let document = try DocumentStore.document(id, includeDeleted: true, in: transaction, context)
      else { return nil }
      let tree = RevisionTree()
      try document.withRecord { try tree.decode($0.tree) }
      return try tree.nodes.enumerated().map { index, node in
        var body: JSONValue?
        if index == 0 {
          body = try document.value()
        } else if node.flags.contains(.hasBody) {
          body = try DocumentStore.body(
            of: node.sequence, in: node.isLeaf ? context.keyspaces.conflicts : context.keyspaces.bodies,
            transaction, context)
        }
        return Revision(
          id: tree.revisionID(of: index), parent: node.parent < 0 ? nil : tree.revisionID(of: Int(node.parent)),
          isDeleted: node.isDeleted, isLeaf: node.isLeaf, isCurrent: index == 0, sequence: node.sequence,
          body: body)
      }
    }
  }

  private static func body(
    of sequence: UInt64, in keyspace: Keyspace, _ transaction: any ReadTransaction, _ context: Context
  ) throws -> JSONValue? {
    let copy = try withSequenceKey(sequence) { key in
      try transaction.get(key, in: keyspace).map { StoredBytes(copying: $0) }
    }
    return try copy?.withBytes { bytes in
      let record = try BodyRecord(bytes)
      let keys =
        record.keyCount > context.sharedKeys.count
        ? try laterSharedKeys(record.keyCount, transaction, context) : context.sharedKeys
      guard let root = FleeceReader.root(of: record.body) else { throw DocumentRecord.damaged }
      return try root.jsonValue(sharedKeys: keys)
    }
  }

  /// Calls `body` with each change after `sequence`, oldest first, until it returns false. Each document
  /// comes once, with its latest change.
  public func forEachChange(since sequence: UInt64, _ body: (Change) throws -> Bool) throws {
    guard sequence < UInt64(Int64.max) else { return }
    let lower = (0..<8).map { UInt8(truncatingIfNeeded: sequence >> UInt64(56 - 8 * $0)) }
    try reading { transaction, context in
      try transaction.scan(context.keyspaces.changes, KeyRange(lower: .exclusive(lower))) { key, value in
        guard key.count == 8, value.count > 1 else {
          throw DocumentError(.damaged, "an entry of the changes can't be read")
        }
        let flags = DocumentRecord.Flags(rawValue: value[0])
        return try body(
          Change(
            sequence: UInt64(bigEndian: key.loadUnaligned(as: UInt64.self)),
            documentID: String(decoding: UnsafeRawBufferPointer(rebasing: value[1...]), as: UTF8.self),
            isDeleted: flags.contains(.deleted), isConflicted: flags.contains(.conflicted)))
      }
    }
  }

  /// The changes after `sequence`, oldest first, at most `limit`.
  public func changes(since sequence: UInt64 = 0, limit: Int = .max) throws -> [Change] {
    var changes: [Change] = []
    guard limit > 0 else { return [] }
    try forEachChange(since: sequence) { change in
      changes.append(change)
      return changes.count < limit
    }
    return changes
  }
}

/// One snapshot of a database's documents. Not to be used after the closure it was handed to.
public final class DocumentSnapshot {
  private let transaction: any ReadTransaction
  private let context: DocumentStore.Context

  init(_ transaction: any ReadTransaction, _ context: DocumentStore.Context) {
    self.transaction = transaction
    self.context = context
  }

  public func document(_ id: String, includeDeleted: Bool = false) throws -> Document? {
    try DocumentStore.document(id, includeDeleted: includeDeleted, in: transaction, context)
  }

  /// A property's name resolved once. It is right for every document of this snapshot.
  public func key(_ name: String) throws -> Key {
    Key(name, in: try DocumentStore.currentSharedKeys(transaction, context))
  }

  /// Calls `body` with each live document until it returns false. The view ends when `body` returns.
  ///
  /// In the order of the engine (`.stored`) this is the fastest way over all documents; `.ascending` and
  /// `.descending` go by ID. `range` is of IDs.
  public func forEachDocument(
    in range: KeyRange = .all, order: ScanOrder = .stored, _ body: (DocumentView) throws -> Bool
  ) throws {
    let sharedKeys = try DocumentStore.currentSharedKeys(transaction, context)
    try transaction.scan(context.keyspaces.docs, range, order: order, fetch: .entries) { key, value in
      let record = try DocumentRecord(value)
      return try body(DocumentView(idBytes: key, bytes: value, record: record, sharedKeys: sharedKeys))
    }
  }

  /// The same for tombstones, by ID.
  public func forEachTombstone(_ body: (DocumentView) throws -> Bool) throws {
    let sharedKeys = try DocumentStore.currentSharedKeys(transaction, context)
    try transaction.scan(context.keyspaces.deleted, .all, order: .ascending, fetch: .entries) { key, value in
      let record = try DocumentRecord(value)
      return try body(DocumentView(idBytes: key, bytes: value, record: record, sharedKeys: sharedKeys))
    }
  }
}

extension DocumentStore {
  /// The shared keys that every body of the snapshot can be read with.
  static func currentSharedKeys(_ transaction: any ReadTransaction, _ context: Context) throws -> SharedKeys {
    let needed = try State(transaction, context.keyspaces.meta).sharedKeyCount
    return needed > context.sharedKeys.count
      ? try laterSharedKeys(needed, transaction, context) : context.sharedKeys
  }
}

/// A document of a snapshot where it lies: valid inside the closure it is handed to, and not to be kept.
public struct DocumentView {
  let idBytes: UnsafeRawBufferPointer
  private let bytes: UnsafeRawBufferPointer
  let record: DocumentRecord
  private unowned(unsafe) let sharedKeys: SharedKeys

  @inline(__always)
  init(
    idBytes: UnsafeRawBufferPointer, bytes: UnsafeRawBufferPointer, record: DocumentRecord,
    sharedKeys: SharedKeys
  ) {
    self.idBytes = idBytes
    self.bytes = bytes
    self.record = record
    self.sharedKeys = sharedKeys
  }

  public var id: String { String(decoding: idBytes, as: UTF8.self) }
  public var sequence: UInt64 { record.sequence }
  public var isDeleted: Bool { record.flags.contains(.deleted) }
  public var isConflicted: Bool { record.flags.contains(.conflicted) }

  /// The body in place; nil when what is stored can't be read.
  public var body: Value? { FleeceReader.root(of: record.body) }

  /// The property of a resolved name in place, or nil.
  public subscript(key: Key) -> Value? { FleeceReader.root(of: record.body)?[key] }

  /// A document of its own, to keep.
  public func document() throws -> Document {
    try Document(id: id, record: bytes, sharedKeys: sharedKeys)
  }

  /// Appends the body as JSON; `canonical` with sorted keys.
  public func writeJSON(canonical: Bool = true, into json: inout [UInt8]) throws {
    guard let body else { throw DocumentRecord.damaged }
    try body.writeJSON(sharedKeys: sharedKeys, canonical: canonical, into: &json)
  }

  public func revisionID() throws -> RevisionID {
    let id = try record.currentRevision().id
    return RevisionID(generation: id.generation, suffix: id.suffix.text)
  }
}
