import Fleece
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// Passwords in documents of `_replicator`, and who sees them.
@Suite struct ReplicatorSecretTests {
  private static let document: JSONValue = [
    "source": "https://me:secret1@other.example/db", "create_target": false,
    "target": ["url": "a", "auth": ["basic": ["username": "me", "password": "secret2"]]],
    "more": [["headers": ["Authorization": "secret3"]], "x://secret4@h/p?a=b@c", "plain@text"],
  ]

  private func client(_ engine: EngineName, hasUsers: Bool = true) throws -> ReplicationClient {
    let client = try ReplicationClient(engine) {
      $0.hasUsers = hasUsers
      $0.replicationTargets = NamedTargets()
    }
    try client.make("a")
    try expect(client.ask("PUT", "/_replicator/one", Self.document, user: "owner").status, equals: 201)
    return client
  }

  @Test(
    "only who has written a document sees its passwords, by whatever way it is read", arguments: someEngines)
  func shown(_ engine: EngineName) throws {
    let client = try client(engine)
    let ways: [(String, String, JSONValue?)] = [
      ("GET", "/_replicator/one", nil), ("GET", "/_replicator/one?revs=true&conflicts=true", nil),
      ("GET", "/_replicator/one?attachments=true", nil),
      ("GET", "/_replicator/_all_docs?include_docs=true", nil),
      ("POST", "/_replicator/_all_docs?include_docs=true", ["keys": ["one"]]),
      ("GET", "/_replicator/_changes?include_docs=true", nil),
      ("POST", "/_replicator/_bulk_get", ["docs": [["id": "one"]]]),
    ]
    for (method, target, body) in ways {
      let mine = try client.ask(method, target, body, user: "owner")
      for number in 1...4 { expect(mine.text.contains("secret\(number)"), "\(target)") }
      let theirs = try client.ask(method, target, body, user: "other")
      expect(theirs.status, equals: 200, "\(target)")
      expect(!theirs.text.contains("secret"), "\(target): \(theirs.text)")
      expect(theirs.text.contains("https://other.example/db"), "\(target)")
      expect(theirs.text.contains("plain@text"), "\(target)")
    }
  }

  @Test("revisions are shown as JSON, and not in parts") func revisions() throws {
    let client = try client(.lmdb)
    let target = "/_replicator/one?open_revs=all"
    try expect(client.ask("GET", target, user: "owner").status, equals: 406)
    let accept = [("Accept", "application/json")]
    try expect(client.client.ask("GET", target, headers: accept, user: "owner").text.contains("secret1"))
    try expect(!client.client.ask("GET", target, headers: accept, user: "other").text.contains("secret"))
  }

  @Test("what could show them in another form is refused") func refused() throws {
    let client = try client(.lmdb)
    let query: JSONValue = ["query": "SELECT SUBSTR(target.auth.basic.password, 1) AS p FROM _"]
    let ways: [(String, String, JSONValue?)] = [
      ("POST", "/_replicator/_query", query), ("GET", "/_replicator/_design/d/_view/v", nil),
      ("GET", "/_replicator/_changes?filter=d/f", nil),
      ("POST", "/_replicator/_changes?filter=_selector", ["selector": [:]]),
      ("POST", "/_replicator/_find", ["selector": [:]]), ("POST", "/_replicator/_explain", ["selector": [:]]),
      ("POST", "/_replicator/_index", ["index": ["fields": ["target.auth.basic.password"]]]),
      ("GET", "/_replicator/_changes?feed=continuous&include_docs=true&timeout=1", nil),
      ("POST", "/_replicate", ["source": "_replicator", "target": "a"]),
      ("POST", "/_replicate", ["source": "http://self/_replicator", "target": "a"]),
    ]
    for (method, target, body) in ways {
      try expect(client.ask(method, target, body, user: "owner").status, equals: 403, "\(target)")
    }
    try expect(client.ask("GET", "/_replicator/_changes?filter=_design", user: "other").status, equals: 200)
    // A copy keeps its owner.
    let copy = try client.client.ask(
      "COPY", "/_replicator/one", headers: [("Destination", "two")], user: "other")
    expect(copy.status, equals: 201)
    try expect(!client.ask("GET", "/_replicator/two", user: "other").text.contains("secret"))
  }

  @Test("where everybody is let in, all is shown") func open() throws {
    let client = try client(.lmdb, hasUsers: false)
    try expect(client.ask("GET", "/_replicator/one").text.contains("secret1"))
  }
}
