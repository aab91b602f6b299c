// What a replicator makes of single messages of its peer, row by row.

import BLIP
import Blobs
import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationBLIP

@Suite("Messages to a replicator") struct ClientMessageTests {
  private let databases = TestDatabases()

  private func database(_ documents: [String: JSONValue] = [:]) throws -> Database {
    let database = try databases.open(.sqlite)
    for (id, body) in documents.sorted(by: { $0.key < $1.key }) {
      var document = MutableDocument(id: id, body)
      try database.save(&document)
    }
    return database
  }

  private static func refuse(_ domain: String, _ code: Int) -> ScriptedServer.Answer {
    { _, request in request.reply(BLIPErrorReply(domain: domain, code: code)) }
  }

  // MARK: Collections

  @Test("a peer that knows no getCollections is asked in the old form") func fallsBackAfter404() throws {
    let server = ScriptedServer(["getCollections": Self.refuse("BLIP", 404)])
    let outcome = try replicate(try database(["a": [:]]), server)
    expect(outcome.status.error == nil && outcome.pushed == ["a"])
    expect(server.requests.first?.profile, equals: "getCollections")
    expect(server.requests("getCheckpoint").count, equals: 1)
    expect(server.requests.allSatisfy { $0["collection"] == nil })
  }

  @Test("a peer that refuses the property after getCollections gets requests without it")
  func fallsBackAfter400()
    throws
  {
    var answers: [String: ScriptedServer.Answer] = [:]
    for (profile, usual) in ScriptedServer.usual where profile != "getCollections" {
      answers[profile] = { server, request in
        if request.message.properties["collection"] != nil {
          request.reply(BLIPErrorReply(domain: "HTTP", code: 400, text: "inappropriate use"))
        } else {
          usual(server, request)
        }
      }
    }
    let server = ScriptedServer(answers)
    let outcome = try replicate(try database(["a": [:], "b": [:]]), server)
    expect(outcome.status.error == nil && outcome.pushed == ["a", "b"])
    expect(server.requests("rev").allSatisfy { $0["collection"] == nil })
    expect(server.checkpoint.withLock { $0 }?["local"], equals: 2)
  }

  @Test("after a request with the property was answered, 400 is an error") func noFallBackLater() throws {
    let server = ScriptedServer(["subChanges": Self.refuse("HTTP", 400)])
    let outcome = try replicate(try database(["a": [:]]), server) { $0.direction = .pull }
    // The form isn't proven yet: it is tried once without.
    expect(outcome.status.error?.code, equals: 400)
    expect(server.requests("subChanges").count, equals: 2)
  }

  @Test("a peer that refuses the old form is asked for its collections") func oldFormFirst() throws {
    let server = ScriptedServer(
      subprotocol: "BLIP_3+CBMobile_2",
      [
        "getCheckpoint": Self.refuse("HTTP", 400)
      ])
    let outcome = try replicate(try database(["a": [:]]), server)
    expect(outcome.status.error == nil && outcome.pushed == ["a"])
    expect(server.requests.map(\.profile).prefix(2), equals: ["getCheckpoint", "getCollections"])
    expect(server.requests("rev").allSatisfy { $0["collection"] == "0" })
  }

  @Test(
    "a peer without the default collection, or with an answer that can't be read, ends the replication",
    arguments: [("[null]", 404), ("[]", 400), ("{}", 400), ("x", 400), ("[{},{}]", 400), ("", 400)])
  func noDefaultCollection(_ answer: String, _ code: Int) throws {
    let server = ScriptedServer([
      "getCollections": { _, request in request.reply(BLIPReply(body: .bytes(Array(answer.utf8)))) }
    ])
    let outcome = try replicate(try database(["a": [:]]), server)
    expect(outcome.status.error?.domain == .http && outcome.status.error?.code == code)
    expect(server.requests("rev").isEmpty)
  }

  @Test("both forms are refused: the error is that of the second") func neitherForm() throws {
    let server = ScriptedServer([
      "getCollections": Self.refuse("BLIP", 404), "getCheckpoint": Self.refuse("HTTP", 403),
    ])
    let outcome = try replicate(try database(), server)
    expect(outcome.status.error?.code, equals: 403)
  }

  // MARK: Push

  private static func big(_ text: String) -> JSONValue {
    ["text": .string(String(repeating: "x", count: 400)), "name": .string(text)]
  }

  /// Pushes a document, and then an edit of it as a delta, which is answered by `answer`.
  private func pushDelta(_ answer: @escaping ScriptedServer.Answer) throws -> (
    ScriptedServer, Outcome, Database
  ) {
    let database = try database(["a": Self.big("one")])
    try expect(replicate(database, ScriptedServer()) { $0.direction = .push }.pushed, equals: ["a"])
    var document = try #require(try database.document("a")).toMutable()
    document["name"] = "two"
    try database.save(&document)
    let server = ScriptedServer(["rev": answer])
    return (server, try replicate(database, server) { $0.direction = .push }, database)
  }

  @Test("a delta that the peer can't apply is followed by the whole body", arguments: [422, 400, 500])
  func failingDelta(_ code: Int) throws {
    let (server, outcome, _) = try pushDelta { _, request in
      if request.message.properties["deltaSrc"] != nil {
        request.reply(BLIPErrorReply(domain: "HTTP", code: code))
      } else {
        request.reply()
      }
    }
    let sent = server.requests("rev")
    expect(sent.count == 2 && outcome.pushed == ["a"] && outcome.status.error == nil)
    expect(sent.first?.json == ["name": "two"] && sent.last?.json == Self.big("two"))
    expect(sent.last?["deltaSrc"] == nil && sent.last?["rev"] == sent.first?["rev"])
  }

  @Test("a whole body isn't sent after a delta that is refused for another reason", arguments: [403, 409])
  func refusedDelta(_ code: Int) throws {
    let (server, outcome, _) = try pushDelta { _, request in
      request.reply(BLIPErrorReply(domain: "HTTP", code: code))
    }
    // What is forbidden is sent once more, as a delta.
    let sent = server.requests("rev")
    expect(sent.count == (code == 403 ? 2 : 1) && outcome.failed["a"]?.code == code)
    expect(sent.allSatisfy { $0["deltaSrc"] != nil })
  }

  @Test("a revision that is refused for good counts as done, after another failure it doesn't")
  func refusedRevisions() throws {
    for (domain, code, isDone) in [
      ("HTTP", 403, true), ("HTTP", 422, true), ("HTTP", 404, true), ("HTTP", 400, true), ("BLIP", 501, true),
      ("LiteCore", 7, true), ("HTTP", 503, false), ("HTTP", 408, false), ("HTTP", 429, false),
      ("HTTP", 500, false), ("HTTP", 502, false), ("HTTP", 504, false), ("WebSocket", 1001, false),
    ] {
      let database = try database(["a": ["n": 1], "b": ["n": 2], "c": ["n": 3]])
      let server = ScriptedServer([
        "rev": { _, request in
          if request.message.properties["id"] == "b" {
            request.reply(BLIPErrorReply(domain: domain, code: code))
          } else {
            request.reply()
          }
        }
      ])
      let outcome = try replicate(database, server) { $0.direction = .push }
      expect(outcome.pushed == ["a", "c"] && outcome.failed["b"]?.code == code, "\(domain) \(code)")
      expect(server.checkpoint.withLock { $0 }?["local"], equals: (isDone ? 3 : 1), "\(domain) \(code)")
      expect((outcome.status.error == nil), equals: isDone, "\(domain) \(code)")
      try expect(database.replicating { try $0.mark(of: "b", remote: 1) } == nil)
    }
  }

  @Test(
    "a status of a proposal other than 0, 304 and 409 is an error of the document",
    arguments: [("[500]", 500), ("[403]", 403), (#"[{"status":413}]"#, 413), (#"["x"]"#, 500), ("[{}]", 500)])
  func refusedProposals(_ answer: String, _ code: Int) throws {
    let server = ScriptedServer([
      "proposeChanges": { _, request in
        request.reply(BLIPReply(["blobs": "true"], body: .bytes(Array(answer.utf8))))
      }
    ])
    let outcome = try replicate(try database(["a": [:]]), server) { $0.direction = .push }
    expect(outcome.failed["a"]?.code, equals: code)
    expect(server.requests("rev").isEmpty)
  }

  @Test(
    "an answer to proposals that can't be read ends the replication", arguments: ["x", "{}", "[0,0]", "1"])
  func badAnswers(_ answer: String) throws {
    let server = ScriptedServer([
      "proposeChanges": { _, request in request.reply(BLIPReply(body: .bytes(Array(answer.utf8)))) }
    ])
    let outcome = try replicate(try database(["a": [:]]), server) { $0.direction = .push }
    expect(outcome.status.error?.code, equals: 400)
    expect(server.checkpoint.withLock { $0 } == nil)
  }

  @Test("histories are cut as the peer says, within bounds") func maximumHistory() throws {
    for (maximum, count) in [
      ("3", 3), ("0", 1), ("-1", 1), ("x", 20), ("99999999999999999999", 20), ("1000000", 29),
    ] {
      let database = try databases.open(.sqlite) { $0.maximumTreeDepth = 100 }
      for generation in 1...30 {
        var document = try database.document("a")?.toMutable() ?? MutableDocument(id: "a", [:])
        document["n"] = JSONValue(generation)
        try database.save(&document)
      }
      let server = ScriptedServer([
        "proposeChanges": { _, request in
          request.reply(BLIPReply(["maxHistory": maximum, "blobs": "true"], body: .bytes(Array("[]".utf8))))
        }
      ])
      _ = try replicate(database, server) { $0.direction = .push }
      let history = server.requests("rev").first?["history"]?.split(separator: ",").count
      expect(history, equals: count, "\(maximum)")
    }
  }

  @Test("the peer gets blobs and proofs of them, and errors for others") func blobs() throws {
    let database = try database()
    var document = MutableDocument(id: "a", [:])
    document.set(try Blob(Array("abc".utf8), contentType: "image/png"), forKey: "photo")
    try database.save(&document)
    let digest = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="
    let results = Lock<[String: String]>([:])
    let server = ScriptedServer([
      "rev": { server, request in
        let asks: [(String, BLIPProperties, [UInt8])] = [
          ("getAttachment", ["digest": digest], []), ("proveAttachment", ["digest": digest], [1, 2, 3, 4]),
          ("proveAttachment", ["digest": digest], []),
          ("getAttachment", ["digest": "sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA="], []), ("getAttachment", [:], []),
        ]
        let left = Lock(asks.count)
        for (number, (profile, properties, body)) in asks.enumerated() {
          server.send(BLIPRequest(profile, properties, body: .bytes(body))) { reply in
            results.withLock {
              $0["\(number)"] = reply.error.map { "\($0.domain) \($0.code)" } ?? reply.text
            }
            let isLast = left.withLock { left in
              left -= 1
              return left == 0
            }
            if isLast { request.reply() }
          }
        }
      }
    ])
    try expect(replicate(database, server) { $0.direction = .push }.pushed, equals: ["a"])
    expect(
      results.withLock { $0 },
      equals: [
        "0": "abc", "1": "sha1-bawW0S07+kSMVzqOKJZSUR9fPG0=", "2": "HTTP 400", "3": "HTTP 404",
        "4": "BLIP 400",
      ])
  }

  // MARK: Pull

  /// A server that offers one list, does something with the answer, and says that this is all.
  private func pullServer(
    _ list: String, _ more: [String: ScriptedServer.Answer] = [:],
    _ answered: @escaping @Sendable (ScriptedServer, BLIPMessage) -> Void
  ) -> ScriptedServer {
    var answers = more
    answers["subChanges"] = { server, request in
      request.reply()
      server.offer(list) { reply in
        answered(server, reply)
        server.offer("[]")
      }
    }
    return ScriptedServer(subprotocol: "BLIP_3+CBMobile_2", answers)
  }

  @Test(
    "documents that the user can't read any more are purged, if that is wanted", arguments: [2, 4, 6, 3, 7])
  func lostAccess(_ flags: Int) throws {
    for purges in [true, false] {
      let database = try database(["a": ["n": 1], "b": ["n": 2]])
      let answer = Lock<JSONValue?>(nil)
      let server = pullServer(#"[["5:1","a","1-aa",\#(flags)],["5:2","c","1-aa",\#(flags)]]"#) { _, reply in
        answer.withLock { $0 = reply.json }
      }
      let outcome = try replicate(database, server) {
        $0.direction = .pull
        $0.purgesOnLostAccess = purges
      }
      expect(outcome.status.error == nil)
      try expect((database.document("a") == nil), equals: purges)
      try expect(database.document("b") != nil)
      expect(answer.withLock { $0 }, equals: [])
      expect(server.checkpoint.withLock { $0 }?["remote"], equals: "5:2")
      expect(server.requests("subChanges").first?["revocations"], equals: (purges ? "true" : nil))
    }
  }

  @Test("a revision that can't be sent counts as done", arguments: ["norev", "rev"]) func norev(
    _ profile: String
  )
    throws
  {
    let server = pullServer(#"[[7,"a","1-aa"],[8,"b","1-bb"]]"#) { server, _ in
      server.send(BLIPRequest(profile, ["id": "a", "rev": "1-aa", "sequence": "7", "error": "404"]))
      server.rev(["id": "b", "rev": "1-bb", "sequence": "8"], #"{"n":1}"#)
    }
    let database = try database()
    let outcome = try replicate(database, server) { $0.direction = .pull }
    expect(outcome.status.error == nil && outcome.pulled == ["b"])
    expect(server.checkpoint.withLock { $0 }?["remote"], equals: 8)
    try expect(database.document("a") == nil)
  }

  @Test("a newer revision may come in the place of the one that was asked for") func replacedRev() throws {
    let server = pullServer(#"[[7,"a","1-aa"]]"#) { server, _ in
      server.rev(
        ["id": "a", "rev": "3-cc", "replacedRev": "1-aa", "sequence": "7", "history": "2-bb,1-aa"],
        #"{"n":3}"#)
    }
    let database = try database()
    let outcome = try replicate(database, server) { $0.direction = .pull }
    expect(outcome.pulled == ["a"] && server.checkpoint.withLock { $0 }?["remote"] == 7)
    try expect(database.document("a")?.revisionID.description, equals: "3-cc")
    try expect(database.replicating { try $0.mark(of: "a", remote: 1) }, equals: "3-cc")
    expect(server.requests("subChanges").first?["sendReplacementRevs"], equals: "1")
  }

  @Test("a list that wants no answer is ignored, unless it is empty") func noReplyList() throws {
    let server = ScriptedServer([
      "subChanges": { server, request in
        request.reply()
        let properties: BLIPProperties =
          request.message.properties["collection"].map { ["collection": $0] } ?? [:]
        var list = BLIPRequest(
          "changes", properties, body: .bytes(Array(#"[[7,"a","1-aa"]]"#.utf8)))
        list.isNoReply = true
        server.send(list)
        server.offer("[]")
      }
    ])
    let outcome = try replicate(try database(), server) { $0.direction = .pull }
    expect(outcome.status.error == nil && outcome.documents == [])
    expect(server.checkpoint.withLock { $0 } == nil)
  }

  @Test("what wasn't asked for isn't stored") func unwanted() throws {
    let errors = Lock<[String]>([])
    let server = pullServer(#"[[7,"a","1-aa"]]"#) { server, _ in
      for (id, revision) in [("b", "1-aa"), ("a", "1-bb"), ("a", "2-aa")] {
        server.rev(["id": id, "rev": revision, "sequence": "7"], "{}") { reply in
          errors.withLock { $0.append(reply.error.map { "\($0.domain) \($0.code)" } ?? "none") }
        }
      }
      server.rev(["id": "a", "rev": "1-aa", "sequence": "7"], "{}")
    }
    let database = try database()
    let outcome = try replicate(database, server) { $0.direction = .pull }
    expect(outcome.pulled == ["a"] && errors.withLock { $0 } == ["HTTP 400", "HTTP 400", "HTTP 400"])
    try expect(database.lastSequence, equals: 1)
  }

  @Test("changes that weren't asked for are refused") func unwantedChanges() throws {
    let error = Awaited<String>()
    let server = ScriptedServer([
      "proposeChanges": { server, request in
        server.offer(#"[[1,"a","1-aa"]]"#) { reply in
          error.set(reply.error.map { "\($0.domain) \($0.code)" } ?? "none")
          request.reply(BLIPReply(["blobs": "true"], body: .bytes(Array("[]".utf8))))
        }
      }
    ])
    try expect(replicate(try database(["x": [:]]), server) { $0.direction = .push }.pushed, equals: ["x"])
    try expect(error.get(), equals: "HTTP 403")
  }

  @Test("a revision that can't be read is refused, the checkpoint doesn't pass it, and the others come")
  func badRevisions() throws {
    let cases: [(BLIPProperties, String, Int)] = [
      (["id": "a", "rev": "1-aa"], "{}", 400),
      (["id": "a", "rev": "1-aa", "sequence": "7"], "x", 400),
      (["id": "a", "rev": "1-aa", "sequence": "7"], "[]", 400),
      (["id": "a", "rev": "1-aa", "sequence": "7", "history": "1-bb"], "{}", 400),
      (
        [
          "id": "a", "rev": "1-aa", "sequence": "7",
          "history": (1...5_001).map { "\($0)-aa" }.joined(separator: ","),
        ], "{}", 400
      ),
    ]
    for (properties, body, code) in cases {
      let got = Lock<Int?>(nil)
      let server = pullServer(#"[[6,"z","1-zz"],[7,"a","1-aa"],[8,"b","1-bb"]]"#) { server, _ in
        server.rev(["id": "z", "rev": "1-zz", "sequence": "6"], "{}")
        server.rev(properties, body) { reply in got.withLock { $0 = reply.error?.code } }
        server.rev(["id": "b", "rev": "1-bb", "sequence": "8"], "{}")
      }
      let database = try database()
      let outcome = try replicate(database, server) { $0.direction = .pull }
      expect(outcome.pulled == ["b", "z"] && outcome.failed["a"]?.code == code, "\(properties) \(body)")
      expect(got.withLock { $0 } == code && outcome.status.error == nil, "\(properties) \(body)")
      expect(server.checkpoint.withLock { $0 }?["remote"], equals: 6, "\(properties) \(body)")
    }
  }

  @Test("after a delta that can't be applied, the whole body is awaited") func failingDeltaHere() throws {
    let got = Lock<Int?>(nil)
    let server = pullServer(#"[[7,"a","1-aa"]]"#) { server, _ in
      let properties: BLIPProperties = ["id": "a", "rev": "1-aa", "sequence": "7"]
      var delta = properties
      delta.append("deltaSrc", "1-bb")
      server.rev(delta, "{}") { reply in
        got.withLock { $0 = reply.error?.code }
        server.rev(properties, #"{"n":1}"#)
      }
    }
    let database = try database()
    let outcome = try replicate(database, server) { $0.direction = .pull }
    expect(got.withLock { $0 } == 422 && outcome.pulled == ["a"])
    expect(server.checkpoint.withLock { $0 }?["remote"], equals: 7)
  }

  @Test(
    "a list that can't be read is refused",
    arguments: [
      "x", "{}", "[1]", #"[["a","1-aa"]]"#, #"[[1,2,3]]"#, #"[[1,"a"]]"#,
      #"[["\#(String(repeating: "s", count: 5_000))","a","1-aa"]]"#,
    ])
  func badLists(_ list: String) throws {
    let code = Lock<Int?>(nil)
    let server = pullServer(list) { _, reply in code.withLock { $0 = reply.error?.code } }
    let database = try database()
    _ = try replicate(database, server) { $0.direction = .pull }
    expect(code.withLock { $0 }, equals: 400)
    try expect(database.lastSequence, equals: 0)
  }

  @Test("IDs that can't be stored here are passed over") func invalidIDs() throws {
    let long = String(repeating: "i", count: 481)
    let server = pullServer(#"[[1,"\#(long)","1-aa"],[2,"","1-aa"],[3,"a","x"],[4,"b","0-a"]]"#) { _, _ in }
    let outcome = try replicate(try database(), server) { $0.direction = .pull }
    expect(outcome.status.error == nil && outcome.failed.count == 4)
    expect(server.checkpoint.withLock { $0 }?["remote"], equals: 4)
  }

  @Test("a blob that is longer than declared, wrong, or missing keeps its revision out") func pulledBlobs()
    throws
  {
    let digest = "sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0="
    for answer in ["abcd", "abd", "ab", nil, "abc"] as [String?] {
      let server = pullServer(
        #"[[7,"a","1-aa"]]"#,
        [
          "getAttachment": { _, request in
            guard let answer else { return _ = request.reply(BLIPErrorReply(domain: "HTTP", code: 404)) }
            request.reply(BLIPReply(body: .bytes(Array(answer.utf8))))
          }
        ]
      ) { server, _ in
        server.rev(
          ["id": "a", "rev": "1-aa", "sequence": "7"],
          #"{"p":{"@type":"blob","digest":"\#(digest)","length":3,"content_type":"image/png"}}"#)
      }
      let database = try database()
      let outcome = try replicate(database, server) { $0.direction = .pull }
      expect(outcome.pulled, equals: (answer == "abc" ? ["a"] : []), "\(answer ?? "none")")
      expect((outcome.failed["a"] == nil), equals: (answer == "abc"))
      try expect((database.document("a") != nil), equals: (answer == "abc"))
      expect((server.checkpoint.withLock { $0 }?["remote"] == 7), equals: (answer == "abc"))
      try expect(database.check(deep: true).isEmpty)
      let request = server.requests("getAttachment").first
      // Images are compressed already.
      expect(request?["digest"] == digest && request?["compress"] == nil && request?["docID"] == "a")
    }
  }

  @Test("the peer's own proposals are refused unless they are empty") func proposalsOfThePeer() throws {
    let errors = Lock<[String]>([])
    let server = pullServer("[]") { _, _ in }
    _ = server
    let active = ScriptedServer([
      "subChanges": { server, request in
        request.reply()
        for list in ["[]", #"[["a","1-aa"]]"#] {
          server.send(BLIPRequest("proposeChanges", [:], body: .bytes(Array(list.utf8)))) { reply in
            errors.withLock { $0.append(reply.error.map { "\($0.domain) \($0.code)" } ?? "none") }
            if list != "[]" { server.offer("[]") }
          }
        }
      }
    ])
    _ = try replicate(try database(), active) { $0.direction = .pull }
    expect(errors.withLock { $0 }, equals: ["none", "HTTP 403"])
  }
}
