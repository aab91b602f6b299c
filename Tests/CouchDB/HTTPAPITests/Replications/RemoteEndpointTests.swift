import Fleece
import HTTPAPI
import Logs
import Storage
import TestSupport
import Testing
import Touchstone

/// Sources and targets that URLs name, without sockets.
@Suite struct RemoteEndpointTests {
  private func client() throws -> ReplicationClient {
    try ReplicationClient(.lmdb) { configuration in
      configuration.replicationTargets = NamedTargets()
      configuration.logins = RecordedLogins()
    }
  }

  private func replicate(_ client: ReplicationClient, _ body: JSONValue) throws -> Response {
    try client.ask("POST", "/_replicate", body, user: "admin")
  }

  @Test func urlsOfTheServerNameItsDatabases() throws {
    let client = try client()
    try client.make("a", documents: 2)
    try client.make("b")
    let answer = try replicate(client, ["source": "http://admin:secret@self/a", "target": "b"])
    expect(answer.status, equals: 200)
    try expect(client.contents("b").count, equals: 2)
    for source: JSONValue in [
      ["url": "http://self/a", "auth": ["basic": ["username": "admin", "password": "secret"]]],
      ["url": "http://self/a", "headers": ["Authorization": "Basic YWRtaW46c2VjcmV0"]],
    ] { try expect(replicate(client, ["source": source, "target": "b"]).status, equals: 200) }
    try expect(replicate(client, ["source": "http://self/a", "target": "b"]).status, equals: 401)
    let wrong = try replicate(client, ["source": "http://admin:wrong@self/a", "target": "b"])
    try expect(wrong.status == 500 && wrong.json()["error"] == "replication_auth_error")
    expect(!wrong.text.contains("wrong"))
    let missing = try replicate(client, ["source": "http://admin:secret@self/none", "target": "b"])
    try expect(
      missing.json(), equals: ["error": "db_not_found", "reason": "could not open http://self/none/"])
    try expect(client.replicate(["source": "a", "target": "b"]).status, equals: 401)
  }

  @Test func otherServersAreAskedAndMayRefuse() throws {
    let client = try client()
    try client.make("a", documents: 2)
    let gone = try replicate(client, ["source": "a", "target": "http://other:1/db"])
    try expect(gone.json(), equals: ["error": "db_not_found", "reason": "could not open http://other:1/db/"])
    let both = try replicate(client, ["source": "http://other/x", "target": "http://other/y"])
    try expect(both.json(), equals: ["error": "db_not_found", "reason": "could not open http://other/x/"])
    // Another server can be asked for current revisions only.
    let winners = try replicate(
      client, ["source": "http://other:1/db", "target": "a", "winning_revs_only": true])
    try expect(winners.json()["error"], equals: "db_not_found")
    // A job that lasts is tried again; one that can't ever run isn't.
    try expect(
      client.ask("PUT", "/_replicator/x", ["source": "a", "target": "http://other/db"], user: "admin")
        .status, equals: 201)
    try eventually { try client.state("x") == "crashing" }
  }

  @Test func secretsAreShownNowhere() throws {
    let client = try client()
    try client.make("a", documents: 2)
    try client.make("b")
    let source: JSONValue = [
      "url": "http://admin:secret@self/a", "headers": ["X-Token": "hidden", "Cookie": "AuthSession=hidden"],
    ]
    let kept = KeptEntries()
    Log.add(kept, levels: LogLevels(.verbose))
    defer { Log.remove(kept) }
    let body: JSONValue = ["source": source, "target": "b", "continuous": true]
    try expect(client.ask("PUT", "/_replicator/job", body, user: "admin").status, equals: 201)
    try eventually { try client.contents("b").count == 2 }
    let gone: JSONValue = [
      "source": "a", "target": ["url": "http://u:secret@other/db", "headers": ["X": "hidden"]],
    ]
    try expect(client.ask("PUT", "/_replicator/gone", gone, user: "admin").status, equals: 201)
    try eventually { try client.state("gone") == "crashing" }
    for path in [
      "/_active_tasks", "/_scheduler/jobs", "/_scheduler/docs", "/b/_local_docs?include_docs=true",
    ] {
      let text = try client.ask("GET", path).text
      expect(!text.contains("secret") && !text.contains("hidden"), "\(path): \(text)")
    }
    let logged = kept.text
    expect(!logged.isEmpty && !logged.contains("secret") && !logged.contains("hidden"))
  }

  @Test func aReplicationKeepsItsIDWhateverThePassword() throws {
    let client = try client()
    for name in ["a", "b", "c"] { try client.make(name) }
    func id(_ source: JSONValue) throws -> String? {
      let answer = try replicate(client, ["source": source, "target": "c", "continuous": true]).json()
      guard let id = answer["_local_id"].string else { return nil }
      try expect(replicate(client, ["replication_id": .string(id), "cancel": true]).status, equals: 200)
      return id
    }
    let first = try id("http://admin:secret@self/a")
    expect(first != nil)
    try expect(id("http://admin:other@self/a/"), equals: first)
    try expect(id(["url": "http://admin@SELF/a", "headers": ["cookie": "x"]]), equals: first)
    try expect(id("http://someone:secret@self/a") != first)
    try expect(id("http://admin:secret@self/b") != first)
  }
}

private final class KeptEntries: LogSink {
  private let lines = Lock<[String]>([])
  var text: String { lines.withLock { $0.joined(separator: "\n") } }
  func write(_ entry: LogEntry) { lines.withLock { $0.append("\(entry)") } }
}
