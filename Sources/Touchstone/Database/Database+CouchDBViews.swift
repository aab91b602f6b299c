import Fleece
import Views

extension Database {
  /// Returns a view with CouchDB's options and answers: one of a design document, or one of this process with the name
  /// `design/name`. Throws a `CouchDBError` if there is none.
  package func couchDBView(_ design: String, _ name: String) throws -> CouchDBView {
    try CouchDBView(design, name, in: open.views)
  }

  /// Throws the `CouchDBError` with which CouchDB refuses to store a design document.
  package func checkDesign(_ body: JSONObject) throws { try open.views.checkDesign(body) }
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

  /// Lets the validation functions of all design documents look at a change before it is stored. See
  /// `ViewIndexes.validate`.
  package func validate(
    _ new: ScriptedRevision, replacing old: ScriptedRevision?, by user: ValidationUser
  ) throws {
    try open.views.validate(new, replacing: old, by: user)
  }
}
