import Fleece

/// The body of a request that makes an index: `POST _index`.
package struct MangoDefinition: Sendable {
  /// The ID of the design document.
  package let designID: String
  package let name: String
  /// The columns, and the filter as CouchDB stores it, with all operators written out.
  private let columns: [MangoIndex.Column]
  private let filter: OrderedJSON?
  /// The definition as the client gave it.
  private let definition: OrderedJSON
  /// Whether only queries of one partition may use the index; nil: as the database has it.
  private let isPartitioned: Bool?

  /// The most fields of an index.
  private static let mostColumns = 1_000

  /// Reads a body. Throws CouchDB's errors.
  package init(_ body: OrderedJSON, inPartitionedDatabase: Bool = false) throws {
    var options = MangoOptions(body)
    guard let definition = options.take("index") else { throw MangoOptions.missing("index") }
    let type = try options.string("type") ?? "json"
    switch type {
    case "json": break
    // CouchDB without its search servers says the same.
    case "text", "nouveau": throw CouchDBError(503, "required index service unavailable", type)
    default: throw CouchDBError(400, "invalid_index", "Invalid type for index: \(type)")
    }
    let name = try options.string("name")
    let design = try options.string("ddoc")
    guard name?.isEmpty != true, design?.isEmpty != true else {
      throw CouchDBError(400, "invalid_empty_string", "Index name or ddoc cannot be empty string")
    }
    _ = try options.count("w")
    isPartitioned = try options.flag("partitioned")
    if isPartitioned == true, !inPartitionedDatabase {
      throw CouchDBError(
        400, "bad_request", "`partitioned` option cannot be true on a non-partitioned database.")
    }
    try options.finish()
    guard definition.members != nil else {
      throw CouchDBError(
        400, "invalid_index", "JSON indexes must be an object, not: \(definition.term)")
    }
    var parts = MangoOptions(definition)
    guard let fields = parts.take("fields") else { throw MangoOptions.missing("fields") }
    columns = try MangoQuery.columns(fields)
    guard columns.count <= Self.mostColumns else {
      throw CouchDBError(400, "invalid_index_fields", "An index has at most \(Self.mostColumns) fields.")
    }
    let filter = parts.take("partial_filter_selector")
    let selector = try filter.map { try MangoSelector($0) }
    self.filter = filter?.members?.isEmpty ?? true ? nil : selector?.json
    try parts.finish()
    self.definition = definition
    // The same definition has the same name.
    let automatic = try DesignDocument.signature(of: .array([definition.value, .string(name ?? "")]))
    self.name = name ?? automatic
    let given = design ?? automatic
    designID = DesignDocument.name(ofID: given) == nil ? DesignDocument.idPrefix + given : given
  }

  /// Adds the index to the body of its design document, or makes one if that is nil. Returns the new body; nil if the index is there.
  /// Throws CouchDB's errors for a design document in another language, or with other partitions.
  package func added(to stored: JSONObject?) throws -> JSONObject? {
    var body = stored ?? JSONObject()
    if stored != nil {
      let language = body["language"]
      guard language?.string == MangoLanguage.name else {
        let term = language.map { OrderedJSON(sorting: $0).term } ?? "false"
        throw CouchDBError(
          400, "invalid_ddoc_lang", "Existing design doc has an invalid language: \(term)")
      }
      guard isPartitioned == body["options"]?.object?["partitioned"]?.bool else {
        throw CouchDBError(
          400, "invalid_partitioned_option",
          "Requested partitioned option does not match existing value on design document \(designID)")
      }
    } else if let isPartitioned {
      body["options"] = ["partitioned": .bool(isPartitioned)]
    }
    var views = body["views"]?.object ?? JSONObject()
    let view = view
    guard views[name] != view else { return nil }
    views[name] = view
    body["language"] = .string(MangoLanguage.name)
    body["views"] = .object(views)
    return body
  }

  private var view: JSONValue {
    var map: JSONObject = [
      "fields": .object(JSONObject(columns.map { ($0.name, JSONValue.string($0.direction)) }))
    ]
    map["partial_filter_selector"] = filter?.value ?? [:]
    return ["map": .object(map), "reduce": "_count", "options": ["def": definition.value]]
  }

  /// Removes an index from the body of its design document. Returns whether others are left.
  package static func remove(_ name: String, from body: inout JSONObject) -> Bool {
    var views = body["views"]?.object ?? JSONObject()
    views[name] = nil
    body["views"] = .object(views)
    return !views.isEmpty
  }
}
