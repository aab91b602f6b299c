import Fleece
import FoundationEssentials

/// The body of a request to `_find` or `_explain`.
package struct MangoQuery: Sendable {
  package var selector = MangoSelector.all
  /// The design document, without `_design/`, and the view that the client wants to be used; empty if it names none.
  package var useIndex: [String] = []
  /// Where the answer before ended; nil: it begins at the start.
  package var bookmark: MangoBookmark?
  /// The bookmark's text.
  package var bookmarkText: String?
  package var limit = 25
  package var skip = 0
  /// The fields by which documents are sorted.
  package var sort: [MangoIndex.Column] = []
  /// The fields that documents have in the answer; nil for all.
  package var fields: [String]?
  /// The partition whose documents are wanted; empty for all documents.
  package var partition = ""
  package var readQuorum: Int64 = 1
  package var includesConflicts = false
  package var allowsStale = false
  package var updates = true
  package var isStable = false
  package var includesStatistics = false
  package var allowsFallback = true

  package init() {}

  package var isDescending: Bool { sort.first?.direction == "desc" }

  /// Reads a body. Throws CouchDB's errors.
  package init(_ body: OrderedJSON) throws {
    var options = MangoOptions(body)
    guard let selector = options.take("selector") else { throw MangoOptions.missing("selector") }
    self.selector = try MangoSelector(selector)
    useIndex = try options.take("use_index").map { try Self.names(ofIndex: $0) } ?? []
    if let text = try options.string(
      "bookmark", "invalid_bookmark", "Invalid bookmark value", takesNull: true), !text.isEmpty, text != "nil"
    {
      bookmarkText = text
    }
    limit = try options.count("limit") ?? limit
    skip = try options.count("skip") ?? skip
    if let sort = options.take("sort") { self.sort = try Self.columns(sort) }
    if let fields = options.take("fields") { self.fields = try Self.fields(fields) }
    partition = try options.string("partition", "invalid_partition", "Invalid partition") ?? ""
    if let quorum = options.take("r") {
      guard let count = quorum.int, count > 0 else {
        throw CouchDBError(
          400, "invalid_pos_integer", "\(quorum.term) is not an integer greater than zero")
      }
      readQuorum = count
    }
    includesConflicts = try options.flag("conflicts") ?? false
    if let stale = options.take("stale") {
      guard stale.bool == false || stale.string == "ok" || stale.string == "false" else {
        throw CouchDBError(400, "invalid_ok_or_false_value", "Invalid ok or false value: \(stale.term)")
      }
      allowsStale = stale.string == "ok"
    }
    updates = try options.flag("update") ?? true
    isStable = try options.flag("stable") ?? false
    includesStatistics = try options.flag("execution_stats") ?? false
    allowsFallback = try options.flag("allow_fallback") ?? true
    try options.finish()
    bookmark = try bookmarkText.map { try MangoBookmark($0) }
  }

  /// The fields by which something is sorted: `"a"` or `{"a": "desc"}`. All have one direction.
  static func columns(_ json: OrderedJSON) throws -> [MangoIndex.Column] {
    guard let items = json.array else {
      throw CouchDBError(
        400, "invalid_sort_json", "Sort must be an array of sort specs, not: \(json.shortTerm)")
    }
    let columns = try items.map { item -> MangoIndex.Column in
      let name: String
      var direction = "asc"
      if let text = item.string, !text.isEmpty {
        name = text
      } else if let members = item.members, members.count == 1, let way = members[0].value.string,
        way == "asc" || way == "desc"
      {
        (name, direction) = (members[0].name, way)
      } else {
        throw CouchDBError(400, "invalid_sort_field", "Invalid sort field: \(item.shortTerm)")
      }
      return MangoIndex.Column(name: name, field: try MangoField(name), direction: direction)
    }
    guard columns.allSatisfy({ $0.direction == columns[0].direction }) else {
      throw CouchDBError(
        400, "unsupported_mixed_sort",
        "Sorts currently only support a single direction for all fields.")
    }
    return columns
  }

  /// The fields that documents of an answer have; nil for all.
  package static func fields(_ json: OrderedJSON) throws -> [String]? {
    guard let items = json.array else {
      throw CouchDBError(
        400, "invalid_fields", "Fields must be an array of strings, not: \(json.term)")
    }
    let fields = try items.map { item -> String in
      guard let text = item.string else {
        throw CouchDBError(400, "invalid_field", "Invalid JSON for field spec: \(item.term)")
      }
      _ = try MangoField(text)
      return text
    }
    return fields.isEmpty ? nil : fields
  }

  /// `"design"`, `"_design/design"`, `"design/view"`, `["design"]` or `["design", "view"]`.
  private static func names(ofIndex json: OrderedJSON) throws -> [String] {
    func invalid() -> CouchDBError {
      CouchDBError(400, "invalid_index_name", "Invalid index name: \(json.term)")
    }
    if json.isNull { return [] }
    var names: [String]
    if let text = json.string {
      names = text.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
      if names.count > 1, names[0] == "_design" { names.removeFirst() }
      guard (1...2).contains(names.count) else { throw invalid() }
    } else {
      guard let items = json.array, items.count <= 2 else { throw invalid() }
      names = items.compactMap(\.string)
      guard names.count == items.count else { throw invalid() }
      if let first = names.first, let name = DesignDocument.name(ofID: first) { names[0] = name }
    }
    return names
  }
}

/// The members of a request, which are taken one by one.
package struct MangoOptions {
  private var members: [OrderedJSON.Member]

  package init(_ json: OrderedJSON) { members = json.members ?? [] }

  static func missing(_ name: String) -> CouchDBError {
    CouchDBError(400, "missing_required_key", "Missing required key: \(name)")
  }

  package mutating func take(_ name: String) -> OrderedJSON? {
    guard let place = members.firstIndex(where: { $0.name.utf8.elementsEqual(name.utf8) }) else { return nil }
    return members.remove(at: place).value
  }

  package mutating func flag(_ name: String) throws -> Bool? {
    guard let value = take(name) else { return nil }
    guard let flag = value.bool else {
      throw CouchDBError(400, "invalid_boolean", "Invalid boolean value: \(value.term)")
    }
    return flag
  }

  package mutating func count(_ name: String) throws -> Int? {
    guard let value = take(name) else { return nil }
    guard let count = value.int, count >= 0 else {
      throw CouchDBError(
        400, "invalid_non_neg_integer",
        "\(value.term) is not an integer greater than or equal to zero")
    }
    return Int(clamping: count)
  }

  /// A text. With `takesNull`, null is as if there were none.
  package mutating func string(
    _ name: String, _ error: String = "invalid_string", _ reason: String = "Invalid string",
    takesNull: Bool = false
  ) throws -> String? {
    guard let value = take(name), !(takesNull && value.isNull) else { return nil }
    guard let text = value.string else { throw CouchDBError(400, error, "\(reason): \(value.term)") }
    return text
  }

  /// Throws if there are others.
  package func finish() throws {
    guard let other = members.first else { return }
    throw CouchDBError(400, "invalid_key", "Invalid key \(other.name) for this request.")
  }
}

// A bookmark is URL-safe base64, without padding, of
//
//   { "startkey": key of the last row, "startkey_docid": its document's ID }

/// Where an answer of `_find` ended.
package struct MangoBookmark: Sendable {
  /// The JSON of the key of the last row.
  var key: [UInt8]
  /// Its document's ID.
  var id: String

  init(key: [UInt8], id: String) {
    self.key = key
    self.id = id
  }

  /// Reads a bookmark. Throws CouchDB's error for one that can't be read.
  init(_ text: String) throws {
    var base64 = text.map { $0 == "-" ? "+" : $0 == "_" ? "/" : String($0) }.joined()
    while base64.utf8.count % 4 != 0 { base64 += "=" }
    guard let bytes = Data(base64Encoded: base64).map({ [UInt8]($0) }),
      let json = try? OrderedJSON(parsing: bytes),
      let key = json["startkey"], let id = json["startkey_docid"]?.string
    else {
      let quoted = String(decoding: OrderedJSON.scalar(.string(text)).jsonText, as: UTF8.self)
      throw CouchDBError(400, "invalid_bookmark", "Invalid bookmark value: \(quoted)")
    }
    self.init(key: key.jsonText, id: id)
  }

  var text: String {
    var json = Array("{\"startkey\":".utf8) + key + Array(",\"startkey_docid\":".utf8)
    json.append(jsonString: id)
    json.append(UInt8(ascii: "}"))
    return Self.base64(json)
  }

  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)

  private static func base64(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(bytes.count / 3 * 4 + 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let part = bytes[start..<min(start + 3, bytes.count)]
      let bits = part.reduce(0) { $0 << 8 | Int($1) } << (8 * (3 - part.count))
      for digit in 0...part.count { text.append(digits[bits >> (18 - 6 * digit) & 63]) }
    }
    return String(decoding: text, as: UTF8.self)
  }
}
