import Bytes
import Fleece
import HTTP
import Views

// Documents of `_replicator` have names and passwords for other servers. Where users log in, only the one who has written a document
// (its `owner`) sees them:
//
//   https://me:secret@host/db    is shown as https://host/db
//   auth, headers                are left out
//
// What could show a document in another form, such as a query or a view, is refused in this database.

extension DatabaseCall {
  /// Whether the database has secrets that not everybody may see who is let in.
  var hasSecrets: Bool {
    service.configuration.hasUsers && name.hasSameBytes(as: ReplicatorDocument.database)
  }

  /// Throws 403 for what could show secrets in a form that isn't known here.
  func checkSecrets() throws {
    func refuse(_ what: String) -> CouchDBError {
      CouchDBError(403, "forbidden", "\(what) of \(name) could show passwords of others")
    }
    switch segment(0) {
    case "_query", "_temp_view": throw refuse("a query")
    // A bookmark has values of the index, and what is found tells about what isn't shown.
    case "_find", "_explain": throw refuse("a selector")
    case "_index" where method != "GET": throw refuse("an index")
    case "_changes":
      let names = ["_doc_ids", "_design"]
      if let filter = query["filter"], !names.contains(where: { filter.hasSameBytes(as: $0) }) {
        throw refuse("a filter")
      }
      if query["feed"] ?? "normal" != "normal", query["include_docs"] ?? "false" != "false" {
        throw refuse("a feed with documents")
      }
    case "_design"? where path.count > 2 && segment(2) != "_info": throw refuse("a view")
    case let first? where first.hasPrefix("_design/") && path.count > 1: throw refuse("a view")
    default: break
    }
  }

  /// The answer without the secrets of documents that others have written.
  func withoutSecrets(_ answer: HTTPAnswer) throws -> HTTPAnswer {
    let type = answer.headers.first { $0.isNamed("Content-Type") }?.value ?? ""
    if type.hasPrefix("multipart/"), path.count == 1 {
      throw CouchDBError(406, "not_acceptable", "documents of \(name) are shown as JSON only")
    }
    guard type.hasPrefix("application/json"), path.count == 1 || path.first == ByteString("_local") else {
      return answer
    }
    var answer = answer
    let user = request.context.ownName
    switch answer.body {
    case .stream: break
    case .bytes(let bytes): answer.body = .bytes(try ReplicatorSecrets.without(bytes, shownTo: user))
    case .other:
      guard let written = answer.body.written else { break }
      answer.body = .written { output in
        let gathered = GatheredBody()
        let inner = AnswerOutput { gathered }
        try written.write(inner)
        let rest = try inner.finish() ?? []
        output.append(try ReplicatorSecrets.without(gathered.bytes + rest, shownTo: user))
      }
    }
    return answer
  }
}

/// Takes secrets out of answers.
enum ReplicatorSecrets {
  private static let members: Set<String> = ["auth", "headers"]

  /// The text of an answer without the secrets of documents with another owner.
  static func without(_ text: [UInt8], shownTo user: String?) throws -> [UInt8] {
    guard !text.isEmpty else { return text }
    return try without(JSONValue(body: text), shownTo: user).jsonText() + [UInt8(ascii: "\n")]
  }

  static func without(_ value: JSONValue, shownTo user: String?) -> JSONValue {
    switch value {
    case .object(let object):
      if let user, let owner = object[ReplicatorDocument.owner]?.string, owner.hasSameBytes(as: user) {
        return value
      }
      var rest = JSONObject()
      for (name, member) in object where !members.contains(name) {
        rest[name] = without(member, shownTo: user)
      }
      return .object(rest)
    case .array(let items): return .array(items.map { without($0, shownTo: user) })
    case .string(let text): return .string(withoutLogin(text))
    default: return value
    }
  }

  /// A URL without the name and the password before its host.
  private static func withoutLogin(_ text: String) -> String {
    guard let scheme = text.utf8.firstRange(of: "://".utf8) else { return text }
    let rest = text[scheme.upperBound...]
    let end = rest.utf8.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    guard let at = rest[..<end].utf8.lastIndex(of: UInt8(ascii: "@")) else { return text }
    return String(text[..<scheme.upperBound] + rest[rest.utf8.index(after: at)...])
  }
}

/// The pieces of an answer, in memory.
private final class GatheredBody: HTTPBodySink, @unchecked Sendable {
  /// The most bytes.
  private static let maximum = 64 << 20
  private(set) var bytes: [UInt8] = []

  func write(_ bytes: [UInt8]) throws(HTTPBodyError) {
    guard bytes.count <= Self.maximum - self.bytes.count else { throw .tooLong }
    self.bytes += bytes
  }

  func offer(_ bytes: [UInt8], _ completion: @escaping @Sendable (HTTPBodyError?) -> Void) {
    do {
      try write(bytes)
      completion(nil)
    } catch { completion(error) }
  }

  func finish() {}
  func fail() {}
}
