import Fleece

/// The types that CouchDB demands of members of a design document. What is missing or null is well. The views of scripts are the business
/// of their language; here only indexes of `_find` are looked at.
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
    if body["language"]?.string == MangoLanguage.name { try indexes(body["views"]) }
  }

  /// The views of a design document of `_find`.
  private static func indexes(_ views: JSONValue?) throws {
    try expect(views, "views", ["object"])
    let views = views?.object ?? [:]
    for name in views.keys.sortedByBytes() where name != "lib" {
      let path = "views.\(name)"
      guard let view = views[name]?.object else {
        throw CouchDBError(400, "invalid_design_doc", "`\(path)` field must have object type")
      }
      guard let map = view["map"] else {
        throw CouchDBError(400, "invalid_design_doc", "View `\(name)` must contain map function")
      }
      try expect(map, path + ".map", ["object"])
      try expect(view["reduce"], path + ".reduce", ["string"])
    }
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
