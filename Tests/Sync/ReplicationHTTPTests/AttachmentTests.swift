import Documents
import Fleece
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication
@testable import ReplicationHTTP

@Suite("Attachments of CouchDB") struct HTTPAttachmentTests {
  private let databases = TestDatabases()

  @Test("many documents with several attachments each are pulled", arguments: enginePairs.map(\.0))
  func many(_ engine: EngineName) throws {
    let couch = try CouchServer()
    for number in 0..<300 {
      let attachments = (0..<4).map { attachment("a\($0)/ü", [UInt8(number & 255), UInt8($0)]) }
      couch.model.add(
        "doc\(number)", .init(history: ["1-a"], isDeleted: false, body: [:], attachments: attachments))
    }
    let local = try databases.open(engine)
    let outcome = try couch.replicate(local, .pull)
    expect(outcome.pulled.count == 300 && outcome.status.error == nil)
    expectSame(couch.model.contents, try modelContents(local), "\(engine)")
    try expect(local.check(deep: true) == [] && couch.model.complaints == [])
  }

  @Test("what a stored ancestor has isn't fetched again, but for other bytes of the same length") func known()
    throws
  {
    let couch = try CouchServer()
    let local = try databases.open(.lmdb)
    func add(_ history: [String], _ attachments: [CouchModel.Attachment]) throws -> [String] {
      couch.model.add("doc", .init(history: history, isDeleted: false, body: [:], attachments: attachments))
      couch.server.forget()
      try expect(couch.replicate(local, .pull).status.error == nil)
      expectSame(couch.model.contents, try modelContents(local), history[0])
      return couch.server.log.filter { $0.hasPrefix("GET /db/doc/") }.map { String($0.dropFirst(12)) }
    }
    try expect(
      add(["1-a"], [attachment("x", [1, 2, 3]), attachment("y", [4])]).sorted(), equals: ["x", "y"])
    try expect(add(["2-b", "1-a"], [attachment("x", [1, 2, 3]), attachment("y", [4])]), equals: [])
    try expect(
      add(["3-c", "2-b", "1-a"], [attachment("x", [1, 2, 3]), attachment("y", [5], revpos: 3)]), equals: ["y"]
    )
    // A merge took the attachment of another branch.
    try expect(
      add(["4-d", "3-c", "2-b", "1-a"], [attachment("x", [3, 2, 1]), attachment("y", [5], revpos: 3)]),
      equals: ["x"])
    expect(couch.model.complaints, equals: [])
  }

  @Test(
    "servers and proxies that encode attachments as they like",
    arguments: CouchModel.Encoding.allCases, [0, 1, 2])
  func encodings(_ encoding: CouchModel.Encoding, _ way: Int) throws {
    let couch = try CouchServer()
    couch.model.state.withLock { state in
      state.encoding = encoding
      // In requests of their own, or with their documents: as parts, or inside.
      if way > 0 { state.missing["_bulk_get"] = 404 }
      state.givesMultipart = way < 2
    }
    let text = [UInt8]("words and words and words and words and words".utf8)
    for number in 0..<5 {
      couch.model.add(
        "doc\(number)", .init(history: ["1-a"], isDeleted: false, body: ["n": 1], attachments: []))
      let bytes = text + [UInt8(number)]
      let packed = CouchModel.Attachment(
        name: "packed", contentType: "text/plain", revpos: 2, bytes: try Gzip.encoded(bytes),
        length: bytes.count,
        isCompressed: true)
      couch.model.add(
        "doc\(number)",
        .init(
          history: ["2-b", "1-a"], isDeleted: false, body: ["n": 2],
          attachments: [packed, attachment("plain", bytes, revpos: 2), attachment("empty", [], revpos: 2)]))
    }
    let local = try databases.open(way == 1 ? .sqlite : .lmdb)
    // So that inline ones come for what is newer.
    for number in 0..<5 {
      try local.apply(
        PulledRevision(id: "doc\(number)", history: ["1-a"], isDeleted: false, body: .value(["n": 1])))
    }
    let outcome = try couch.replicate(local, .pull)
    expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome.failed)")
    if encoding != .never {
      expectSame(couch.model.contents, try modelContents(local), "\(encoding) \(way)")
    }
    for number in 0..<5 {
      let document = try #require(try local.document("doc\(number)"))
      for name in ["packed", "plain"] {
        let found = try #require(document.attachment(name))
        let bytes = try local.contents(of: found.blob, limit: 1 << 20)
        let isPacked = try document.value()["_attachments"][name]["encoding"].string == "gzip"
        try expect((isPacked ? Gzip.decoded(bytes) : bytes), equals: text + [UInt8(number)])
        expect(isPacked, equals: (name == "packed" && encoding != .never))
      }
    }
    try expect(local.check(deep: true) == [] && couch.model.complaints == [])
  }

  @Test("bytes that no way of asking makes those of the document leave it undone") func unknownEncoding()
    throws
  {
    let model = CouchModel("db")
    for id in ["bad", "good"] {
      model.add(
        id, .init(history: ["1-a"], isDeleted: false, body: [:], attachments: [attachment("x", [1, 2, 3])]))
    }
    for (encoding, bytes) in [("zstd", [1, 2, 3]), ("gzip", [1, 2, 3]), ("identity", [3, 2, 1])]
      as [(String, [UInt8])]
    {
      let local = try databases.open(.lmdb)
      let server = try MiniServer { request in
        guard request.path == "/db/bad/x" else { return model.answer(request) }
        var answer = MiniAnswer(200)
        answer.headers = [("Content-Type", "image/png"), ("Content-Encoding", encoding)]
        answer.body = bytes
        return answer
      }
      var configuration = ReplicatorConfiguration(local, try .httpURL(server.url + "db"))
      configuration.direction = .pull
      configuration.maximumRetries = 0
      configuration.connection.firstPause = 0.001
      let outcome = try run(configuration)
      expect(outcome.pulled == ["good"] && Set(outcome.failed.keys) == ["bad"], "\(encoding) \(outcome)")
      try expect(local.check(deep: true), equals: [])
    }
  }

  @Test("an edit goes without the attachments that the other side has, and then as JSON alone") func edited()
    throws
  {
    let couch = try CouchServer()
    let local = try databases.open(.lmdb)
    var document = MutableDocument(id: "doc")
    document.set(try Blob([UInt8]("photo".utf8), contentType: "text/plain"), forKey: "photo")
    try local.save(&document)
    try expect(couch.replicate(local, .push).failed.isEmpty)
    for number in 1...2 {
      try local.update("doc") { $0["n"] = .int(Int64(number)) }
      let outcome = try couch.replicate(local, .push)
      expect(outcome.failed.isEmpty && outcome.pushed == ["doc"], "\(outcome.failed)")
    }
    let stored = try #require(couch.model.state.withLock { $0.documents["doc"]?.revisions.values })
    let edited = try #require(stored.first { $0.history.count == 3 })
    expect(edited.body["n"] == 2 && edited.attachments.first?.bytes == [UInt8]("photo".utf8))
    expect(couch.model.complaints, equals: [])
  }

  @Test(
    "the attachment of a blob that another client has replaced is the blob, whatever its length",
    arguments: [true, false])
  func replacedBlob(_ hasBulkGet: Bool) throws {
    let couch = try CouchServer()
    if !hasBulkGet { couch.model.state.withLock { $0.missing["_bulk_get"] = 404 } }
    let local = try databases.open(.lmdb)
    func make(_ id: String, _ bytes: [UInt8]) throws {
      var document = MutableDocument(id: id)
      document.set(try Blob(bytes, contentType: "text/plain"), forKey: "photo")
      try local.save(&document)
    }
    let (old, new) = ([UInt8]("words and words 1".utf8), [UInt8]("words and words 2".utf8))
    for id in ["same", "longer", "packed", "repacked"] { try make(id, old) }
    try expect(couch.replicate(local, .push).failed.isEmpty)
    /// A client of CouchDB saves the document: its attachment, and not the body.
    func replace(_ id: String, _ bytes: [UInt8], isCompressed: Bool, revpos: UInt64 = 2) throws {
      let before = try #require(couch.model.state.withLock { $0.documents[id]?.revisions.values.first })
      var attachment = try #require(before.attachments.first)
      attachment.bytes = isCompressed ? try Gzip.encoded(bytes) : bytes
      (attachment.length, attachment.isCompressed, attachment.revpos) = (bytes.count, isCompressed, revpos)
      couch.model.add(
        id,
        .init(
          history: ["2-b"] + before.history, isDeleted: false, body: before.body, attachments: [attachment]))
    }
    try replace("same", new, isCompressed: false)
    try replace("longer", new + new, isCompressed: false)
    try replace("packed", new, isCompressed: true)
    // As it was, but for CouchDB's own gzip.
    try replace("repacked", old, isCompressed: true)
    let fresh = try databases.open(.sqlite)
    for database in [local, fresh] {
      let outcome = try couch.replicate(database, .pull)
      expect(outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome.failed)")
      for (id, bytes) in ["same": new, "longer": new + new, "packed": new, "repacked": old] {
        let document = try #require(try database.document(id))
        let blob = try #require(document.blob(forKey: "photo"))
        try expect(database.contents(of: blob, limit: 1 << 20), equals: bytes, "\(id)")
        expect(blob.length == UInt64(bytes.count) && document.revisionID.description == "2-b")
      }
      try expect(database.check(deep: true), equals: [])
    }
    // What is as it was isn't fetched again.
    couch.server.forget()
    let revision = try #require(couch.model.state.withLock { $0.documents["same"]?.leaves.first })
    let before = try #require(couch.model.state.withLock { $0.documents["same"]?.revisions[revision] })
    var body = before.body
    body["n"] = 1
    couch.model.add(
      "same",
      .init(history: ["3-c"] + before.history, isDeleted: false, body: body, attachments: before.attachments))
    try expect(couch.replicate(local, .pull).pulled, equals: ["same"])
    let kept = try #require(try local.document("same")?.blob(forKey: "photo"))
    try expect(local.contents(of: kept, limit: 100), equals: new)
    if hasBulkGet { expect(!couch.server.log.contains { $0.contains("blob_") }) }
  }
}
