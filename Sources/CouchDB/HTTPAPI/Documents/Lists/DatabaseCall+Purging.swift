import HTTP
import Documents
import Fleece
import Touchstone
import Views

extension DatabaseCall {
  /// The answer to `_purge`: leaves are removed with their branches, in one transaction.
  func purgeAnswer() throws -> HTTPAnswer {
    try checkContentType()
    try checkWritable()
    let requests = try revisionLists().map { id, revisions in
      PurgeRequest(id: id, revisions: revisions.map(\.text))
    }
    if try isPartitioned() { for request in requests { try Self.checkPartitioned(request.id) } }
    var purged = JSONObject()
    if !requests.isEmpty {
      let removed = try database.replicatingChanges { try $0.purge(requests) }
      for (request, revisions) in zip(requests, removed) {
        purged[request.id] = .array(revisions.map { .string($0) })
      }
    }
    return try .json(["purge_seq": .null, "purged": .object(purged)], status: 201)
  }

  /// The answer to `_purged_infos`: the last requests to purge, also of what wasn't there.
  func purgedInfosAnswer() throws -> HTTPAnswer {
    let requests = try database.read { try $0.purgeRequests }
    return try .json([
      "purged_infos": .array(
        requests.map { ["id": .string($0.id), "revs": .array($0.revisions.map { .string($0) })] })
    ])
  }
}
