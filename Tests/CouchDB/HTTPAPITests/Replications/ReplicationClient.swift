import Fleece
@testable import HTTPAPI
import Replication
import Storage
import TestSupport
import Testing
import Touchstone

/// A service over a folder, whose databases replicate.
final class ReplicationClient {
  let folder: DatabaseFolder
  let timer: ManualTimer
  private let directory = TemporaryDirectory()
  private(set) var client: APIClient
  private let configuration: DatabaseServiceConfiguration

  init(_ engine: EngineName = .lmdb, _ change: (inout DatabaseServiceConfiguration) -> Void = { _ in }) throws
  {
    var configuration = DatabaseServiceConfiguration()
    change(&configuration)
    self.configuration = configuration
    timer = ManualTimer()
    folder = try DatabaseFolder(directory.path, options: try options(engine))
    client = APIClient(folder: folder, configuration, timer: timer)
  }

  deinit {
    client.service.stopReplications(seconds: 30)
    try? folder.close()
  }

  /// Ends the service, closes the databases, and serves the folder again.
  func restart() throws {
    client.service.stopReplications(seconds: 30)
    try folder.close()
    client = APIClient(folder: folder, configuration, timer: timer)
    client.service.startReplications()
  }

  func ask(_ method: String, _ target: String, _ body: JSONValue? = nil, user: String? = nil) throws
    -> Response
  {
    let headers = body == nil ? [] : [("Content-Type", "application/json")]
    return try client.ask(method, target, headers: headers, body: body?.jsonText() ?? [], user: user)
  }

  func get(_ target: String) throws -> JSONValue { try ask("GET", target, user: "admin").json() }

  /// Begins, or runs, a replication.
  func replicate(_ body: JSONValue) throws -> Response { try ask("POST", "/_replicate", body) }

  /// Makes a database with documents `a0`, `a1`, …
  func make(_ name: String, documents: Int = 0) throws {
    try expect(ask("PUT", "/" + name, user: "admin").status, equals: 201)
    guard documents > 0 else { return }
    let docs = (0..<documents).map { JSONValue(["_id": .string("a\($0)"), "n": JSONValue($0)]) }
    try expect(ask("POST", "/\(name)/_bulk_docs", ["docs": .array(docs)], user: "admin").status, equals: 201)
  }

  /// The IDs and current revisions of all documents, and the other leaves.
  func contents(_ name: String) throws -> [String: String] {
    let changes = try get("/\(name)/_changes?style=all_docs")
    var contents: [String: String] = [:]
    for row in changes["results"].array ?? [] {
      let leaves = (row["changes"].array ?? []).compactMap { $0["rev"].string }
      contents[row["id"].string ?? ""] =
        leaves.joined(separator: " ") + (row["deleted"].bool == true ? " deleted" : "")
    }
    return contents
  }

  /// A sequence without its mark.
  func number(_ sequence: JSONValue) -> String? {
    sequence.string.flatMap { $0.split(separator: "-").first }.map { String($0) }
  }

  /// The state that the scheduler shows of a document; nil if it shows none.
  func state(_ id: String) throws -> String? { try get("/_scheduler/docs/_replicator/\(id)")["state"].string }
}

/// URLs of which some lead to the databases of the service itself.
struct NamedTargets: ReplicationTargets {
  /// The starts of the URLs that do.
  var own: [String] = ["http://self/"]

  func ownName(of remote: RemoteDatabase) -> String? {
    for start in own where remote.url.hasPrefix(start) {
      return remote.url.dropFirst(start.count).split(separator: "/").first.map { String($0) }
    }
    return nil
  }

  /// The starts of the URLs that no replication may reach.
  var refused: [String] = []

  func refusal(of remote: RemoteDatabase) -> String? {
    refused.contains(where: remote.url.hasPrefix) ? "not there" : nil
  }

  func target(of remote: RemoteDatabase) throws -> ReplicatorTarget {
    ReplicatorTarget(DeadConnector(name: remote.url))
  }
}

/// A connector whose other side isn't there.
private struct DeadConnector: PeerConnector {
  let name: String
  var remoteID: String { name }

  func connect(_ options: ConnectionOptions, _ done: @escaping Completion<any Peer>) {
    done(.failure(ReplicationError(.http, 404, "there is no such database")))
  }
}
