import HTTP
import Views

extension DatabaseCall {
  /// The answer to `_find`, `_explain` and `_index`: selectors aren't understood yet. What is wrong with the request otherwise is told as
  /// CouchDB does.
  func refuseMango() throws -> HTTPAnswer {
    if method == "POST" { try checkContentType() }
    throw CouchDBError.notImplemented
  }
}
