import Bytes
import Documents
import Fleece
import Scripts

/// A revision as filters and validation functions of design documents get it: the body with `_id`, and with `_rev`,
/// `_deleted` and `_revisions` where there are any.
package struct ScriptedRevision: Sendable {
  /// The document's ID.
  package let id: String
  /// The JSON of the object.
  package let json: [UInt8]

  /// Makes one of a body in memory. Members of the body that begin with `_` and that this adds are replaced.
  ///
  /// - Parameters:
  ///   - history: the IDs of the revision and its ancestors, the newest first. Without any, there is no `_rev`: the
  ///     document is yet to be stored.
  package init(id: String, history: [RevisionID] = [], isDeleted: Bool = false, _ body: JSONObject) throws {
    self.id = id
    var object = body
    object["_id"] = .string(id)
    if let newest = history.first {
      object["_rev"] = .string(newest.description)
      object["_revisions"] = [
        "start": .int(Int64(clamping: newest.generation)),
        "ids": .array(RevisionHistory.dense(history).map { .string($0.suffix) }),
      ]
    }
    object["_deleted"] = isDeleted ? true : nil
    json = try JSONValue.object(object).jsonText()
  }

  /// Makes one of a stored document, with its current revision. `conflicts` are the other leaves that live.
  package init(_ document: DocumentView, conflicts: [RevisionID] = [], sharedKeys: SharedKeys) throws {
    guard let body = document.body else {
      throw DocumentError(.damaged, "a stored document can't be read", documentID: document.id)
    }
    try self.init(
      id: document.idBytes, document.revisionID(), isDeleted: document.isDeleted, conflicts: conflicts, body,
      sharedKeys: sharedKeys)
  }

  /// Makes one of a stored revision.
  package init(
    id: RawSpan, _ revisionID: RevisionID, isDeleted: Bool, conflicts: [RevisionID] = [], _ body: Value,
    sharedKeys: SharedKeys
  ) throws {
    self.id = String(copying: id)
    var json: [UInt8] = []
    try MapInput.writeJSON(
      id: id, revisionID: revisionID, body, sharedKeys: sharedKeys,
      MapInput.Extra(leaves: (conflicts, []), isDeleted: isDeleted), into: &json)
    self.json = json
  }
}
