import Fleece

/// The options of a query of a view as HTTP clients of CouchDB give them, with CouchDB's meaning.
///
/// They come from the query string and, of a `POST`, from the JSON of the body. Unknown ones are ignored. Wrong ones throw a
/// `CouchDBError` with CouchDB's words.
package struct CouchDBViewOptions: Sendable {
  /// Whether the view is brought up to date.
  package enum Update: Sendable {
    /// Before the query.
    case before
    /// After the query.
    case after
    /// Not at all.
    case never
  }

  package private(set) var startKey: [UInt8]?
  package private(set) var endKey: [UInt8]?
  package private(set) var startDocumentID: String?
  package private(set) var endDocumentID: String?
  package private(set) var includesStart = true
  package private(set) var includesEnd = true
  package private(set) var keys: [[UInt8]]?
  package private(set) var prefixMatchLevel = 0
  package private(set) var isDescending = false
  package private(set) var skip = 0
  package private(set) var limit: Int?
  package private(set) var reduces: Bool?
  package private(set) var groups: Bool?
  package private(set) var groupLevel: Int?
  package private(set) var includesDocuments = false
  package private(set) var includesConflicts = false
  /// Whether documents have the data of their attachments.
  package private(set) var includesAttachments = false
  /// Whether documents say how their attachments are encoded.
  package private(set) var includesEncodings = false
  package private(set) var includesUpdateSequence = false
  package private(set) var update = Update.before

  package init() {}

  /// Reads the options of a `GET`.
  package init(query: [(name: String, value: String)]) throws {
    for (name, value) in query { try set(name, CouchDBParameter(value)) }
  }

  /// Reads the options of a `POST`: those of the body, which those of the query string go before.
  package init(body: [UInt8], query: [(name: String, value: String)] = []) throws {
    let members = try CouchDBParameter.members(of: body)
    guard !members.contains(where: { $0.name == "queries" }) else {
      throw CouchDBError.request("The `queries` parameter is no longer supported at this endpoint")
    }
    try self.init(members, query)
  }

  private init(
    _ members: [(name: String, parameter: CouchDBParameter)], _ query: [(name: String, value: String)]
  ) throws {
    for (name, parameter) in members where name == "keys" {
      guard try parameter.items() != nil else {
        throw CouchDBError.request("`keys` member must be an array.")
      }
    }
    for (name, parameter) in members { try set(name, parameter) }
    for (name, value) in query { try set(name, CouchDBParameter(value)) }
  }

  /// Reads the options of several queries: the array `queries` of a body.
  package static func queries(
    body: [UInt8], query: [(name: String, value: String)] = []
  ) throws -> [CouchDBViewOptions] {
    let members = try CouchDBParameter.members(of: body)
    guard let queries = members.last(where: { $0.name == "queries" })?.parameter else {
      throw CouchDBError.request("POST body must include `queries` parameter.")
    }
    guard let items = try queries.items() else {
      throw CouchDBError.request("`queries` member must be an array.")
    }
    return try items.map { try CouchDBViewOptions(CouchDBParameter.members(of: $0), query) }
  }

  /// What documents of the answer have.
  package var document: CouchDBDocumentOptions {
    var document = CouchDBDocumentOptions()
    document.includesConflicts = includesConflicts
    document.includesAttachments = includesAttachments
    document.includesEncodings = includesEncodings
    return document
  }

  /// Leaves out `keys`.
  package mutating func removeKeys() { keys = nil }

  // MARK: Reading

  private mutating func set(_ name: String, _ parameter: CouchDBParameter) throws {
    switch name {
    case "key":
      startKey = try parameter.json()
      endKey = startKey
    case "keys":
      guard let items = try parameter.items() else {
        throw CouchDBError.query("`keys` must be an array of strings.")
      }
      keys = items
    case "startkey", "start_key": startKey = try parameter.json()
    case "endkey", "end_key": endKey = try parameter.json()
    case "startkey_docid", "start_key_doc_id":
      startDocumentID = try Self.documentID(parameter, "start_key_docid")
    case "endkey_docid", "end_key_doc_id": endDocumentID = try Self.documentID(parameter, "end_key_docid")
    case "inclusive_start": includesStart = try parameter.bool()
    case "inclusive_end": includesEnd = try parameter.bool()
    case "prefix_match_level": prefixMatchLevel = try parameter.count()
    case "descending": isDescending = try parameter.bool()
    case "skip": skip = try parameter.count()
    case "limit": limit = try parameter.count()
    case "reduce": reduces = try parameter.bool()
    case "group": groups = try parameter.bool()
    case "group_level": groupLevel = try parameter.count()
    case "include_docs": includesDocuments = try parameter.bool()
    case "conflicts": includesConflicts = try parameter.bool()
    case "update_seq": includesUpdateSequence = try parameter.bool()
    case "stale":
      switch parameter.string {
      case "ok": update = .never
      case "update_after": update = .after
      // 1.x has this one.
      case "false": update = .before
      default: throw CouchDBError.query("Invalid value for `stale`.")
      }
    case "update":
      switch parameter.string ?? (parameter.value?.bool).map(String.init) {
      case "true": update = .before
      case "false": update = .never
      case "lazy": update = .after
      default: throw CouchDBError.query("Invalid value for `update`.")
      }
    case "attachments": includesAttachments = try parameter.bool()
    case "att_encoding_info": includesEncodings = try parameter.bool()
    case "sorted":
      // Rows always are in their order.
      _ = try parameter.bool()
    case "stable":
      guard parameter.value?.bool != nil || ["true", "false"].contains(parameter.string) else {
        throw CouchDBError.query("Invalid value for `stable`.")
      }
    default: break
    }
  }

  private static func documentID(_ parameter: CouchDBParameter, _ name: String) throws -> String {
    guard let id = parameter.string else { throw CouchDBError.query("`\(name)` must be a string.") }
    return id
  }

  // MARK: Meaning

  /// Whether rows are reduced.
  func isReduced(hasReducer: Bool) -> Bool { hasReducer && reduces != false }

  /// Returns what is to be read of a view with or without a reducer. Throws for options that don't fit together.
  package func selection(hasReducer: Bool) throws -> ViewSelection {
    let isReduced = isReduced(hasReducer: hasReducer)
    if !hasReducer, reduces == true { throw CouchDBError.query("Reduce is invalid for map-only views.") }
    let grouping = try grouping()
    // A list of one key is that key.
    let one = keys.flatMap { $0.count == 1 ? $0[0] : nil }
    let list = one == nil ? keys : nil
    if isReduced, list != nil, grouping != .keys {
      throw CouchDBError.query("Multi-key fetches for reduce views must use `group=true`")
    }
    if let list, !list.isEmpty, startKey != nil || endKey != nil {
      throw CouchDBError.query("`keys` is incompatible with `key`, `start_key` and `end_key`")
    }
    if isReduced, includesDocuments { throw CouchDBError.query("`include_docs` is invalid for reduce") }
    if !isReduced, grouping != .all { throw CouchDBError.query("Invalid use of grouping on a map view.") }
    var selection = ViewSelection()
    selection.start = (one ?? startKey).map {
      .init(.json($0), documentID: startDocumentID, isInclusive: includesStart)
    }
    selection.end = (one ?? endKey).map {
      .init(.json($0), documentID: endDocumentID, isInclusive: includesEnd)
    }
    selection.keys = list?.map { .json($0) }
    // The rows of the last key come first then. Groups stay in the order of the list.
    if isDescending, !isReduced { selection.keys?.reverse() }
    selection.keysStartDocumentID = startDocumentID
    selection.keysEndDocumentID = endDocumentID
    selection.prefixMatchLevel = prefixMatchLevel
    selection.isDescending = isDescending
    selection.skip = skip
    selection.limit = limit
    selection.grouping = isReduced ? grouping : nil
    return selection
  }

  private func grouping() throws -> ViewSelection.Grouping {
    switch (groups, groupLevel) {
    case (false, .some(1...)):
      throw CouchDBError.query("Can't specify group=false and group_level>0 at the same time")
    case (true, nil): .keys
    case (_, .some(1...)): .level(groupLevel ?? 1)
    default: .all
    }
  }
}

extension ViewSelection {
  /// Throws CouchDB's error if the first key comes after the last one.
  func checkRange(_ encoder: ViewKeyEncoder) throws {
    guard keys == nil, let start, let end, prefixMatchLevel == 0 else { return }
    let (first, last) = (
      try ViewSelection.encode(start.key, encoder), try ViewSelection.encode(end.key, encoder)
    )
    let isImpossible: Bool
    if first == last {
      guard let from = start.documentID, let to = end.documentID,
        case .json(let left) = start.key, case .json(let right) = end.key, left != right
      else { return }
      isImpossible =
        isDescending
        ? from.utf8.lexicographicallyPrecedes(to.utf8) : to.utf8.lexicographicallyPrecedes(from.utf8)
    } else {
      isImpossible = first.lexicographicallyPrecedes(last) == isDescending
    }
    guard isImpossible else { return }
    throw CouchDBError.query(
      "No rows can match your key range, reverse your start_key and end_key or set descending=\(!isDescending)"
    )
  }
}
