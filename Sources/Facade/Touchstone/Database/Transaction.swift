import Documents
import Fleece
import FoundationEssentials
import FullText
import Query
import Storage

/// A write transaction of a database, all or nothing. `Database.write` hands it to a closure.
///
/// ```swift
/// let count = try await notes.write { transaction in
///   try transaction.save("note_1", ["text": "Buy groceries"])
///   try transaction.delete("note_0")
///   return try transaction.read { try $0.documentCount }
/// }
/// ```
///
/// Each call sees the writes before it. The compiler keeps a transaction inside its closure: it can't be
/// copied or stored. Use it on the thread that runs the closure; on another thread its calls throw
/// `StorageError.invalidArgument`. In the transaction of a cancelled task they throw `CancellationError`.
///
/// A call that throws has changed nothing, and the transaction goes on if the closure catches the error.
public struct Transaction: ~Copyable {
  private let database: Database
  private let cancellation: JobCancellation?

  init(_ database: Database, _ cancellation: JobCancellation?) {
    self.database = database
    self.cancellation = cancellation
  }

  /// The database, whose calls on this thread join the transaction. Throws if the task was cancelled or this
  /// is another thread.
  private var joined: Database {
    get throws {
      try cancellation?.check()
      guard try database.store.isInBatch else {
        throw StorageError(
          .invalidArgument, "a transaction was used on another thread than the one that runs it",
          path: database.path)
      }
      return database
    }
  }

  // MARK: Reading

  /// Returns the live document with that ID, or nil. With `includeDeleted`, it also returns a tombstone.
  public func document(_ id: String, includeDeleted: Bool = false) throws -> Document? {
    try joined.document(id, includeDeleted: includeDeleted)
  }

  /// Runs `body` on the state of the transaction: the snapshot also shows writes made while it is used. A
  /// write during one of its scans throws `writeInScan`.
  public func read<Result>(_ body: (DocumentSnapshot) throws -> Result) throws -> Result {
    try joined.read(body)
  }

  /// Prepares a query (`Database.query(_:options:)`).
  public func query(_ text: String, options: Query.Options? = nil) throws -> Query {
    try joined.query(text, options: options)
  }

  /// Runs a query of this database. Its rows show the writes of the transaction.
  public func run(_ query: Query, _ parameters: [String: JSONValue] = [:]) throws -> QueryResults {
    _ = try joined
    return try query.run(parameters)
  }

  /// Runs a query of this database with parameters of any type that has a JSON form.
  @_disfavoredOverload
  public func run(_ query: Query, _ parameters: [String: any JSONConvertible]) throws -> QueryResults {
    try run(query, parameters.jsonValues)
  }

  /// Runs a query of this database and decodes each row (`QueryRow.decode(_:)`). The rows show the writes of the
  /// transaction.
  public func run<Row: Decodable>(
    _ query: Query, as type: Row.Type, _ parameters: [String: JSONValue] = [:]
  ) throws -> [Row] {
    _ = try joined
    return try query.run(as: type, parameters)
  }

  /// Runs a query of this database with parameters of any type that has a JSON form, and decodes each row.
  @_disfavoredOverload
  public func run<Row: Decodable>(
    _ query: Query, as type: Row.Type, _ parameters: [String: any JSONConvertible]
  ) throws -> [Row] {
    try run(query, as: type, parameters.jsonValues)
  }

  /// Runs a statement that changes documents (`Database.execute`). It sees the writes of the transaction, and
  /// is a part of it.
  @discardableResult
  public func execute(
    _ statement: String, _ parameters: [String: JSONValue] = [:], options: Query.Options? = nil
  ) throws -> ChangeResults {
    try joined.execute(statement, parameters, options: options)
  }

  /// Returns the local document with that ID, or nil.
  public func localDocument(_ id: String) throws -> LocalDocument? { try joined.localDocument(id) }

  // MARK: Saving

  /// Saves the document as a new revision (`Database.save(_:onConflict:)`). If the transaction is rolled back,
  /// `document` is based on its earlier revision again.
  @discardableResult
  public func save(_ document: inout MutableDocument, onConflict control: ConcurrencyControl = .lastWriteWins)
    throws -> SavedRevision
  {
    try joined.save(&document, onConflict: control)
  }

  /// Saves the document, and lets `conflictHandler` decide on a conflict (`Database.save(_:conflictHandler:)`).
  /// The handler runs inside the transaction.
  @discardableResult
  public func save(
    _ document: inout MutableDocument, conflictHandler: (inout MutableDocument, Document?) throws -> Bool
  ) throws -> SavedRevision? {
    try joined.save(&document, conflictHandler: conflictHandler)
  }

  /// Saves a body as a new revision of a document (`Database.save(_:_:basedOn:onConflict:)`).
  @discardableResult
  public func save(
    _ id: String, _ body: DocumentBody, basedOn revision: RevisionID? = nil,
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try joined.save(id, body, basedOn: revision, onConflict: control)
  }

  /// Reads a document, applies `change`, and saves it. If there is no live document, it throws `notFound`, or
  /// with `creating` starts from an empty one.
  @discardableResult
  public func update(
    _ id: String, creating: Bool = false, _ change: (inout MutableDocument) throws -> Void
  ) throws -> SavedRevision {
    try joined.update(id, attempts: 1, creating: creating, change)
  }

  /// Saves a local document (`Database.saveLocalDocument(_:_:basedOn:onConflict:)`).
  @discardableResult
  public func saveLocalDocument(
    _ id: String, _ body: JSONValue, basedOn generation: UInt64? = nil,
    onConflict control: ConcurrencyControl = .fail
  ) throws -> LocalDocument {
    try joined.saveLocalDocument(id, body, basedOn: generation, onConflict: control)
  }

  /// Sets when the document expires; nil for never (`Database.setExpiration(of:at:)`).
  public func setExpiration(of id: String, at date: Date?) throws {
    try joined.setExpiration(of: id, at: date)
  }

  // MARK: Deleting

  /// Deletes the document (`Database.delete(_:basedOn:keeping:onConflict:)`).
  @discardableResult
  public func delete(
    _ id: String, basedOn revision: RevisionID? = nil, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try joined.delete(id, basedOn: revision, keeping: body, onConflict: control)
  }

  /// Deletes a document that was read before. Nil if the last write wins and it has been deleted since.
  @discardableResult
  public func delete(
    _ document: Document, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    try joined.delete(document, keeping: body, onConflict: control)
  }

  /// Deletes a document that was read to be changed. Throws `notFound` if it was never saved.
  @discardableResult
  public func delete(
    _ document: inout MutableDocument, keeping body: DocumentBody = [:],
    onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    try joined.delete(&document, keeping: body, onConflict: control)
  }

  /// Removes a local document (`Database.deleteLocalDocument(_:basedOn:onConflict:)`).
  public func deleteLocalDocument(
    _ id: String, basedOn generation: UInt64? = nil, onConflict control: ConcurrencyControl = .fail
  ) throws {
    try joined.deleteLocalDocument(id, basedOn: generation, onConflict: control)
  }

  /// Removes the document with all its revisions, without a tombstone. Throws `notFound` if there is none.
  public func purge(_ id: String) throws { try joined.purge(id) }

  /// Removes one branch (`Database.purge(_:branch:)`).
  @discardableResult
  public func purge(_ id: String, branch leaf: RevisionID) throws -> [RevisionID] {
    try joined.purge(id, branch: leaf)
  }

  // MARK: Indexes

  /// Makes a value index (`Database.createIndex(_:on:where:)`).
  @discardableResult
  public func createIndex(_ name: String, on expressions: [String], where condition: String? = nil) throws
    -> Bool
  {
    try joined.createIndex(name, on: expressions, where: condition)
  }

  /// Makes an index of the items of arrays (`Database.createIndex(_:unnest:on:where:)`).
  @discardableResult
  public func createIndex(
    _ name: String, unnest array: String, on expressions: [String] = [], where condition: String? = nil
  ) throws -> Bool {
    try joined.createIndex(name, unnest: array, on: expressions, where: condition)
  }

  /// Makes a full-text index (`Database.createFullTextIndex(_:on:where:options:weights:)`).
  @discardableResult
  public func createFullTextIndex(
    _ name: String, on expressions: [String], where condition: String? = nil,
    options: TextAnalysisOptions = TextAnalysisOptions(), weights: [Double]? = nil
  ) throws -> Bool {
    try joined.createFullTextIndex(
      name, on: expressions, where: condition, options: options, weights: weights)
  }

  /// Removes an index. Returns false if there is none of that name.
  @discardableResult
  public func deleteIndex(_ name: String) throws -> Bool { try joined.deleteIndex(name) }

  // MARK: Models

  /// Saves the model as a new revision of its document (`Database.save(_:onConflict:)`). If the transaction is
  /// rolled back, `model` is based on its earlier revision again.
  @discardableResult
  public func save<Model: DocumentModel>(
    _ model: inout Model, onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision {
    try joined.save(&model, onConflict: control)
  }

  /// Returns the live document with that ID as a model, or nil.
  public func get<Model: DocumentModel>(_ type: Model.Type = Model.self, _ id: String) throws -> Model? {
    try joined.get(type, id)
  }

  /// Reads a model, applies `change`, and saves it. Throws `notFound` if there is no live document.
  @discardableResult
  public func update<Model: DocumentModel>(
    _ type: Model.Type = Model.self, _ id: String, _ change: (inout Model) throws -> Void
  ) throws -> Model {
    try joined.update(type, id, attempts: 1, change)
  }

  /// Deletes the model's document (`Database.delete(_:onConflict:)`).
  @discardableResult
  public func delete<Model: DocumentModel>(
    _ model: inout Model, onConflict control: ConcurrencyControl = .lastWriteWins
  ) throws -> SavedRevision? {
    try joined.delete(&model, onConflict: control)
  }

  /// Returns the selected documents as models.
  public func all<Model: DocumentModel>(
    _ type: Model.Type = Model.self, _ documents: AllDocuments = AllDocuments()
  ) throws -> [Model] {
    try joined.all(type, documents)
  }

  // MARK: Revisions of other databases

  /// Inserts a revision from another database (`Database.apply(_:)`).
  @discardableResult
  public func apply(_ revision: PulledRevision) throws -> Bool { try joined.apply(revision) }

  /// Resolves a conflict (`Database.resolveConflict(of:keeping:merged:)`).
  public func resolveConflict(
    of id: String, keeping revision: RevisionID, merged body: DocumentBody? = nil
  ) throws {
    try joined.resolveConflict(of: id, keeping: revision, merged: body)
  }
}
