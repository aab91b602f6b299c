import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

@Suite("Hostile servers over HTTP") struct HTTPHostileTests {
  private let databases = TestDatabases()

  /// Pulls from a server that answers these requests with these texts, and the others as an empty database.
  private func pull(
    _ answers: [String: String], _ change: (inout ReplicatorConfiguration) -> Void = { _ in }
  ) throws -> (Outcome, Database) {
    let local = try databases.open(.lmdb)
    let model = CouchModel("db")
    let server = try MiniServer { request in
      let name = request.segments.count > 1 ? request.segments[1] : ""
      // Later pages are empty.
      if name == "_changes", request.query["since"] != "0" {
        return MiniAnswer(200, "{\"results\":[],\"last_seq\":9}")
      }
      guard let text = answers[name] ?? answers["*"] else { return model.answer(request) }
      return MiniAnswer(200, text)
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    configuration.direction = .pull
    configuration.maximumRetries = 0
    configuration.connection.firstPause = 0.001
    change(&configuration)
    let outcome = try run(configuration)
    try expect(local.check(deep: true), equals: [])
    return (outcome, local)
  }

  private static let row = "{\"seq\":1,\"id\":\"doc\",\"changes\":[{\"rev\":\"1-a\"}]}"
  private static func page(_ rows: String...) -> String {
    "{\"results\":[\(rows.joined(separator: ","))],\"last_seq\":9,\"pending\":0}"
  }

  @Test(
    "changes that can't be read end the pull with an error",
    arguments: [
      "", "[]", "{}", "null", "{\"results\":{}}", "{\"results\":[", "{\"results\":[1]}",
      "{\"results\":[{\"seq\":1}]}",
      "{\"results\":[{\"id\":1,\"seq\":1,\"changes\":[]}]}",
      "{\"results\":[{\"id\":\"a\",\"seq\":1,\"changes\":[{}]}]}",
      "{\"results\":[\(row)", "{\"results\":[\(row)],\"last_seq\":}", "\u{0}\u{1}", "<html>no</html>",
      String(repeating: "[", count: 200_000), "{\"results\":[\"\(String(repeating: "x", count: 5 << 20))\"]}",
      "{\"\(String(repeating: "x", count: 1 << 20))\":1}",
    ])
  func changes(_ text: String) throws {
    let (outcome, local) = try pull(["_changes": text])
    expect(outcome.status.error != nil)
    try expect(local.documentCount, equals: 0)
  }

  @Test(
    "documents that can't be read, weren't asked for or are others aren't stored",
    arguments: [
      "", "{}", "{\"results\":[]}", "{\"results\":[{\"id\":\"doc\",\"docs\":[]}]}",
      "{\"results\":[{\"docs\":1}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":null}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":{\"_id\":\"other\",\"_rev\":\"1-a\"}}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":{\"_id\":\"doc\",\"_rev\":\"2-b\"}}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":{\"_id\":\"doc\",\"_rev\":\"no\"}}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":{\"_id\":\"doc\",\"_rev\":\"1-a\",\"_revisions\":{\"start\":99999999999999999999,\"ids\":[\"a\"]}}}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":{\"_id\":\"doc\",\"_rev\":\"1-a\",\"_revisions\":{\"start\":1,\"ids\":[\"a\",\"b\"]}}}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":{\"_id\":\"doc\",\"_rev\":\"1-a\",\"x\":}}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"error\":{\"id\":\"doc\",\"rev\":\"1-a\",\"error\":\"not_found\"}}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"error\":7}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":{\"_id\":\"doc\",\"_rev\":\"1-a\",\"_attachments\":{\"a\":1}}}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":{\"_id\":\"doc\",\"_rev\":\"1-a\",\"_attachments\":{\"a\":{\"digest\":\"md5-x\",\"length\":99999999999999}}}}]}]}",
      "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":{\"_id\":\"doc\",\"_rev\":\"1-a\",\"_attachments\":{\"a\":{\"digest\":\"sha1-2jmj7l5rSw0yVb/vlWAYkK/YBwk=\",\"length\":1}}}}]}]}",
    ])
  func documents(_ text: String) throws {
    let (outcome, local) = try pull(["_changes": Self.page(Self.row), "_bulk_get": text, "doc": "[]"])
    try expect(local.documentCount, equals: 0, "\(outcome)")
  }

  @Test("a document that can't be read doesn't hold up the others") func oneOfMany() throws {
    let local = try databases.open(.sqlite)
    let model = CouchModel("db")
    for name in ["a", "b", "bad", "c", "d"] {
      model.add(name, .init(history: ["1-\(name)"], isDeleted: false, body: [:], attachments: []))
    }
    let isBroken = Lock(true)
    let server = try MiniServer { request in
      var answer = model.answer(request)
      if isBroken.withLock({ $0 }), ["/db/_bulk_get", "/db/bad"].contains(request.path) {
        answer.body = Array(
          String(decoding: answer.body, as: UTF8.self).replacing("\"_rev\":\"1-bad\"", with: "\"_rev\":\"?\"")
            .utf8)
      }
      return answer
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    configuration.direction = .pull
    let first = try run(configuration)
    expect(first.status.error == nil && first.pulled == ["a", "b", "c", "d"])
    expect(first.failed.count == 1 && first.documents.allSatisfy { $0.isUndone == ($0.id == "bad") })
    isBroken.withLock { $0 = false }
    try expect(run(configuration).pulled, equals: ["bad"])
  }

  @Test(
    "wrong answers to other questions are errors",
    arguments: ["", "[]", "7", "null", "{\"here\":[]}", "{\"a\":{\"missing\":7}}"])
  func others(_ text: String) throws {
    let local = try databases.open(.sqlite)
    try local.save("a", ["n": 1])
    for name in ["_revs_diff", "_bulk_docs", "_local"] {
      let model = CouchModel("db")
      let server = try MiniServer { request in
        request.segments.count > 1 && request.segments[1] == name
          ? MiniAnswer(200, text) : model.answer(request)
      }
      var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
      configuration.maximumRetries = 0
      configuration.resetsCheckpoint = true
      _ = try run(configuration)
      try expect(local.documentCount, equals: 1)
    }
  }

  @Test("an attachment with another MD5 or length isn't stored") func attachments() throws {
    for (digest, length) in [
      ("md5-AAAAAAAAAAAAAAAAAAAAAA==", 3), ("md5-kAFQmDzST7DWlj99KOF/cg==", 4),
      ("md5-kAFQmDzST7DWlj99KOF/cg==", 2),
    ] {
      let entry =
        "{\"digest\":\"\(digest)\",\"length\":\(length),\"content_type\":\"a/b\",\"revpos\":1,\"stub\":true}"
      let doc = "{\"_id\":\"doc\",\"_rev\":\"1-a\",\"_attachments\":{\"a\":\(entry)}}"
      let bulk = "{\"results\":[{\"id\":\"doc\",\"docs\":[{\"ok\":\(doc)}]}]}"
      let (outcome, local) = try pull(["_changes": Self.page(Self.row), "_bulk_get": bulk, "doc": "abc"])
      try expect(local.documentCount, equals: 0)
      expect(outcome.failed["doc"] != nil)
    }
  }

  @Test("endless feeds, and numbers that are too large, end") func numbers() throws {
    let rows = (0..<3_000).map { "{\"seq\":\($0),\"id\":\"d\($0)\",\"changes\":[{\"rev\":\"1-a\"}]}" }
    let (outcome, _) = try pull(["_changes": "{\"results\":[\(rows.joined(separator: ","))],\"last_seq\":9}"])
    expect(outcome.status.error != nil)
    let leaves = (0..<20_000).map { "{\"rev\":\"1-\($0)\"}" }.joined(separator: ",")
    let wide = (0..<8).map { "{\"seq\":\($0),\"id\":\"d\($0)\",\"changes\":[\(leaves)]}" }
    try expect(
      pull(["_changes": "{\"results\":[\(wide.joined(separator: ","))],\"last_seq\":9}"]).0.status.error
        != nil)
    let huge = "{\"seq\":1e999,\"id\":\"doc\",\"changes\":[{\"rev\":\"99999999999999999999999-a\"}]}"
    let (_, local) = try pull(["_changes": Self.page(huge)])
    try expect(local.documentCount, equals: 0)
  }
}
