import Bytes
import Views

extension DatabaseCall {
  /// The answer to what reads many documents: `_all_docs`, `_design_docs`, `_local_docs`, `_changes`, views, `_query`. Nil for anything
  /// else.
  func readingAnswer() throws -> APIAnswer? {
    switch (segment(0), path.count) {
    case ("_all_docs", 1): return try list(.documents(.all))
    case ("_design_docs", 1): return try list(.documents(.design))
    case ("_local_docs", 1): return try list(.local)
    case ("_all_docs", 2) where isQueries(1): return try list(.documents(.all))
    case ("_design_docs", 2) where isQueries(1): return try list(.documents(.design))
    case ("_local_docs", 2) where isQueries(1): return try list(.local)
    case ("_changes", 1): return try changes()
    case ("_temp_view", 1): return try temporaryView()
    case ("_view_cleanup", 1): return try cleanViews()
    case ("_query", 1): return try runQuery()
    case ("_find", _), ("_explain", _): return try refuseMango(["POST"])
    case ("_index", _): return try refuseMango(["GET", "POST", "DELETE"])
    default: break
    }
    return try designPath.map { try designAnswer($0.name, $0.rest) } ?? nil
  }

  private func isQueries(_ index: Int) -> Bool { path[index] == ByteString("queries") }

  /// The name of a design document and what follows it, if the path has more than that document. `_design%2Fx` is `_design/x`.
  private var designPath: (name: String, rest: [String])? {
    guard let first = segment(0) else { return nil }
    if first.hasSameBytes(as: "_design") {
      return path.count > 2 ? (path[1].string, path.dropFirst(2).map(\.string)) : nil
    }
    let prefix = "_design/"
    guard first.utf8.starts(with: prefix.utf8), path.count > 1 else { return nil }
    return (
      String(decoding: first.utf8.dropFirst(prefix.utf8.count), as: UTF8.self), path.dropFirst().map(\.string)
    )
  }

  /// The answer to what belongs to a design document but isn't an attachment of it.
  private func designAnswer(_ design: String, _ rest: [String]) throws -> APIAnswer? {
    switch (rest.first, rest.count) {
    case ("_view", 1):
      throw MethodNotAllowed(["GET", "POST", "HEAD"])
    case ("_view", 2): return try view(design, rest[1])
    case ("_view", 3) where rest[2].hasSameBytes(as: "queries"): return try viewQueries(design, rest[1])
    case ("_info", 1): return try designInformation(design)
    case ("_show", _), ("_list", _), ("_update", _), ("_rewrite", _), ("_search", _), ("_search_info", _),
      ("_search_disk_size", _), ("_nouveau", _), ("_nouveau_info", _):
      throw CouchDBError.notImplemented
    default: return nil
    }
  }

  /// Selectors aren't understood yet. What is wrong with the request otherwise is told as CouchDB does.
  private func refuseMango(_ methods: [String]) throws -> APIAnswer {
    guard method.isAllowed(methods) || path.count > 1 else { throw MethodNotAllowed(methods) }
    if method == "POST" { try checkContentType() }
    throw CouchDBError.notImplemented
  }
}
