import Bytes
import Documents
import Fleece
import FullText
import Storage

/// A named map/reduce view of a database: an index that the app's functions define (docs/views.md).
///
/// ```swift
/// let byType = try database.view("byType")
/// try byType.setMap(version: "1") { document, emit in emit(document["type"], document["name"]) }
/// byType.setReduce(.count)
/// var query = byType.query()
/// query.groupLevel = 1
/// for row in try query.run() { print(row.key, row.value) }
/// ```
///
/// The rows are stored in the database. The functions aren't: set them again after each launch, with the same version as
/// long as they are the same. All `View`s of one name of an open database are the same view. Used from any thread.
public final class View: Sendable {
  /// The view's name, unique in the database. The views whose names have the same part before the first `/` are brought
  /// up to date together.
  public let name: String
  package let indexes: ViewIndexes

  package init(_ name: String, _ indexes: ViewIndexes) throws {
    try ViewName.check(name)
    self.name = name
    self.indexes = indexes
  }

  // MARK: Functions

  /// Sets the map function. Returns whether the view changed: it had none in this process, or the version, the collation,
  /// the document type or the language is another one.
  ///
  /// - Parameters:
  ///   - version: names the function. Change it whenever the function changes: rows of another version are dropped, and
  ///     built again at the next query.
  ///   - collation: the order of the keys.
  ///   - documentType: if set, only documents with this text in their property `type` are mapped.
  ///   - language: that of the texts which the function emits as a `TextKey`. Nil: words aren't reduced to their stems.
  ///   - map: the function. See `ViewMap` for what it must not do.
  @discardableResult
  public func setMap(
    version: String, collation: ViewCollation = .unicode, documentType: String? = nil,
    language: FullTextLanguage? = nil, _ map: @escaping ViewMap
  ) throws -> Bool {
    let definition = ViewDefinition(
      map: map, mapVersion: Array(version.utf8), collation: collation,
      documentType: documentType.map { Array($0.utf8) },
      language: language)
    let isNew = indexes.registered(name).state.withLock { state in
      let old = state.definition
      state.definition = definition
      return old?.mapVersion != definition.mapVersion || old?.collation != collation
        || old?.documentType != definition.documentType || old?.language != definition.language
    }
    if isNew { indexes.redefined(name) }
    return isNew
  }

  /// Sets what the view is reduced with, or nil. The rows aren't concerned.
  public func setReduce(_ reduce: ViewReduce?) {
    indexes.registered(name).state.withLock { $0.reduce = reduce }
    indexes.redefined(name)
  }

  /// Whether the view has a map function: one of this process, or one of a design document.
  public var hasMap: Bool { get throws { try indexes.hasMap(name) } }

  /// What the view is reduced with.
  public var reduce: ViewReduce? { get throws { try indexes.reduce(of: name) } }

  // MARK: The index

  /// Brings the view up to date, and the others of its group. Returns what was done: nothing if no document has changed.
  @discardableResult
  public func updateIndex() throws -> ViewUpdate { try indexes.update(name) }

  /// What the last update of this process that mapped any document did, with the documents that the map function failed
  /// on.
  public var lastUpdate: ViewUpdate { indexes.known(name)?.lastUpdate ?? ViewUpdate() }

  /// The sequence up to which documents are in the rows, 0 if the view was never indexed.
  public var lastSequenceIndexed: UInt64 {
    get throws { try record { $0?.stage == .whole ? $0?.lastSequence ?? 0 : 0 } }
  }

  /// The sequence of the last update that changed rows, 0 if the view was never indexed.
  public var lastSequenceChangedAt: UInt64 {
    get throws { try record { $0?.stage == .whole ? $0?.changedAt ?? 0 : 0 } }
  }

  /// Whether documents have changed since the view was brought up to date.
  public var isStale: Bool {
    get throws {
      try indexes.store.read { snapshot in
        guard let record = try ViewRecord.read(name, in: snapshot.storage), record.stage == .whole else {
          return true
        }
        return try record.lastSequence < snapshot.lastSequence || record.purge < snapshot.newestPurge
      }
    }
  }

  /// The number of rows, 0 if the view was never indexed.
  public var totalRows: Int {
    get throws {
      try indexes.store.read { snapshot in
        try ViewReader(self, nil, snapshot)?.rowCount() ?? 0
      }
    }
  }

  private func record<Result>(_ body: (ViewRecord?) -> Result) throws -> Result {
    try indexes.store.read { body(try ViewRecord.read(name, in: $0.storage)) }
  }

  /// Drops the stored rows. The next query builds them again.
  public func deleteIndex() throws {
    try indexes.store.writingDerived { transaction in
      guard var record = try ViewRecord.read(name, in: transaction) else { return }
      try record.dropKeyspaces(in: transaction)
      record.reset()
      try record.write(name, in: transaction)
    }
  }

  /// Drops the stored rows and forgets the view with its functions.
  public func delete() throws {
    try indexes.store.writingDerived { _ = try ViewRecord.delete(name, in: $0) }
    indexes.forget(name)
    indexes.redefined(name)
  }

  // MARK: Queries

  /// A query of all rows, which has options to set.
  public func query() -> ViewQuery { ViewQuery(self) }
}
