import Fleece
import Scripts

extension ViewIndexes {
  /// The number of views that a design document may have: each takes three keyspaces of the database.
  static let maximumViews = 300

  /// Throws the `CouchDBError` with which CouchDB refuses to store a design document: `compilation_error` or
  /// `invalid_design_doc`. One in a language that isn't known is accepted.
  ///
  /// `name` is what follows `_design/` in its ID.
  package func checkDesign(_ name: String, _ body: JSONObject) throws {
    try DesignMembers.check(body)
    if body["options"]?.object?["partitioned"]?.bool ?? false, try !store.isPartitioned() {
      throw CouchDBError(
        400, "invalid_design_doc", "partitioned option cannot be true in a non-partitioned database.")
    }
    let views = body["views"]?.object ?? [:]
    guard views.count <= ViewIndexes.maximumViews else {
      throw CouchDBError(
        400, "invalid_design_doc",
        "The design document has \(views.count) views, and at most \(ViewIndexes.maximumViews) are possible")
    }
    for (view, _) in views {
      do { try ViewName.check(ViewName.joined(name, view)) } catch let error as ViewError {
        throw CouchDBError(400, "invalid_design_doc", error.description)
      }
    }
    let language = body["language"]?.string ?? "javascript"
    guard let known = languages.first(where: { $0.name == language }) else { return }
    do {
      try known.open(designDocument: JSONValue.object(body).jsonText()).close()
    } catch let error as ScriptError {
      switch error.code {
      case .compilation: throw CouchDBError(400, "compilation_error", error.message)
      case .invalidDefinition: throw CouchDBError(400, "invalid_design_doc", error.message)
      default: throw CouchDBError(500, "os_process_error", error.message)
      }
    }
  }
}
