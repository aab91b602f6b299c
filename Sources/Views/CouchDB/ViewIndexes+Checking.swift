import Fleece
import Scripts

extension ViewIndexes {
  /// Throws the `CouchDBError` with which CouchDB refuses to store a design document: `compilation_error` or
  /// `invalid_design_doc`. One in a language that isn't known is accepted.
  package func checkDesign(_ body: JSONObject) throws {
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
