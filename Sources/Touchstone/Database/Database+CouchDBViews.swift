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
