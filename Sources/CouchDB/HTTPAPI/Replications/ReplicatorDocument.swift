import Fleece
import Views

/// What documents of `_replicator` say besides what a replication does.
///
///     _replication_state          "completed" or "failed"; nothing while it runs or is to be tried again
///     _replication_state_time     when that was written
///     _replication_state_reason   why it has failed
///     _replication_stats          what a completed one has done
///     owner                       who has written the document
enum ReplicatorDocument {
  /// The database of such documents.
  static let database = "_replicator"

  static let (state, time, reason) = (
    "_replication_state", "_replication_state_time", "_replication_state_reason"
  )
  static let (id, statistics) = ("_replication_id", "_replication_stats")
  static let owner = "owner"
  /// The members that the server writes.
  static let stateMembers = [state, time, reason, id, statistics]

  /// Whether a document says that its replication has ended for good.
  static func hasEnded(_ body: JSONValue) -> Bool { ["completed", "failed"].contains(body[state].string) }

  /// Throws 403 for a document that describes no replication.
  static func check(_ body: JSONValue) throws {
    guard body[state].isNull else { return }
    do { _ = try ReplicationRequest(body) } catch let error as CouchDBError {
      throw CouchDBError(403, "forbidden", error.reason)
    }
  }

  /// Who a replication acts for.
  static func user(_ body: JSONValue) -> String? { body[owner].string ?? body["user_ctx"]["name"].string }

  /// A body that says how the replication has ended.
  static func body(_ body: JSONValue, ended result: Result<JSONValue, CouchDBError>) -> JSONValue {
    var body = body
    for name in stateMembers { body.remove(name) }
    switch result {
    case .success(let statistics):
      body[state] = "completed"
      body[time] = .string(ReplicationTime.iso(ReplicationTime.now))
      body[Self.statistics] = statistics
    case .failure(let error):
      body[state] = "failed"
      body[time] = .string(ReplicationTime.iso(ReplicationTime.now))
      body[reason] = .string(error.reason)
    }
    return body
  }

  /// The row of `_scheduler/docs` of a replication that has ended for good.
  static func row(_ id: String, _ body: JSONValue) -> JSONValue {
    func shown(_ name: String) -> JSONValue {
      guard let endpoint = try? ReplicationEndpoint(body[name]) else { return .null }
      return .string(endpoint.shown)
    }
    let isFailure = body[state].string == "failed"
    var info = body[statistics]
    let started = info.remove("start_time") ?? body[time]
    if isFailure { info = ["error": body[reason]] }
    return .object(
      JSONObject([
        ("database", .string(database)), ("doc_id", .string(id)), ("id", .null), ("source", shown("source")),
        ("target", shown("target")), ("state", body[state]), ("error_count", isFailure ? 1 : 0),
        ("info", info), ("start_time", started), ("last_updated", body[time]),
      ]))
  }
}
