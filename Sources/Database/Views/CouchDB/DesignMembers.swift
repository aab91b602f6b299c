import Fleece

/// The types that CouchDB demands of members of a design document; those of `views` are the business of their language. What is missing or
/// null is well.
enum DesignMembers {
  /// Throws the `CouchDBError` `invalid_design_doc` for the first member with a wrong type.
  static func check(_ body: JSONObject) throws {
    try functions("filters", body)
    try expect(body["language"], "language", ["string"])
    try functions("lists", body)
    try expect(body["options"], "options", ["object"])
    for name in ["include_design", "local_seq", "partitioned"] {
      try expect(body["options"]?.object?[name], "options.\(name)", ["boolean"])
    }
    try expect(body["rewrites"], "rewrites", ["string", "array"])
    try functions("shows", body)
    try functions("updates", body)
    try expect(body["validate_doc_update"], "validate_doc_update", ["string"])
  }

  /// An object of functions, or of objects with functions.
  private static func functions(_ section: String, _ body: JSONObject) throws {
    try expect(body[section], section, ["object"])
    for (name, value) in body[section]?.object ?? [:] {
      try expect(value, "\(section).\(name)", ["object", "string"])
    }
  }

  private static func expect(_ value: JSONValue?, _ path: String, _ types: [String]) throws {
    guard let value, !value.isNull, !types.contains(typeName(value)) else { return }
    throw CouchDBError(
      400, "invalid_design_doc", "`\(path)` field must have \(types.joined(separator: " or ")) type")
  }

  private static func typeName(_ value: JSONValue) -> String {
    if value.object != nil { return "object" }
    if value.array != nil { return "array" }
    if value.bool != nil { return "boolean" }
    return value.string != nil ? "string" : "other"
  }
}
