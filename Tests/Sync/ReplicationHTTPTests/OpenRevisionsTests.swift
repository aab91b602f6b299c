import Blobs
import Documents
import Fleece
import Foundation
import HTTP
import Network
import Storage
import TestSupport
import Testing
import Touchstone
import Transport

@testable import Replication
@testable import ReplicationHTTP

@Suite("Pulls from servers without _bulk_get, whose documents come with their attachments")
struct HTTPOpenRevisionsTests {
  private let databases = TestDatabases()

  private func attachment(_ name: String, _ bytes: [UInt8], revpos: UInt64 = 1, _ packed: [UInt8]? = nil)
    -> CouchModel.Attachment
  {
    .init(
      name: name, contentType: "image/png", revpos: revpos, bytes: packed ?? bytes, length: bytes.count,
      isCompressed: packed != nil)
  }

  private static let words = [UInt8]("words and words and words".utf8)

  /// Documents with attachments of all kinds, a conflict with one on each branch, and tombstones.
  private func fill(_ couch: CouchServer) throws {
    let large = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ $0 >> 9) }
    let packed = try Gzip.encoded(Self.words)
    func add(
      _ id: String, _ history: [String], _ attachments: [CouchModel.Attachment], isDeleted: Bool = false
    ) {
      couch.model.add(
        id, .init(history: history, isDeleted: isDeleted, body: ["n": 1], attachments: attachments))
    }
    for number in 0..<20 { add("plain\(number)", ["1-a"], []) }
    add("empty", ["1-a"], [attachment("none", [])])
    add("large", ["1-a"], [attachment("b", large), attachment("a/ü \u{1F600}", [13, 10, 45, 45, 13, 10])])
    add("huge", ["1-a"], [attachment("b", [UInt8](repeating: 5, count: 5 << 20) + large)])
    add("packed", ["1-a"], [attachment("t", Self.words, packed), attachment("u", Self.words)])
    // Names that no header holds as they are.
    add(
      "names", ["1-a"],
      [
        attachment("a\"b", [1, 2]), attachment("a\\b", [3, 4]), attachment("c", [5, 6]),
        attachment("d", [5, 6]),
      ])
    add("both", ["2-b", "1-a"], [attachment("x", [1], revpos: 2)])
    add("both", ["2-c", "1-a"], [attachment("x", [2], revpos: 2)])
    add("gone", ["2-b", "1-a"], [], isDeleted: true)
    add("_design/app", ["1-a"], [attachment("logo", [9])])
    add("sl/ash+plus ü", ["1-a"], [attachment("x", [7, 8])])
  }

  @Test("all of a document comes in one answer", arguments: enginePairs.map(\.0), [400, 404])
  func together(_ engine: EngineName, _ status: Int) throws {
    let couch = try CouchServer()
    couch.model.state.withLock { $0.missing["_bulk_get"] = status }
    try fill(couch)
    let local = try databases.open(engine)
    let outcome = try couch.replicate(local, .pull)
    expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome.failed)")
    expectSame(couch.model.contents, try modelContents(local), "\(engine)")
    expect(couch.server.log.filter { $0.contains("_bulk_get") }.count, equals: 1)
    // Each document is asked for once, and no attachment by itself.
    let asked = couch.server.log.filter { !$0.hasPrefix("GET /db/_local") && $0.hasPrefix("GET /db/") }
    expect(asked.count, equals: 20 + 10 + 1, "\(asked)")
    try expect(local.check(deep: true) == [] && couch.model.complaints == [])
    // What is here goes to another server as it was.
    let copy = try CouchServer("copy")
    try expect(copy.replicate(local, .push).failed.isEmpty)
    expectSame(couch.model.contents, copy.model.contents, "pushed")
    expect(copy.model.complaints, equals: [])
  }

  @Test("a server that answers as JSON is understood, with the bytes in it or not") func json() throws {
    let couch = try CouchServer()
    couch.model.state.withLock { state in
      state.missing["_bulk_get"] = 404
      state.givesMultipart = false
    }
    try fill(couch)
    let local = try databases.open(.lmdb)
    for round in 2..<4 {
      let outcome = try couch.replicate(local, .pull)
      expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome.failed)")
      expectSame(couch.model.contents, try modelContents(local), "\(round)")
      // A later revision, of which only what is new is in the text.
      couch.model.add(
        "names",
        .init(
          history: (1...round).reversed().map { $0 == 1 ? "1-a" : "\($0)-x" }, isDeleted: false, body: [:],
          attachments: [
            attachment("c", [5, 6]), attachment("new", [UInt8(round)], revpos: UInt64(round)),
          ]))
    }
    try expect(local.check(deep: true) == [] && couch.model.complaints == [])
  }

  @Test("attachments of ancestors that are here don't come again, at most ten of which are named")
  func since() throws {
    let couch = try CouchServer()
    couch.model.state.withLock { $0.missing["_bulk_get"] = 404 }
    let local = try databases.open(.sqlite)
    let asked = Lock<[[String]?]>([])
    couch.server.faults.withLock {
      $0 = { request in
        guard request.path == "/db/doc" else { return nil }
        let since = request.query["atts_since"].flatMap {
          try? JSONValue(json: $0).array?.compactMap(\.string)
        }
        asked.withLock { $0.append(since) }
        return nil
      }
    }
    func pull(_ history: [String], _ attachments: [CouchModel.Attachment]) throws -> [String] {
      couch.model.add("doc", .init(history: history, isDeleted: false, body: [:], attachments: attachments))
      couch.server.forget()
      let outcome = try couch.replicate(local, .pull)
      expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome.failed)")
      expectSame(couch.model.contents, try modelContents(local), history[0])
      return couch.server.log.filter { $0.hasPrefix("GET /db/doc/") }.map { String($0.dropFirst(12)) }
    }
    try expect(pull(["1-a"], [attachment("x", [1, 2, 3])]), equals: [])
    try expect(
      pull(["2-b", "1-a"], [attachment("x", [1, 2, 3]), attachment("y", [4], revpos: 2)]), equals: [])
    expect(asked.withLock { $0 }, equals: [nil, ["1-a"]])
    // A merge took the attachment of another branch, and the server believes that it is here.
    try expect(pull(["3-c", "2-b", "1-a"], [attachment("x", [3, 2, 1])]), equals: ["x"])
    // Many branches.
    for number in 0..<15 {
      _ = try pull(["2-\(number)", "1-a"], [attachment("z", [UInt8(number)], revpos: 2)])
    }
    asked.withLock { $0 = [] }
    try expect(pull(["4-d", "3-c", "2-b", "1-a"], [attachment("x", [3, 2, 1])]), equals: [])
    let last = try #require(asked.withLock { $0 }.last ?? nil)
    expect(last.count <= 10 && last.first == "3-c")
    try expect(local.check(deep: true) == [] && couch.model.complaints == [])
  }

  @Test("a listener of this library without _bulk_get", arguments: enginePairs)
  func ownServer(_ here: EngineName, _ there: EngineName) throws {
    let (a, b) = (try databases.open(here), try databases.open(there))
    let server = try TestServer(["db": b])
    let proxy = try Forwarder(to: server.url) { $0.contains("_bulk_get") }
    // What CouchDB has compressed is served as it is.
    let couch = try CouchServer()
    try fill(couch)
    try expect(couch.replicate(b, .pull).failed.isEmpty)
    for number in 0..<10 {
      var document = MutableDocument(id: "doc\(number)")
      document.setAttachment("x/ü", try Blob([1, 2, UInt8(number)], contentType: "text/plain"))
      document.setAttachment(
        "same", try Blob([UInt8](repeating: 7, count: 100_000), contentType: "image/png"))
      document.set(try Blob([9, 9, UInt8(number)], contentType: "image/png"), forKey: "photo")
      try b.save(&document)
    }
    for suffix in ["b", "c"] {
      try b.apply(
        PulledRevision(
          id: "branches", history: ["2-\(String(repeating: suffix, count: 32))"], isDeleted: false,
          body: .value(["branch": .string(suffix)])))
    }
    func pull() throws -> Outcome {
      var configuration = ReplicatorConfiguration(a, try .httpURL(proxy.server.url + "db"))
      configuration.direction = .pull
      configuration.maximumRetries = 0
      let outcome = try run(configuration)
      expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome.failed)")
      try expectEqual(a, b)
      return outcome
    }
    _ = try pull()
    let (here, there) = (try modelContents(a), couch.model.contents)
    expectSame(there, here.filter { there[$0.key] != nil }, "by way of the listener")
    try expect(a.document("doc3")?.attachment("same")?.blob.digest.text.hasPrefix("sha1-"), equals: true)
    for number in 0..<5 {
      var document = try #require(try b.document("doc\(number)")).toMutable()
      document.setAttachment("new", try Blob([8, UInt8(number)], contentType: "text/plain"))
      try b.save(&document)
    }
    let second = try pull()
    expect(second.pulled.count == 5 && second.traffic.receivedBytes < 60_000, "\(second.traffic)")
    try expect(a.check(deep: true) == [] && b.check(deep: true) == [])
  }

  @Test("a merge takes attachments of both branches, and goes to servers as it is here") func merged() throws
  {
    let couch = try CouchServer()
    couch.model.state.withLock { $0.missing["_bulk_get"] = 404 }
    func add(_ history: [String], _ attachments: [CouchModel.Attachment]) {
      couch.model.add("doc", .init(history: history, isDeleted: false, body: [:], attachments: attachments))
    }
    add(["1-a"], [attachment("base", [0])])
    add(["2-b", "1-a"], [attachment("base", [0]), attachment("x", [1], revpos: 2)])
    add(
      ["2-c", "1-a"],
      [attachment("base", [0]), attachment("x", [2], revpos: 2), attachment("y", [3], revpos: 2)])
    let (local, other) = (try databases.open(.lmdb), try databases.open(.sqlite))
    try expect(couch.replicate(local).failed.isEmpty && couch.replicate(other).failed.isEmpty)
    let leaves = try local.leaves(of: "doc", includeDeleted: false)
    let (kept, lost) = (
      try #require(leaves.first { $0.id.description == "2-b" }),
      try #require(leaves.first { $0.id.description == "2-c" })
    )
    var body = kept.body?.object ?? [:]
    body["_attachments"] = lost.body?["_attachments"]
    try local.resolveConflict(of: "doc", keeping: kept.id, merged: .value(.object(body)))
    // What isn't that of the parent has the generation of the merge.
    let settled = try local.document("doc")?.value()["_attachments"]
    expect(settled?["base"]["revpos"].uint, equals: 1)
    expect(settled?["x"]["revpos"].uint == 3 && settled?["y"]["revpos"].uint == 3)
    try expect(couch.replicate(local).failed.isEmpty)
    expectSame(couch.model.contents, try modelContents(local), "merged")
    try expect(couch.replicate(other).failed.isEmpty)
    expectSame(couch.model.contents, try modelContents(other), "pulled")
    try expect(local.check(deep: true) == [] && couch.model.complaints == [])
  }

  // MARK: Answers

  private func parse(_ body: [UInt8], _ boundary: String, piece: Int, into database: Database) throws -> [(
    WireDocument, JSONObject
  )] {
    let answer = try MixedAnswer(boundary: boundary, maximumTextBytes: 1 << 20) {
      try database.replicatingChanges { try $0.requiredBlobs.makeWriter() }
    }
    var found: [(WireDocument, JSONObject)] = []
    for start in stride(from: 0, to: body.count, by: piece) {
      try body[start..<min(start + piece, body.count)].withUnsafeBytes { bytes in
        try answer.take(bytes) { item in
          guard !item.isError else { return }
          found.append((try item.text.withUnsafeBytes { try WireDocument($0, 0..<$0.count) }, item.stored))
        }
      }
    }
    try answer.finish()
    return found
  }

  @Test(
    "answers of CouchDB, in pieces of any size", .enabled(if: RecordedSession.directory != nil),
    arguments: ["replicator-01-pull", "replicator-02-pull-without-bulk-get"])
  func recorded(_ name: String) throws {
    let path = try #require(RecordedSession.directory) + name + ".jsonl"
    let database = try databases.open(.lmdb)
    var (documents, attachments) = (0, 0)
    for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
      let answer = try JSONValue(json: String(line))["res"]
      let header = answer["headers"].array?.first { $0[0].string?.lowercased() == "content-type" }?[1].string
      let type = HTTPMediaType(header ?? "")
      guard type.name == "multipart/mixed", let boundary = type[parameter: "boundary"] else { continue }
      let body =
        answer["body"].string.map { Array($0.utf8) }
        ?? answer["body_base64"].string.flatMap { Data(base64Encoded: $0) }.map { [UInt8]($0) } ?? []
      for piece in [1, 7, 100_000] {
        let found = try parse(
          body, boundary, piece: body.count > 10_000 ? max(piece, 64) : piece, into: database)
        expect(!found.isEmpty)
        for (document, stored) in found {
          let following = (document.attachments ?? [:]).filter { $0.value["follows"].bool == true }
          expect(Set(following.map(\.key)), equals: Set(stored.keys))
          attachments += stored.count
        }
        documents += found.count
      }
    }
    expect(documents > 0 && attachments > 0)
  }

  private static let text =
    "{\"_id\":\"doc\",\"_rev\":\"1-a\",\"_attachments\":{\"a\":{\"follows\":true,\"length\":3,\"revpos\":1,"
    + "\"digest\":\"md5-kAFQmDzST7DWlj99KOF/cg==\"}}}"
  private static func related(_ text: String, _ parts: String...) -> String {
    var body = "--o\r\nContent-Type: multipart/related; boundary=i\r\n\r\n--i\r\n\r\n\(text)"
    for part in parts { body += "\r\n--i\r\nContent-Disposition: attachment; filename=\"a\"\r\n\r\n\(part)" }
    return body + "\r\n--i--\r\n--o--"
  }

  @Test("answers that can't be read store nothing, and the document stays undone") func hostile() throws {
    let good = Self.related(Self.text, "abc")
    var bodies = [
      "", "--", "--o", "--o--", "abc", "--o\r\n\r\n{}\r\n--o--", "--o\r\n\r\nnull\r\n--o--", "[]",
      Self.related(Self.text, "abd"), Self.related(Self.text, "ab"), Self.related(Self.text, "abcd"),
      Self.related(Self.text, String(repeating: "x", count: 3 << 20)), Self.related(Self.text, "abc", "abc"),
      Self.related("{}", "abc"), Self.related("", "abc"),
      Self.related("{\"_id\":\"doc\",\"_rev\":\"1-a\"}", "abc"),
      Self.related(Self.text.replacing("doc", with: "other"), "abc"),
      Self.related(Self.text.replacing("1-a", with: "2-b"), "abc"),
      "--o\r\nContent-Type: multipart/related\r\n\r\n--i--\r\n--o--",
      "--o\r\nContent-Type: multipart/related; boundary=i\r\n\r\n--i--\r\n--o--",
      "--o\r\n" + String(repeating: "X: y\r\n", count: 20_000),
      String(repeating: "x", count: 1 << 20) + good,
    ]
    for length in stride(from: 1, to: good.utf8.count, by: isLong ? 1 : 7) {
      bodies.append(String(decoding: good.utf8.prefix(length), as: UTF8.self))
    }
    let local = try databases.open(.lmdb)
    func pull(_ body: String, boundary: String = "o") throws -> Outcome {
      let model = CouchModel("db")
      model.add("doc", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
      model.state.withLock { $0.missing["_bulk_get"] = 404 }
      let server = try MiniServer { request in
        guard request.path == "/db/doc" else { return model.answer(request) }
        var answer = MiniAnswer(200, body)
        answer.headers = [("Content-Type", "multipart/mixed; boundary=\"\(boundary)\"")]
        return answer
      }
      var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
      configuration.direction = .pull
      configuration.maximumRetries = 0
      configuration.connection.firstPause = 0.001
      return try run(configuration)
    }
    for body in bodies {
      _ = try pull(body)
      try expect(local.documentCount, equals: 0, "\(body.prefix(300))")
      try expect(local.check(deep: true), equals: [])
    }
    for boundary in ["", "other", String(repeating: "o", count: 300)] {
      let outcome = try pull(good, boundary: boundary)
      try expect(local.documentCount == 0 && outcome.failed["doc"] != nil)
    }
    try expect(pull(good).failed.isEmpty)
    try expect(local.documentCount, equals: 1)
  }

  @Test("one document that a server has lost, and one that a proxy hides") func missing() throws {
    let model = CouchModel("db")
    let local = try databases.open(.sqlite)
    for id in ["lost", "hidden", "there", "unmarked"] {
      model.add(id, .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
    }
    model.state.withLock { $0.missing["_bulk_get"] = 404 }
    let isHidden = Lock(true)
    let server = try MiniServer { request in
      // Some servers don't mark what is missing as an error.
      if request.path == "/db/unmarked" {
        var answer = MiniAnswer(
          200, "--o\r\nContent-Type: application/json\r\n\r\n{\"missing\":\"1-a\"}\r\n--o--")
        answer.headers = [("Content-Type", "multipart/mixed; boundary=o")]
        return answer
      }
      if request.path == "/db/lost" {
        return MiniAnswer(404, "{\"error\":\"not_found\",\"reason\":\"deleted\"}")
      }
      if request.path == "/db/hidden", isHidden.withLock({ $0 }) { return MiniAnswer(404, "<html>") }
      return model.answer(request)
    }
    func pull() throws -> Outcome {
      var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
      configuration.direction = .pull
      configuration.maximumRetries = 0
      configuration.connection.firstPause = 0.001
      return try run(configuration)
    }
    let first = try pull()
    expect(first.pulled == ["there"] && first.failed["hidden"]?.code == 502 && first.failed.count == 1)
    expect(first.status.error?.isTransient, equals: true)
    isHidden.withLock { $0 = false }
    let second = try pull()
    expect(second.status.error == nil && second.pulled == ["hidden"])
  }

  @Test("a login that ends amid a pull ends it, and no document counts as done") func expired() throws {
    let model = CouchModel("db")
    let local = try databases.open(.lmdb)
    model.state.withLock { $0.missing["_bulk_get"] = 404 }
    for number in 0..<20 {
      model.add("doc\(number)", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
    }
    let isOver = Lock(true)
    let server = try MiniServer { request in
      guard request.path.hasPrefix("/db/doc1"), isOver.withLock({ $0 }) else { return model.answer(request) }
      return MiniAnswer(401, "{\"error\":\"unauthorized\",\"reason\":\"over\"}")
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    configuration.direction = .pull
    try expect(run(configuration).status.error?.code, equals: 401)
    isOver.withLock { $0 = false }
    try expect(run(configuration).status.error == nil)
    expectSame(model.contents, try modelContents(local), "after the login")
  }

  @Test("a server that gives _bulk_get as several parts, as Sync Gateway does") func severalParts() throws {
    let couch = try CouchServer()
    couch.model.state.withLock { $0.givesMixedBulk = true }
    try fill(couch)
    let local = try databases.open(.lmdb)
    let outcome = try couch.replicate(local, .pull)
    expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome.failed)")
    expectSame(couch.model.contents, try modelContents(local), "parts")
    expect(!couch.server.log.contains("GET /db/plain1"))
    try expect(local.check(deep: true) == [] && couch.model.complaints == [])
  }

  @Test("a tombstone with attachments comes as a tombstone", arguments: [true, false])
  func tombstone(_ hasBulkGet: Bool) throws {
    let couch = try CouchServer()
    if !hasBulkGet { couch.model.state.withLock { $0.missing["_bulk_get"] = 404 } }
    couch.model.add(
      "doc",
      .init(history: ["2-b", "1-a"], isDeleted: true, body: ["n": 1], attachments: [attachment("x", [1])]))
    let local = try databases.open(.sqlite)
    let outcome = try couch.replicate(local, .pull)
    expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome.failed)")
    try expect(local.document("doc") == nil && local.leaves(of: "doc", includeDeleted: true).count == 1)
    try expect(couch.replicate(local, .pull).documents.isEmpty)
    try expect(local.check(deep: true), equals: [])
  }
}

/// A server that hands requests on, but for those that it says it doesn't know.
final class Forwarder: Sendable {
  let server: MiniServer

  init(to url: String, without isUnknown: @escaping @Sendable (String) -> Bool) throws {
    let client = try HTTPClient(HTTPClientSettings())
    let root = url.hasSuffix("/") ? String(url.dropLast()) : url
    server = try MiniServer { request in
      if isUnknown(request.path) {
        return MiniAnswer(404, "{\"error\":\"not_found\",\"reason\":\"missing\"}")
      }
      let query = request.query.map { "\($0.key)=\(HTTPDatabaseURL.escaped($0.value))" }.joined(
        separator: "&")
      guard let target = WebSocketURL(root + request.path + (query.isEmpty ? "" : "?" + query)) else {
        return MiniAnswer(414)
      }
      var forwarded = HTTPClientRequest(request.method, target)
      for name in ["accept", "content-type", "accept-encoding"] {
        if let value = request.headers.first(name) { forwarded.headers.append((name, value)) }
      }
      if !request.body.isEmpty { forwarded.body = .bytes(request.body) }
      let waiter = BlockingWaiter<Result<HTTPClientAnswer, TransportClose>>()
      client.collect(forwarded, limit: 64 << 20) { waiter.finish($0) }
      guard case .success(let result) = waiter.wait() else { return MiniAnswer(502) }
      var answer = MiniAnswer(result.status)
      answer.headers = ["content-type", "content-encoding"].compactMap { name in
        result.head.headers.first(name).map { (name, $0) }
      }
      answer.body = result.body
      return answer
    }
  }
}
