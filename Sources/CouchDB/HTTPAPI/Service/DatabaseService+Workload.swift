import Bytes
import HTTP

extension DatabaseService {
  /// What a request takes of the server, by its method and target. A request that comes to nothing counts like one that doesn't.
  package static func workload(_ method: String, _ target: HTTPTarget) -> HTTPWorkload {
    if method == "OPTIONS" { return .reading }
    let single: HTTPWorkload = method == "GET" || method == "HEAD" ? .reading : .writing
    guard let path = target.segments?.filter({ !$0.bytes.isEmpty }).map(\.string) else { return .reading }
    guard path.count > 1 else {
      // To make or to delete a database waits for those who use it.
      return path.count == 1 && (method == "PUT" || method == "DELETE") ? .long : single
    }
    // A password may be hashed.
    if single == .writing, path[0] == UserDocument.database { return .long }
    var rest = path.dropFirst()
    switch path[1] {
    case "_query", "_indexes": return .computing
    case "_temp_view": return .indexing
    case "_all_docs", "_design_docs", "_local_docs", "_bulk_docs", "_bulk_get", "_revs_diff", "_missing_revs",
      "_purge", "_compact", "_view_cleanup":
      return .long
    case "_changes": return target.mentions("filter") ? .computing : .long
    case "_design", "_local": rest = rest.dropFirst()
    default: break
    }
    guard rest.count > 1 else {
      return target.mentions("attachments") || target.mentions("open_revs") ? .long : single
    }
    // A view, or an attachment.
    return rest.dropFirst().first == "_view" ? .indexing : .long
  }
}

extension HTTPTarget {
  /// Whether a word occurs in the query.
  fileprivate func mentions(_ word: StaticString) -> Bool {
    guard let query = rawQuery else { return false }
    return word.withUTF8Buffer { query.firstRange(of: $0) != nil }
  }
}
