import Fleece
import Touchstone

/// What the process that runs the replications of `_replicator` lets the others know of them: a local document of that database.
///
///     {"docs": {"nightly": {"id": "…", "state": "running", "error_count": 0, "info": null, "start_time": T, "last_updated": T}}}
///
/// Numbers of documents aren't in it: each would be a write.
struct SharedStates: Equatable {
  static let documentID = "touchstone-replicator-states"
  /// The most documents whose states are shared, the first ones by their IDs.
  static let most = 10_000
  private static let members = ["id", "state", "error_count", "start_time", "last_updated"]

  private let documents: JSONObject

  /// The states of rows of `_scheduler/docs`.
  init(_ rows: some Sequence<(id: String, row: JSONValue)>) {
    documents = JSONObject(
      rows.prefix(Self.most).map { id, row in
        var shared = JSONObject(Self.members.map { ($0, row[$0]) })
        // Why it has failed, if it has.
        let error = row["info"]["error"]
        shared["info"] = error.isNull ? .null : ["error": error]
        return (id, .object(shared))
      })
  }

  /// What was shared last.
  init(of database: Database) throws {
    guard case .object(let documents)? = try database.localDocument(Self.documentID)?.body["docs"] else {
      self.documents = JSONObject()
      return
    }
    self.documents = documents
  }

  func save(to database: Database) throws {
    try database.saveLocalDocument(
      Self.documentID, ["docs": .object(documents)], onConflict: .lastWriteWins)
  }

  /// The members of a document's row of `_scheduler/docs`; nil if nothing is known.
  subscript(id: String) -> [(String, JSONValue)]? {
    guard case .object(let shared)? = documents[id], shared["state"]?.string != nil else { return nil }
    return (Self.members + ["info"]).map { ($0, shared[$0] ?? .null) }
  }
}
