import Fleece
import Storage

/// A kind of index: it makes what keeps the indexes of that kind.
///
/// A database is opened with all the kinds it knows (`DocumentStore.Options.indexKinds`); one that has an index of
/// another kind can't be written to.
public protocol IndexKind: Sendable {
  /// The name under which databases remember it: ASCII, up to 64 bytes.
  var name: String { get }

  /// Makes a new index in its keyspaces, which aren't there yet, and fills it with `documents`, all live ones.
  ///
  /// When it throws, nothing of the transaction remains.
  func create(
    _ index: IndexRecord, of documents: IndexedDocuments, in transaction: any WriteTransaction) throws

  /// What keeps the index in write transactions, and proves it. Its keyspaces are handles that hold until the index
  /// is removed.
  func open(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> any IndexMaintainer

  /// Whether the index holds what it would if it were made now: false when libraries that it depends on have changed.
  /// Asked when a database is opened, which then makes it anew.
  func isCurrent(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> Bool
}

extension IndexKind {
  /// Depends on nothing but the documents.
  public func isCurrent(_ index: IndexRecord, in transaction: any ReadTransaction) throws -> Bool { true }
}

/// Keeps one index, in every write transaction of one open database. One thread at a time.
///
/// After a transaction that failed it is made anew: what it remembers is as of the last commit.
public protocol IndexMaintainer: AnyObject {
  /// Takes out what the old body gave and puts in what the new one gives.
  func update(_ change: IndexedChange, in transaction: any WriteTransaction) throws

  /// Called before the commit of every transaction in which it was updated, and before it is read in one.
  func finish(in transaction: any WriteTransaction) throws

  /// Whether it keeps something in memory that `finish` writes, and that readers of its keyspaces miss until then.
  var hasPendingChanges: Bool { get }

  /// Compares the index with all live documents of the check's snapshot, and reports under `subject` what is missing,
  /// superfluous or wrong.
  func check(_ documents: IndexedDocuments, _ check: IntegrityCheck, subject: String) throws

  /// Counts anew what a planner goes by. Called when the database is compacted.
  func refreshStatistics(in transaction: any WriteTransaction) throws
}

extension IndexMaintainer {
  /// Writes everything at once.
  public var hasPendingChanges: Bool { false }
  /// Owes nothing.
  public func finish(in transaction: any WriteTransaction) throws {}
  /// Counts nothing.
  public func refreshStatistics(in transaction: any WriteTransaction) throws {}
}

/// What a write makes of one document, as indexes see it: the live body before and after.
public struct IndexedChange {
  /// The document's ID: UTF-8.
  public let documentID: UnsafeRawBufferPointer
  /// The body that was current and live, nil when there was none. It lies in a buffer of the writer, which fills it again
  /// only after `update` has returned.
  public let old: UnsafeValue?
  /// The body that is, nil when the document is deleted or gone. As `old`, it is valid until `update` returns.
  public let new: UnsafeValue?
  /// The names that both bodies are read with. They grow within a transaction: whoever has resolved names that had
  /// no number yet has to resolve them anew when `count` has changed.
  public let sharedKeys: SharedKeysBuilder

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

/// The live documents of a transaction, as indexes see them.
public struct IndexedDocuments {
  private let transaction: any ReadTransaction
  private let keyspace: Keyspace
  /// The names that all bodies are read with.
  public let sharedKeys: SharedKeys

  init(_ transaction: any ReadTransaction, _ keyspace: Keyspace, _ sharedKeys: SharedKeys) {
    self.transaction = transaction
    self.keyspace = keyspace
    self.sharedKeys = sharedKeys
  }

  /// How many there are. Constant time.
  public var count: Int { get throws { try transaction.count(of: keyspace) } }

  /// Calls `body` with each document's ID and body until it returns false; what it is handed ends when it returns.
  /// Nothing can be written meanwhile. `.stored` is fastest; `range` is of IDs.
  public func forEach(
    in range: KeyRange = .all, order: ScanOrder = .stored,
    _ body: (_ documentID: RawSpan, _ body: Value) throws -> Bool
  ) throws {
    try transaction.scan(keyspace, range, order: order, fetch: .entries) { key, value in
      let record = try DocumentRecord(value)
      guard let root = Value(rootOf: record.body) else { throw DocumentRecord.damaged }
      return try body(key, root)
    }
  }

  /// Lends the body of a document; nil, and `body` isn't called, when there is no live document.
  public func withBody<Result>(of documentID: RawSpan, _ body: (Value) throws -> Result) throws -> Result? {
    try transaction.withValue(at: documentID, in: keyspace) { value in
      let record = try DocumentRecord(value)
      guard let root = Value(rootOf: record.body) else { throw DocumentRecord.damaged }
      return try body(root)
    }
  }
}
