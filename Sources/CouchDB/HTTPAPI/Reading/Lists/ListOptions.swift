import Bytes
import Fleece
import Views

/// The options of `_all_docs` and its relatives: those of views that make sense for IDs.
struct ListOptions: Sendable {
  /// Only these, in this order: the JSON of each key.
  let keys: [[UInt8]]?
  let start: IDBound
  let end: IDBound
  let includesEnd: Bool
  let isDescending: Bool
  let skip: Int
  let limit: Int
  let includesDocuments: Bool
  let includesSequence: Bool
  let document: CouchDBDocumentOptions

  /// A bound of a range of IDs.
  enum IDBound: Sendable, Equatable {
    /// There is none.
    case none
    /// An ID.
    case id([UInt8])
    /// JSON that is no string. It comes before all IDs.
    case beforeAll
  }

  /// Reads the options of a query string, and those of a body where there is one. Throws `CouchDBError`s with CouchDB's words.
  init(query: [(name: String, value: String)], body: [UInt8]? = nil) throws {
    var body = body
    for (name, value) in query where name == "keys" {
      guard try JSONValue(body: Array(value.utf8)).array != nil else {
        throw CouchDBError(400, "bad_request", "`keys` parameter must be an array.")
      }
    }
    if let text = body {
      let members = try JSONValue(body: text)
      if members.object == nil {
        throw CouchDBError(400, "bad_request", "Request body must be a JSON object")
      }
      if let keys = members.object?["keys"], keys.array == nil {
        throw CouchDBError(400, "bad_request", "`keys` body member must be an array.")
      }
      if members.object?.isEmpty ?? true { body = nil }
    }
    let options =
      try body.map { try CouchDBViewOptions(body: $0, query: query) } ?? CouchDBViewOptions(query: query)
    try self.init(
      options, hasBounds: query.contains { Self.bounds.contains($0.name) },
      hasKey: query.contains { $0.name == "key" })
  }

  private static let bounds = ["startkey", "start_key", "endkey", "end_key"]

  /// The options of one of several queries. `hasBounds` and `hasKey` tell what a query string names.
  init(_ options: CouchDBViewOptions, hasBounds: Bool = false, hasKey: Bool = false) throws {
    let hasRange = options.startKey != nil || options.endKey != nil
    // `keys` of one key takes the place of `key`.
    let replacesKey = hasKey && options.keys?.count == 1
    if let keys = options.keys, hasBounds || !keys.isEmpty && hasRange && !replacesKey {
      throw CouchDBError(
        400, "query_parse_error", "`keys` is incompatible with `key`, `start_key` and `end_key`")
    }
    // Refuses `reduce` and grouping.
    var others = options
    others.removeKeys()
    _ = try others.selection(hasReducer: false)
    keys = options.keys
    start = try Self.bound(options.startKey)
    end = try Self.bound(options.endKey)
    includesEnd = options.includesEnd
    isDescending = options.isDescending
    skip = options.skip
    limit = options.limit ?? .max
    includesDocuments = options.includesDocuments
    includesSequence = options.includesUpdateSequence
    document = options.document
  }

  private static func bound(_ json: [UInt8]?) throws -> IDBound {
    guard let json else { return .none }
    guard let id = try JSONValue(body: json).string else { return .beforeAll }
    return .id(Array(id.utf8))
  }
}
