import Bytes
import Documents
import Fleece
import Touchstone
import Views

/// Which changes a client wants.
enum ChangesFilter: Sendable {
  /// All.
  case none
  /// Those of a few documents, which are looked up.
  case few([ByteString])
  /// Those of more documents.
  case documents(Set<ByteString>)
  /// Those of design documents, which are looked up.
  case design
  /// Those of documents in a channel of Couchbase Lite 1.x.
  case channels(Set<String>)
  /// Those that a function of a design document chooses. It gets the JSON of a request.
  case script(DesignFilter, JSONObject)
  /// Those that a selector chooses. Documents in the answer have these fields; nil for all.
  case selector(MangoSelector, fields: [MangoField]?)

  /// Up to so many documents are looked up by their IDs, as in CouchDB.
  static let mostLookups = 100

  /// Whether only the changes that are chosen count as examined, as in CouchDB.
  var countsRows: Bool {
    switch self {
    case .few, .documents, .design: true
    default: false
    }
  }

  /// Whether changes are looked up by the IDs of documents.
  var looksUp: Bool {
    switch self {
    case .few, .design: true
    default: false
    }
  }

  /// Whether a function chooses, outside of snapshots.
  var isScript: Bool { if case .script = self { true } else { false } }

  /// The selector that chooses, with the fields of documents in the answer.
  var selector: (selector: MangoSelector, fields: [MangoField]?)? {
    if case .selector(let selector, let fields) = self { (selector, fields) } else { nil }
  }

  /// Whether a document can be chosen without a script.
  func mayChoose(_ document: DocumentView, _ sharedKeys: SharedKeys) -> Bool {
    switch self {
    case .none, .few, .design, .script, .selector: true
    case .documents(let ids): ids.contains(ByteString([UInt8](copying: document.idBytes)))
    case .channels(let channels): document.isDeleted || isIn(channels, document, sharedKeys)
    }
  }

  private func isIn(_ channels: Set<String>, _ document: DocumentView, _ sharedKeys: SharedKeys) -> Bool {
    if channels.contains("*") { return true }
    guard let body = document.body else { return false }
    guard let value = body.value(of: "channels", sharedKeys: sharedKeys) else { return false }
    if let channel = value.string { return channels.contains(channel) }
    var isFound = false
    value.forEachItem { item in
      isFound = item.string.map { channels.contains($0) } ?? false
      return !isFound
    }
    return isFound
  }
}

extension DatabaseCall {
  /// The filter that the options name. `body` is that of a `POST`.
  func changesFilter(_ options: ChangesOptions, body: JSONValue?) throws -> ChangesFilter {
    guard let name = options.filter else { return .none }
    switch name {
    case "_doc_ids":
      let list = method == "POST" ? body?.object?["doc_ids"] : try query.json("doc_ids")
      guard let items = list?.array, case let ids = items.compactMap(\.string), ids.count == items.count
      else {
        throw CouchDBError(
          400, "bad_request", "`doc_ids` filter parameter is not a list of doc ids.")
      }
      let unique = Set(ids.map { ByteString($0) })
      return unique.count <= ChangesFilter.mostLookups ? .few(unique.sorted()) : .documents(unique)
    case "_design": return .design
    case "_selector":
      guard method == "POST" else {
        throw CouchDBError(400, "bad_request", "Selector must be specified in POST payload")
      }
      guard let selector = body?.object?["selector"], selector.object != nil else {
        throw CouchDBError(400, "bad_request", "Selector error: expected a JSON object")
      }
      do {
        let fields =
          try body?.object?["fields"].map { try MangoQuery.fields(OrderedJSON(sorting: $0)) } ?? nil
        return .selector(try MangoSelector(selector), fields: try fields?.map { try MangoField($0) })
      } catch let error as CouchDBError { throw CouchDBError(400, "bad_request", error.reason) }
    case "_view":
      guard let view = query["view"], !view.isEmpty else {
        throw CouchDBError(400, "bad_request", "`view` filter parameter is not provided.")
      }
      let parts = try filterParts(view, "`view` must be of the form `designname/viewname`")
      try checkMember(parts.design, "views", parts.name)
      return .script(
        try designFilter { try database.designFilter(view: view) }, try filterRequest(body: body))
    default:
      if name.utf8.first == UInt8(ascii: "_") {
        throw CouchDBError(400, "bad_request", "unknown builtin filter name")
      }
      let parts = try filterParts(name, "`filter` must be of the form `designname/filtername`")
      if name.hasSameBytes(as: "sync_gateway/bychannel"), try !isThere(parts.design) {
        return .channels(try channels(body))
      }
      try checkMember(parts.design, "filters", parts.name)
      return .script(try designFilter { try database.designFilter(name) }, try filterRequest(body: body))
    }
  }

  /// The channels of a client of Couchbase Lite 1.x: a list with commas, or an array in the body.
  private func channels(_ body: JSONValue?) throws -> Set<String> {
    let list: [String]
    if let text = query["channels"] ?? body?.object?["channels"]?.string {
      list = text.split(separator: ",").map { String($0) }
    } else {
      list = body?.object?["channels"]?.array?.compactMap(\.string) ?? []
    }
    guard !list.isEmpty else {
      throw CouchDBError(400, "bad_request", "the filter sync_gateway/bychannel needs `channels`")
    }
    return Set(list)
  }

  private func filterParts(_ name: String, _ reason: String) throws -> (design: String, name: String) {
    let parts = name.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else {
      throw CouchDBError(400, "bad_request", reason)
    }
    return (String(parts[0]), String(parts[1]))
  }

  private func isThere(_ design: String) throws -> Bool {
    try designBody(design, includesDeleted: false) != nil
  }

  private func designBody(_ design: String, includesDeleted: Bool) throws -> Document? {
    do { return try database.document("_design/" + design, includeDeleted: includesDeleted) } catch let error
      as DocumentError where error.code == .invalidDocumentID
    { return nil }
  }

  /// Throws 404 if a design document, or a function in it, is missing.
  private func checkMember(_ design: String, _ section: String, _ name: String) throws {
    guard let document = try designBody(design, includesDeleted: true) else {
      throw CouchDBError(404, "not_found", "missing")
    }
    guard !document.isDeleted else { throw CouchDBError(404, "not_found", "deleted") }
    guard let functions = try document.value().object?[section]?.object else {
      throw CouchDBError(404, "not_found", "missing json key: \(section)")
    }
    guard functions[name] != nil else {
      throw CouchDBError(404, "not_found", "missing json key: \(name)")
    }
  }

  private func designFilter(_ make: () throws -> DesignFilter) throws -> DesignFilter {
    do { return try make() } catch let error as ViewError { throw ChangesReader.error(error) }
  }

  /// What a filter function gets as its second argument.
  private func filterRequest(body: JSONValue?) throws -> JSONObject {
    var query = JSONObject()
    for item in self.query.items { query[item.name.string] = .string(item.value.string) }
    var headers = JSONObject()
    // Secrets aren't a script's business.
    for (name, value) in request.headers.all where !["authorization", "cookie"].contains(name) {
      headers[name.headerCase] = .string(value)
    }
    let user = try validationUser()
    let segments = [name] + path.map(\.string)
    let raw = String(decoding: request.target.raw, as: UTF8.self)
    return [
      "method": .string(method), "query": .object(query), "headers": .object(headers),
      "path": .array(segments.map { .string($0) }), "requested_path": .array(segments.map { .string($0) }),
      "raw_path": .string(raw), "id": .null, "uuid": .string(DocumentID.random()),
      "body": try body.map { .string(String(decoding: try $0.jsonText(), as: UTF8.self)) } ?? "undefined",
      "form": [:], "cookie": [:], "peer": "127.0.0.1",
      "info": [
        "db_name": .string(name),
        "update_seq": .string(database.couchDBSequences.text(try database.lastSequence)),
      ],
      "userCtx": .object(user.context), "secObj": .object(user.security),
    ]
  }
}

extension String {
  /// A header's name as people write it: `Content-Type`.
  fileprivate var headerCase: String {
    split(separator: "-", omittingEmptySubsequences: false)
      .map { $0.prefix(1).uppercased() + $0.dropFirst() }.joined(separator: "-")
  }
}
