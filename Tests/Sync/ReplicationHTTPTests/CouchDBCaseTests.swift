import Documents
import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

/// The cases that CouchDB tests its replicator with, as far as they show on the wire, with this side in its place.
@Suite("The cases of CouchDB's own replicator") struct CouchDBCaseTests {
  private let databases = TestDatabases()

  @Test("documents with very many leaves, and then with attachments of each", arguments: [true, false])
  func manyLeaves(_ hasBulkGet: Bool) throws {
    let (source, target) = (try CouchServer(), try CouchServer("copy"))
    if !hasBulkGet { source.model.state.withLock { $0.missing["_bulk_get"] = 404 } }
    let local = try databases.open(.lmdb)
    let counts = ["doc1": 10, "doc2": isShort ? 40 : 100, "doc3": isShort ? 110 : 210]
    func pass() throws {
      let pulled = try source.replicate(local, .pull)
      let pushed = try target.replicate(local, .push)
      expect(pulled.failed.isEmpty && pushed.failed.isEmpty)
      expectSame(source.model.contents, try modelContents(local), "pulled")
      expectSame(source.model.contents, target.model.contents, "pushed")
    }
    for (id, count) in counts {
      for number in 0...count {
        source.model.add(
          id, .init(history: ["1-\(number)"], isDeleted: false, body: ["value": "\(number)"], attachments: [])
        )
      }
    }
    try pass()
    for (id, count) in counts {
      for number in 0...count {
        let attachments = (1...2).map {
          attachment("att_\($0)_\(number)", Array("\(id) \(number) \($0)".utf8), revpos: 2)
        }
        source.model.add(
          id,
          .init(
            history: ["2-\(number)", "1-\(number)"], isDeleted: false, body: ["value": "\(number)"],
            attachments: attachments))
      }
    }
    try pass()
    expect(source.model.contents["doc3"]?.count, equals: isShort ? 111 : 211)
    expect(source.model.complaints == [] && target.model.complaints == [])
    try expect(local.check(deep: true), equals: [])
  }

  @Test("stubs of ancestors that the target has forgotten", arguments: [EngineName.lmdb, .sqlite])
  func missingStubs(_ engine: EngineName) throws {
    let target = try CouchServer()
    target.model.state.withLock { $0.revisionLimit = 3 }
    let local = try databases.open(engine)
    var document = MutableDocument(id: "doc1")
    document.setAttachment(
      "doc1_att1", try Blob([UInt8](repeating: 7, count: 6_000), contentType: "application/foobar"))
    try local.save(&document)
    try expect(target.replicate(local, .push).failed.isEmpty)
    for number in 0..<6 { try local.update("doc1") { $0["value"] = .int(Int64(number)) } }
    try expect(target.replicate(local, .push).failed.isEmpty)
    let pushed = try #require(target.model.contents["doc1"]?.first { $0.hasPrefix("7-") })
    try expect(modelContents(local)["doc1"]?.contains(pushed) == true && pushed.contains("doc1_att1"))
    expect(target.model.complaints, equals: [])
  }

  @Test("a server that takes only small requests gets them in parts") func smallRequests() throws {
    let (source, target) = (CouchModel("db"), CouchModel("copy"))
    func limited(_ model: CouchModel) throws -> MiniServer {
      try MiniServer { request in
        request.body.count > 10_000
          ? MiniAnswer(413, #"{"error":"too_large","reason":"the request entity is too large"}"#)
          : model.answer(request)
      }
    }
    let (from, to) = (try limited(source), try limited(target))
    let local = try databases.open(.lmdb)
    let text = JSONValue.string(String(repeating: "x", count: 3_000))
    // Five that fit alone, one that doesn't, one with an attachment that doesn't.
    for number in 1...5 {
      source.add(
        "doc\(number)", .init(history: ["1-a"], isDeleted: false, body: ["x": text], attachments: []))
    }
    // So many that neither _bulk_get nor _revs_diff can name all of them.
    for number in 0..<1_000 {
      source.add(
        "a rather long name of a document, \(number)",
        .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
    }
    let large = JSONValue.string(String(repeating: "x", count: 12_000))
    source.add("large", .init(history: ["1-a"], isDeleted: false, body: ["x": large], attachments: []))
    source.add(
      "attached",
      .init(
        history: ["1-a"], isDeleted: false, body: ["x": text],
        attachments: [attachment("att1", [UInt8](repeating: 1, count: 70_000))]))
    func replicate(_ url: String, _ direction: ReplicatorConfiguration.Direction) throws -> Outcome {
      var configuration = ReplicatorConfiguration(local, try .httpURL(url))
      configuration.direction = direction
      configuration.maximumRetries = 0
      configuration.connection.firstPause = 0.001
      return try run(configuration)
    }
    let pulled = try replicate(from.url + "db", .pull)
    expect(pulled.status.error == nil && pulled.failed.isEmpty, "\(pulled.status)")
    expectSame(source.contents, try modelContents(local), "pulled")
    let pushed = try replicate(to.url + "copy", .push)
    expect(pushed.status.error == nil && pushed.failed.mapValues(\.code) == ["large": 413, "attached": 413])
    let expected = source.contents.filter { !["large", "attached"].contains($0.key) }
    expectSame(expected, target.contents, "pushed")
    expect(source.complaints == [] && target.complaints == [])
  }

  @Test(
    "what is too large for the target fails for good, and comes from a source all the same",
    arguments: [true, false])
  func sizeLimits(takesMultipart: Bool) throws {
    let couch = try CouchServer()
    couch.model.state.withLock { state in
      state.takesMultipart = takesMultipart
      state.maximumBytes = 5_000
      state.maximumAttachmentBytes = 10_000
    }
    let local = try databases.open(.sqlite)
    for number in 0..<20 { try local.save("small\(number)", ["n": .int(Int64(number))]) }
    try local.save("large", ["x": .string(String(repeating: "x", count: 9_000))])
    for (id, count) in [("attached", 9_000), ("too much", 11_000)] {
      var document = MutableDocument(id: id)
      document.setAttachment("a", try Blob([1, 2], contentType: "image/png"))
      document.setAttachment("b", try Blob([UInt8](repeating: 7, count: count), contentType: "image/png"))
      try local.save(&document)
    }
    let first = try couch.replicate(local, .push)
    expect(first.status.error == nil && first.pushed.count == 21)
    expect(first.failed.mapValues(\.code), equals: ["large": 413, "too much": 413])
    expect(first.documents.allSatisfy { !$0.isUndone })
    expect(couch.model.contents["attached"] != nil && couch.model.contents["too much"] == nil)
    // They count as done, until they change.
    try expect(couch.replicate(local, .push).documents.isEmpty)
    try local.update("large") { $0["x"] = "short" }
    var document = try #require(try local.document("too much")).toMutable()
    document.setAttachment("b", try Blob([3], contentType: "image/png"))
    try local.save(&document)
    try expect(couch.replicate(local, .push).pushed, equals: ["large", "too much"])
    expectSame(couch.model.contents, try modelContents(local), "pushed")
    // Nothing is too large for the database here.
    couch.model.add(
      "from there",
      .init(
        history: ["1-a"], isDeleted: false, body: ["x": .string(String(repeating: "x", count: 9_000))],
        attachments: [attachment("a", [UInt8](repeating: 7, count: 11_000))]))
    try expect(couch.replicate(local, .pull).pulled, equals: ["from there"])
    expectSame(couch.model.contents, try modelContents(local), "pulled")
    try expect(local.check(deep: true) == [] && couch.model.complaints == [])
  }

  @Test(
    "a document that the target refuses for what it is counts as done",
    arguments: [
      (401, "unauthorized", "vdu"), (403, "forbidden", "vdu"), (413, "too_large", "too_large"),
      (415, "unsupported_media_type", "bad_media"),
      (400, "bad_request", "Attachment name '_foo' starts with prohibited character '_'"),
    ] as [(Int, String, String)])
  func refused(_ status: Int, _ error: String, _ reason: String) throws {
    let model = CouchModel("db")
    let local = try databases.open(.sqlite)
    for number in 1...6 {
      var document = MutableDocument(id: "\(number)")
      if number == 6 { document.setAttachment("x", try Blob([1, 2], contentType: "text/plain")) }
      try local.save(&document)
    }
    let server = try MiniServer { request in
      guard request.method == "PUT", request.path == "/db/6" else { return model.answer(request) }
      return MiniAnswer(status, #"{"error":"\#(error)","reason":"\#(reason)"}"#)
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    configuration.direction = .push
    let first = try run(configuration)
    expect(first.status.error == nil && first.pushed == ["1", "2", "3", "4", "5"])
    expect(first.failed.mapValues(\.code) == ["6": status] && first.documents.allSatisfy { !$0.isUndone })
    try expect(run(configuration).documents.isEmpty)
  }

  @Test("any refusal of _bulk_get leads to documents one by one", arguments: [413, 418, 501])
  func bulkGetRefused(_ status: Int) throws {
    let couch = try CouchServer()
    couch.model.state.withLock { $0.missing["_bulk_get"] = status }
    for number in 0..<5 {
      couch.model.add("doc\(number)", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
    }
    let local = try databases.open(.lmdb)
    let outcome = try couch.replicate(local, .pull)
    expect(outcome.status.error == nil && outcome.pulled.count == 5)
    expect(couch.server.log.filter { $0.contains("_bulk_get") }.count, equals: 1)
  }

  @Test("views as filters, and design documents among the IDs") func filters() throws {
    let couch = try CouchServer()
    for id in ["doc1", "doc2", "_design/doc3"] {
      couch.model.add(
        id, .init(history: ["1-a"], isDeleted: false, body: ["type": .string(id)], attachments: []))
    }
    let chosen = try couch.replicate(try databases.open(.lmdb), .pull) {
      $0.documentIDs = ["doc1", "_design/doc3"]
    }
    expect(chosen.pulled, equals: ["_design/doc3", "doc1"])
    let asked = Lock<[[String: String]]>([])
    couch.server.faults.withLock {
      $0 = { request in
        if request.path == "/db/_changes" { asked.withLock { $0.append(request.query) } }
        return nil
      }
    }
    _ = try couch.replicate(try databases.open(.lmdb), .pull) {
      $0.filter = "_view"
      $0.filterParameters = ["view": "filter_ddoc/mammals", "n": 1]
    }
    let query = try #require(asked.withLock { $0.first })
    expect(query["filter"] == "_view" && query["view"] == "filter_ddoc/mammals" && query["n"] == "1")
  }

  @Test("a server that limits the rate of all requests gets all in the end") func rateLimit() throws {
    let model = CouchModel("db")
    let local = try databases.open(.lmdb)
    for number in 0..<300 {
      model.add("there\(number)", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: []))
      try local.save("here\(number)", [:])
    }
    // Every second one is refused.
    let count = Lock(0)
    let server = try MiniServer { request in
      let isRefused =
        request.path != "/db"
        && count.withLock { count in
          count += 1
          return count % 2 == 1
        }
      guard isRefused else { return model.answer(request) }
      return MiniAnswer(429, #"{"error":"too_many_requests","reason":"slow down"}"#)
    }
    var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
    configuration.maximumRetries = 0
    configuration.connection.firstPause = 0.001
    let outcome = try run(configuration)
    expect(outcome.status.error == nil && outcome.pulled.count == 300 && outcome.pushed.count == 300)
    expectSame(model.contents, try modelContents(local), "429")
    expect(model.complaints, equals: [])
  }
}
