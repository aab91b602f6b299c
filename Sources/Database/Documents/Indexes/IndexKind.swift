import Fleece
import Storage

/// A kind of index. It creates indexes of that kind and opens their maintainers.
///
/// A database is opened with all the kinds that it knows (`DocumentStore.Options.indexKinds`). A database
/// that has an index of another kind can't be written to.
package protocol IndexKind: Sendable {
  /// The name that databases store for this kind: ASCII, up to 64 bytes.
  var name: String { get }

  /// Creates a new index. Its keyspaces don't exist yet. Fills it with `documents`, which are all live
  /// documents.
  ///
  /// When it throws, the transaction is rolled back.
  func create(
    _ index: IndexRecord, of documents: IndexedDocuments, in transaction: any WriteTransaction) throws

  /// Returns the maintainer, which updates the index in write transactions and verifies it. The maintainer's
  /// keyspace handles are valid until the index is removed.
  func open(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> any IndexMaintainer

  /// Returns whether the index content is what a new build would give. False if libraries that it depends on
  /// have changed. Called when a database is opened, which then rebuilds the index.
  func isCurrent(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> Bool
}

extension IndexKind {
  /// Returns true: by default an index depends only on the documents.
  package func isCurrent(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> Bool { true }
}

/// Maintains one index in every write transaction of one open database. Used on one thread at a time.
///
/// A maintainer lives as long as the writer's transactions have one lineage (`WriteTransaction.lineage`): as
/// long as nobody else commits. After a failed transaction, or a commit of another process, a new one is opened:
/// what the old one remembers may no longer be what is stored.
package protocol IndexMaintainer: AnyObject {
  /// Removes the index entries of the old body and adds those of the new body.
  func update(_ change: IndexedChange, in transaction: any WriteTransaction) throws

  /// Writes pending changes. Called before the commit of every transaction that updated the index, and before
  /// the index is read in one.
  func finish(in transaction: any WriteTransaction) throws

  /// Whether changes are in memory that `finish` writes. Readers of the index's keyspaces miss them until
  /// then.
  var hasPendingChanges: Bool { get }

  /// Compares the index with all live documents of the check's snapshot. Reports missing, superfluous and
  /// wrong entries under `subject`.
  func check(_ documents: IndexedDocuments, _ check: IntegrityCheck, subject: String) throws

  /// Recounts the statistics that a query planner uses. Called when the database is compacted.
  func refreshStatistics(in transaction: any WriteTransaction) throws
}

extension IndexMaintainer {
  /// False: by default all changes are written at once.
  package var hasPendingChanges: Bool { false }
  /// Does nothing by default.
  package func finish(in transaction: any WriteTransaction) throws {}
  /// Does nothing by default.
  package func refreshStatistics(in transaction: any WriteTransaction) throws {}
}

/// The change of one document for indexes: its live body before and after a write.
package struct IndexedChange {
  /// The document's ID in UTF-8.
  package let documentID: UnsafeRawBufferPointer
  /// The live current body before the write, nil if there was none. It is in a buffer that the writer fills
  /// again only after `update` has returned.
  package let old: UnsafeValue?
  /// The live current body after the write, nil if the document is deleted or purged. Valid until `update`
  /// returns.
  package let new: UnsafeValue?
  /// The shared keys of both bodies. They grow during a transaction. Names that had no number when they were
  /// resolved must be resolved again when `count` has changed.
  package let sharedKeys: SharedKeysBuilder

  @inline(__always)
  init(
    documentID: UnsafeRawBufferPointer, old: UnsafeRawBufferPointer?, new: UnsafeRawBufferPointer?,
    sharedKeys: SharedKeysBuilder
  ) throws {
    self.documentID = documentID
    self.old = try IndexedChange.root(old)
    self.new = try IndexedChange.root(new)
    self.sharedKeys = sharedKeys
  }

  @inline(__always)
  private static func root(_ body: UnsafeRawBufferPointer?) throws -> UnsafeValue? {
    guard let body else { return nil }
    guard let root = FleeceReader.root(of: body) else { throw DocumentRecord.damaged }
    return root
  }
}

/// The live documents of a transaction, for indexes.
package struct IndexedDocuments {
  private let transaction: any ReadTransaction
  private let keyspace: Keyspace
  /// The shared keys of all bodies.
  package let sharedKeys: SharedKeys

  init(_ transaction: any ReadTransaction, _ keyspace: Keyspace, _ sharedKeys: SharedKeys) {
    self.transaction = transaction
    self.keyspace = keyspace
    self.sharedKeys = sharedKeys
  }

  /// The number of live documents. Constant time.
  package var count: Int { get throws { try transaction.count(of: keyspace) } }

  /// Calls `body` with the ID and the body of each document until it returns false. Both are valid until
  /// `body` returns. Nothing can be written during the call. The order `.stored` is the fastest. `range` is a
  /// range of IDs.
  package func forEach(
    in range: KeyRange = .all, order: ScanOrder = .stored,
    _ body: (_ documentID: RawSpan, _ body: Value) throws -> Bool
  ) throws {
    try transaction.scan(keyspace, range, order: order, fetch: .entries) { key, value in
      let record = try DocumentRecord(value)
      guard let root = Value(rootOf: record.body) else { throw DocumentRecord.damaged }
      return try body(key, root)
    }
  }

  /// Lends the body of a document. Returns nil without calling `body` if there is no live document.
  package func withBody<Result>(of documentID: RawSpan, _ body: (Value) throws -> Result) throws -> Result? {
    try transaction.withValue(at: documentID, in: keyspace) { value in
      let record = try DocumentRecord(value)
      guard let root = Value(rootOf: record.body) else { throw DocumentRecord.damaged }
      return try body(root)
    }
  }
}
