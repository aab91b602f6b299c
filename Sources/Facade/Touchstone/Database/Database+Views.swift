import Documents
import Views

extension Database {
  // MARK: Map/reduce views

  /// Returns the view of that name, which may have no functions yet (docs/views.md).
  ///
  /// ```swift
  /// let byType = try travel.view("byType")
  /// try byType.setMap(version: "1") { document, emit in emit(document["type"]) }
  /// for row in try byType.query().run() { print(row.key, row.documentID ?? "") }
  /// ```
  ///
  /// A view `design/name` without functions of this process is that of the design document `_design/design`, if there is
  /// one. Throws a `ViewError` for a name that can't be.
  public func view(_ name: String) throws -> View { try View(name, open.views) }

  /// The names of the views that have rows in the database or functions in this process, and of those of design documents,
  /// ordered by their bytes.
  public var viewNames: [String] { get throws { try open.views.names() } }
}
