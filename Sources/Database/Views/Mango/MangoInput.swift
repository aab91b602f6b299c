import Bytes
import Documents
import Fleece

/// What selectors and indexes see of documents.
enum MangoInput {
  /// What a field of a document leads to; nil for nothing.
  static func value(of document: MappedDocument, _ field: MangoField) throws -> JSONValue? {
    guard let name = field.parts.first else { return nil }
    var object = JSONObject()
    object[name] = try member(name, of: document)
    guard case .value(let found) = field.find(in: .object(object)) else { return nil }
    return found
  }

  /// An object with the members that have these names, or with all.
  static func value(of document: MappedDocument, _ names: Set<ByteString>?) throws -> JSONValue {
    guard let names else { return .object(try document.properties()) }
    var object = JSONObject()
    for name in names { object[name.string] = try member(name.string, of: document) }
    return .object(object)
  }

  private static func member(_ name: String, of document: MappedDocument) throws -> JSONValue? {
    switch name {
    case "_id": return .string(document.id)
    case "_rev": return .string(try document.revisionID.description)
    case "_conflicts":
      let conflicts = try document.conflicts
      return conflicts.isEmpty ? nil : .array(conflicts.map { .string($0.description) })
    default: return try document[name]?.jsonValue(sharedKeys: document.sharedKeys)
    }
  }

  /// The same of a document of a snapshot. With `conflicts`, it may be asked for those.
  static func value(
    of view: DocumentView, _ names: Set<ByteString>, _ sharedKeys: SharedKeys, conflicts: Bool
  ) throws -> JSONValue {
    var object = JSONObject()
    for name in names {
      switch name.string {
      case "_id": object["_id"] = .string(view.id)
      case "_rev": object["_rev"] = .string(try view.revisionID().description)
      case "_conflicts":
        guard conflicts, view.isConflicted else { continue }
        object["_conflicts"] = .array(try view.conflictingLeaves().live.map { .string($0.description) })
      case let other:
        guard let body = view.body, let found = body.value(of: other, sharedKeys: sharedKeys) else {
          continue
        }
        object[other] = try found.jsonValue(sharedKeys: sharedKeys)
      }
    }
    return .object(object)
  }
}
