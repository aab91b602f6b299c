import Documents
import Fleece
import Logs
import Views

/// A view of a design document that isn't stored. It is dropped with the last reference.
package final class TemporaryCouchDBView: Sendable {
  private let name: String
  private let indexes: ViewIndexes
  /// The view.
  package let view: CouchDBView

  /// The name of its one view.
  package static let viewName = "temporary"

  fileprivate init(_ name: String, _ indexes: ViewIndexes) throws {
    self.name = name
    self.indexes = indexes
    do { view = try CouchDBView(name, Self.viewName, in: indexes) } catch {
      try? indexes.removeTemporaryDesign(name)
      throw error
    }
  }

  deinit {
    do { try indexes.removeTemporaryDesign(name) } catch {
      Log.write(
        .warning, .index, indexes.store.logPath, "a temporary view can't be dropped: \(LogText.of(error))")
    }
  }
}

extension Database {
  /// Returns a view with CouchDB's options and answers: one of a design document, or one of this process with the name
  /// `design/name`. Throws a `CouchDBError` if there is none.
  package func couchDBView(_ design: String, _ name: String) throws -> CouchDBView {
    try CouchDBView(design, name, in: open.views)
  }

  /// Returns a view of a design document that isn't stored. Its rows are in the database until it is dropped.
  package func temporaryCouchDBView(_ design: JSONObject) throws -> TemporaryCouchDBView {
    let name = "temporary." + DocumentID.random()
    try open.views.addTemporaryDesign(name, design)
    return try TemporaryCouchDBView(name, open.views)
  }

  /// What CouchDB tells of the views of a design document; nil if there is no such document.
  package func designInformation(_ design: String) throws -> DesignInformation? {
    try open.views.information(ofDesign: design)
  }

  /// Removes the rows of views that belong to no design document any more.
  package func removeUnusedViews() throws { try open.views.removeUnused() }

  /// Throws the `CouchDBError` with which CouchDB refuses to store a design document. `name` is what follows `_design/` in its ID.
  package func checkDesign(_ name: String, _ body: JSONObject) throws {
    try open.views.checkDesign(name, body)
  }
}

extension Database {
  /// Returns the filter `DESIGN/NAME` of a design document. Throws a `ViewError` if there is no such design document.
  package func designFilter(_ name: String) throws -> DesignFilter { try DesignFilter(name, in: open.views) }

  /// Returns the view `DESIGN/NAME` as a filter of the documents that its map emits for. Throws a `ViewError` if there is no
  /// such design document.
  package func designFilter(view name: String) throws -> DesignFilter {
    try DesignFilter(view: name, in: open.views)
  }

  /// Returns for each document whether a filter chooses its current revision, which may be a tombstone; false for one that
  /// isn't there. `request` is the filter's second argument.
  package func choose(
    documents ids: [String], with filter: DesignFilter, request: JSONObject = ["query": [:]]
  ) throws -> [Bool] {
    try open.store.read { try filter.choose(documents: ids, in: $0, request: request) }
  }

  /// Whether a design document has a validation function.
  package var hasDesignValidations: Bool { get throws { try open.views.validatesChanges } }

  /// Lets the validation functions of all design documents look at a change before it is stored. See
  /// `ViewIndexes.validate`.
  package func validate(
    _ new: ScriptedRevision, replacing old: ScriptedRevision?, by user: ValidationUser
  ) throws {
    try open.views.validate(new, replacing: old, by: user)
  }
}

extension Database {
  /// The indexes of CouchDB's `_find`, with the list of all documents.
  package func mangoIndexes() throws -> [MangoIndex] { try open.views.mangoIndexes() }

  /// How a query of CouchDB's `_find` finds its documents. Who knows whether the database has partitions says so: that saves a read. Throws a
  /// `CouchDBError` if nothing can find them; with `explains`, that is a plan, too.
  package func mangoPlan(
    _ query: MangoQuery, inPartitionedDatabase: Bool? = nil, explains: Bool = false
  ) throws -> MangoPlan {
    try open.views.mangoPlan(query, inPartitionedDatabase: inPartitionedDatabase, explains: explains)
  }

  /// Reads the documents that a query of CouchDB's `_find` chooses.
  package func mangoReader(_ plan: MangoPlan) throws -> MangoReader { try MangoReader(plan, open.views) }
}
