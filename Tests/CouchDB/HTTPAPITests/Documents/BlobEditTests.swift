import Blobs
import Documents
import Fleece
import Replication
import ReplicationTestSupport
import Storage
import TestSupport
import Testing
import Touchstone
import TouchstoneServer
import TouchstoneSync

@testable import HTTPAPI

/// Clients that know only attachments edit documents whose bodies have blobs.
@Suite("Edits of attachments that stand for blobs") struct BlobEditTests {
  private let databases = TestDatabases()
  private let old = Array("the old bytes".utf8)
  private let new = Array("these are other bytes".utf8)
  private let words = Array(String(repeating: "words ", count: 500).utf8)

  /// A database whose documents with these IDs have blobs, and a client.
  private func serve(_ engine: EngineName, _ ids: [String]) throws -> (Database, APIClient) {
    let database = try databases.open(engine)
    for id in ids {
      var document = MutableDocument(id: id, ["n": 1])
      document.set(try Blob(old, contentType: "image/png"), forKey: "photo")
      document.set(try Blob(old + [1], contentType: "text/plain"), forKey: "text")
      document.set(try Blob(old + [2], contentType: nil), forKey: "/\u{338}")
      let (first, second) = (try Blob(old + [3], contentType: nil), try Blob(old + [4], contentType: nil))
      document["list"] = [0, ["a/b": first.jsonValue], second.jsonValue]
      try database.save(&document)
    }
    return (database, APIClient(["db": database]))
  }

  private func digest(_ bytes: [UInt8]) throws -> String { try Blob(bytes, contentType: nil).digest.text }

  private func revision(_ client: APIClient, _ id: String) throws -> String {
    try client.get("/db/\(id)").json()["_rev"].string ?? ""
  }

  /// Puts an attachment to the current revision.
  private func put(
    _ client: APIClient, _ id: String, _ name: String, _ type: String?, _ bytes: [UInt8],
    encoding: String? = nil, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let headers = [("Content-Type", type), ("Content-Encoding", encoding)].compactMap { name, value in
      value.map { (name, $0) }
    }
    let answer = try client.ask(
      "PUT", "/db/\(id)/\(name)?rev=\(try revision(client, id))", headers: headers, body: bytes)
    #expect(answer.status == 201, "\(answer.text)", sourceLocation: sourceLocation)
  }

  private func delete(_ client: APIClient, _ id: String, _ name: String) throws -> Int {
    try client.ask("DELETE", "/db/\(id)/\(name)?rev=\(try revision(client, id))").status
  }

  /// Current revisions and bodies.
  private func contents(_ database: Database) throws -> [String: String] {
    var found: [String: String] = [:]
    for document in try database.read({ try $0.documents(AllDocuments()) }) {
      found[document.id] = "\(document.revisionID) \(try document.value().canonicalJSON())"
    }
    return found
  }

  /// Replicates with the other database, which a listener serves.
  private func replicate(
    _ local: Database, with served: Database, isHTTP: Bool, _ direction: ReplicatorConfiguration.Direction,
    sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    var listening = SyncListenerConfiguration(databases: ["db": served])
    listening.servesHTTP = true
    let listener = SyncListener(listening)
    try listener.start()
    defer { listener.stop() }
    let target: ReplicatorTarget =
      isHTTP
      ? try .httpURL(try #require(listener.httpURL) + "db") : try .url(try #require(listener.urls.first))
    var configuration = ReplicatorConfiguration(local, target)
    configuration.direction = direction
    let outcome = try run(configuration, sourceLocation: sourceLocation)
    #expect(
      outcome.status.error == nil && outcome.failed.isEmpty, "\(outcome)", sourceLocation: sourceLocation)
  }

  /// Expects that replicas which are pulled and pushed, by HTTP and by WebSocket, have the same bodies.
  private func expectEqualReplicas(
    _ database: Database, _ engine: EngineName, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let expected = try contents(database)
    for isHTTP in [true, false] {
      let (pulled, pushed) = (try databases.open(engine), try databases.open(engine))
      try replicate(pulled, with: database, isHTTP: isHTTP, .pull, sourceLocation: sourceLocation)
      try replicate(database, with: pushed, isHTTP: isHTTP, .push, sourceLocation: sourceLocation)
      for (name, replica) in [("pulled", pulled), ("pushed", pushed)] {
        let found = try contents(replica)
        for (id, body) in expected where found[id] != body {
          Issue.record(
            "\(isHTTP ? "HTTP" : "WebSocket"), \(name), \(id): \(body) | \(found[id] ?? "missing")",
            sourceLocation: sourceLocation)
        }
        #expect(found.count == expected.count, sourceLocation: sourceLocation)
        #expect(try replica.check(deep: true) == [], sourceLocation: sourceLocation)
      }
    }
  }

  @Test("an attachment that is put becomes the blob", arguments: someEngines)
  func putting(_ engine: EngineName) throws {
    let ids = ["plain", "text", "packed", "nested", "mark", "item", "type", "untyped", "again"]
    let (database, client) = try serve(engine, ids)
    let before = try client.get("/db/plain").json()
    try put(client, "plain", "blob_%2Fphoto", "image/jpeg", new)
    try put(client, "text", "blob_/text", "text/plain", words)
    let gzip = try #require(GzipEncoder()).encode(words, isLast: true)
    try put(client, "packed", "blob_%2Fphoto", "image/png", gzip, encoding: "gzip")
    try put(client, "nested", "blob_%2Flist%2F1%2Fa~1b", "x/y", new)
    try put(client, "mark", "blob_%2F~1%CC%B8", "x/y", new)
    try put(client, "item", "blob_%2Flist%2F2", "x/y", new)
    // The same bytes are another attachment if their type is another one.
    try put(client, "type", "blob_%2Fphoto", "image/jpeg", old)
    try put(client, "untyped", "blob_%2Fphoto", nil, old)
    for bytes in [new, old, new] { try put(client, "again", "blob_%2Fphoto", "image/png", bytes) }

    var expected = before
    expected["photo"] = [
      "@type": "blob", "digest": .string(try digest(new)), "length": 21, "content_type": "image/jpeg",
    ]
    let plain = try client.get("/db/plain").json()
    for name in ["n", "photo", "text", "list", "/\u{338}"] { expect(plain[name], equals: expected[name]) }
    expect(
      Set(plain["_attachments"].object?.keys ?? []), equals: Set(before["_attachments"].object?.keys ?? []))
    try expect(plain["_attachments"]["blob_/photo"]["digest"].string, equals: (try digest(new)))
    try expect(client.get("/db/text").json()["text"]["digest"].string, equals: (try digest(words)))
    try expect(client.ask("GET", "/db/text/blob_/text").body(), equals: words)
    let packed = try client.get("/db/packed").json()["photo"]
    try expect(packed["digest"].string == (try digest(words)) && packed["length"] == 3_000)
    try expect(client.get("/db/nested").json()["list"][1]["a/b"]["digest"].string, equals: (try digest(new)))
    try expect(client.get("/db/mark").json()["/\u{338}"]["digest"].string, equals: (try digest(new)))
    try expect(client.get("/db/item").json()["list"][2]["digest"].string, equals: (try digest(new)))
    try expect(client.get("/db/type").json()["photo"]["content_type"], equals: "image/jpeg")
    try expect(client.get("/db/untyped").json()["photo"]["content_type"], equals: "image/png")
    try expect(client.get("/db/again").json()["photo"]["digest"].string, equals: (try digest(new)))
    // None is stored as an attachment besides.
    for id in ids { try expect(database.document(id)?.attachmentNames, equals: [], "\(id)") }
    try expect(database.check(deep: true), equals: [])
    try expectEqualReplicas(database, engine)
  }

  @Test("an attachment that comes with its document becomes the blob", arguments: someEngines)
  func withDocuments(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["inline", "bulk", "parts", "source", "stubs"])
    /// The document as a client sends it that replaces an attachment and leaves the body as it was.
    func edited(_ id: String, _ attachment: JSONValue) throws -> JSONValue {
      var document = try client.get("/db/\(id)").json()
      document["_attachments"]["blob_/photo"] = attachment
      return document
    }
    let data: JSONValue = ["content_type": "image/jpeg", "data": .string(base64(new))]
    try expect(client.send("PUT", "/db/inline", edited("inline", data).canonicalJSON()).status, equals: 201)
    let bulk: JSONValue = ["docs": [try edited("bulk", data)]]
    try expect(client.send("POST", "/db/_bulk_docs", bulk.canonicalJSON()).json()[0]["ok"], equals: true)
    var posted = try edited("source", data)
    posted.remove("_rev")
    posted["_id"] = "posted"
    posted["_attachments"] = ["blob_/photo": data, "own": ["data": "AQI="]]
    try expect(client.send("POST", "/db", posted.canonicalJSON()).status, equals: 201)
    let follows: JSONValue = [
      "content_type": "text/plain", "follows": true, "length": JSONValue(UInt64(words.count)),
    ]
    let body =
      Array(
        "--x\r\nContent-Type: application/json\r\n\r\n\(try edited("parts", follows).canonicalJSON())".utf8)
      + Array("\r\n--x\r\n\r\n".utf8) + words + Array("\r\n--x--".utf8)
    let parts = try client.ask(
      "PUT", "/db/parts", headers: [("Content-Type", "multipart/related; boundary=x")], body: body)
    expect(parts.status, equals: 201, "\(parts.text)")
    try put(client, "source", "blob_%2Fphoto", "image/jpeg", new)
    try expect(client.send("COPY", "/db/source", headers: [("Destination", "copied")]).status, equals: 201)
    // A stub says that the attachment is as it was. So the blob is what the body says, as where an item was removed.
    var moved = try client.get("/db/stubs").json()
    moved["list"] = [moved["list"][2]]
    moved["photo"] = moved["text"]
    try expect(client.send("PUT", "/db/stubs", moved.canonicalJSON()).status, equals: 201)

    for id in ["inline", "bulk", "posted", "copied"] {
      let photo = try client.get("/db/\(id)").json()["photo"]
      try expect(photo["digest"].string == (try digest(new)) && photo["length"] == 21, "\(id)")
      expect(photo["content_type"], equals: "image/jpeg", "\(id)")
      try expect(client.ask("GET", "/db/\(id)/blob_%2Fphoto").body(), equals: new, "\(id)")
    }
    let photo = try client.get("/db/parts").json()["photo"]
    try expect(photo["digest"].string == (try digest(words)) && photo["length"] == 3_000)
    try expect(database.document("posted")?.attachmentNames, equals: ["own"])
    let stubs = try client.get("/db/stubs").json()
    expect(stubs["list"] == moved["list"] && stubs["photo"] == moved["text"])
    try expect(database.document("stubs")?.attachmentNames, equals: [])
    try expect(database.check(deep: true), equals: [])
    try expectEqualReplicas(database, engine)
  }

  @Test("a blob goes when its attachment is deleted", arguments: someEngines)
  func deleting(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["member", "nested", "item", "all"])
    try expect(delete(client, "member", "blob_%2Fphoto"), equals: 200)
    try expect(delete(client, "nested", "blob_%2Flist%2F1%2Fa~1b"), equals: 200)
    // Null keeps the names of the others.
    try expect(delete(client, "item", "blob_%2Flist%2F2"), equals: 200)
    try expect(client.ask("GET", "/db/member/blob_%2Fphoto").status, equals: 404)
    let member = try client.get("/db/member").json()
    expect(member.object?["photo"] == nil && member["text"]["@type"] == "blob")
    try expect(client.get("/db/nested").json()["list"][1], equals: [:])
    let item = try client.get("/db/item").json()
    expect(item["list"].array?.count == 3 && item["list"][2] == .null)
    try expect(delete(client, "item", "blob_%2Flist%2F2"), equals: 404)
    try expect(delete(client, "item", "blob_%2Flist"), equals: 404)
    for name in ["photo", "text", "list%2F1%2Fa~1b", "list%2F2", "~1%CC%B8"] {
      try expect(delete(client, "all", "blob_%2F\(name)"), equals: 200, "\(name)")
    }
    try expect(client.get("/db/all").json()["_attachments"].isNull)
    try expectEqualReplicas(database, engine)
  }

  @Test("names that lead to no blob are those of attachments", arguments: someEngines)
  func others(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["doc", "same"])
    let names = [
      "blob_/none", "blob_/n", "blob_/list", "blob_/list/0", "blob_/list/02", "blob_/list/9",
      "blob_/photo/length",
      "blob_/~2", "blob_", "blob_x", "blob_7", "blob_1.png", "blob_/_attachments/blob_7", "Blob_/photo",
    ]
    for name in names {
      try put(client, "doc", name.pathSegment, "image/png", Array(name.utf8))
    }
    for name in names {
      try expect(client.ask("GET", "/db/doc/\(name.pathSegment)").body(), equals: Array(name.utf8), "\(name)")
    }
    let stored = try #require(try database.document("doc"))
    expect(Set(stored.attachmentNames), equals: Set(names))
    try expect(stored["photo"].blob?.digest.text, equals: (try digest(old)))
    // 2.0 numbered what stands for blobs.
    try put(client, "same", "blob_0", "image/png", old)
    try expect(database.document("same")?.attachmentNames, equals: [])
    try expectEqualReplicas(database, engine)
    for name in names { try expect(delete(client, "doc", name.pathSegment), equals: 200, "\(name)") }
    try expect(database.document("doc")?.attachmentNames, equals: [])
    try expect(database.document("doc")?.value(), equals: database.document("same")?.value())
  }

  @Test("an app's attachment with the name of a blob's becomes the blob", arguments: someEngines)
  func savedByAnApp(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["replaced", "kept", "typed", "packed", "lone"])
    func change(_ id: String, _ change: (inout MutableDocument) throws -> Void) throws {
      var document = try MutableDocument(#require(try database.document(id)))
      try change(&document)
      try database.save(&document)
    }
    try change("replaced") { $0.setAttachment("blob_/photo", try Blob(new, contentType: "image/jpeg")) }
    let replaced = try #require(try database.document("replaced"))
    expect(replaced.attachmentNames == [] && replaced["photo"].blob?.contentType == "image/jpeg")
    try expect(replaced["photo"].blob?.content(), equals: new)
    // What a client of HTTP has got may be saved again: the attachments are those of before, and the body counts.
    try change("kept") { document in
      document["_attachments"] = try client.get("/db/kept").json()["_attachments"]
      document["list"] = [document["list"][2]]
      document.set(try Blob(new, contentType: "image/png"), forKey: "photo")
    }
    let kept = try #require(try database.document("kept"))
    try expect(kept["photo"].blob?.content() == new && kept["list"][0].blob?.content() == old + [4])
    expect(Set(kept.attachmentNames), equals: ["blob_/list/1/a~1b", "blob_/list/2"])
    try change("typed") { $0.setAttachment("blob_/photo", try Blob(old, contentType: "image/gif")) }
    try expect(database.document("typed")?["photo"].blob?.contentType, equals: "image/gif")
    // No blob is compressed.
    let error = #expect(throws: DocumentError.self) {
      try change("packed") { document in
        document["_attachments"] = [
          "blob_/photo": ["data": .string(base64(new)), "encoding": "gzip", "content_type": "text/plain"]
        ]
      }
    }
    expect(error?.code, equals: .invalidBody)
    try change("lone") { document in
      document.setAttachment("blob_/none", try Blob(new, contentType: "x/y"))
      document.setAttachment("blob_2", try Blob(new, contentType: "x/y"))
    }
    try expect(database.document("lone")?.attachmentNames, equals: ["blob_/none", "blob_2"])
    try expect(database.check(deep: true), equals: [])
    try expectEqualReplicas(database, engine)
  }

  @Test("a revision from elsewhere keeps an attachment whose blob has gone", arguments: someEngines)
  func vanished(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["doc"])
    let before = try client.get("/db/doc?revs=true").json()
    let parent = String((before["_rev"].string ?? "").dropFirst(2))
    let text =
      #"{"_revisions":{"start":2,"ids":["b","\#(parent)"]},"n":2,"_attachments":{"blob_/photo":{"stub":true,"revpos":1}}}"#
    try expect(client.send("PUT", "/db/doc?new_edits=false", text).status, equals: 201)
    try expect(database.document("doc")?.attachmentNames, equals: ["blob_/photo"])
    let read = try client.get("/db/doc").json()
    expect(read["_attachments"]["blob_/photo"]["revpos"], equals: 1)
    try expect(client.ask("GET", "/db/doc/blob_%2Fphoto").body(), equals: old)
    try expectEqualReplicas(database, engine)
  }

  @Test("an attachment of a revision from elsewhere gives the blob its type", arguments: someEngines)
  func foreignType(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["doc"])
    var document = try client.get("/db/doc").json()
    let parent = String((document["_rev"].string ?? "").dropFirst(2))
    document["_rev"] = "2-b"
    document["_revisions"] = ["start": 2, "ids": ["b", .string(parent)]]
    document["_attachments"]["blob_/photo"] = ["content_type": "image/jpeg", "data": .string(base64(new))]
    // One that clients of CouchDB number isn't lost.
    document["_attachments"]["blob_7"] = ["data": "AQI="]
    let bulk: JSONValue = ["new_edits": false, "docs": [document]]
    try expect(client.send("POST", "/db/_bulk_docs", bulk.canonicalJSON()).text, equals: "[]\n")
    let stored = try #require(try database.document("doc"))
    expect(stored["photo"].blob?.contentType == "image/jpeg" && stored.attachmentNames == ["blob_7"])
    try expect(stored["photo"].blob?.content(), equals: new)
    try expectEqualReplicas(database, engine)
  }

  @Test("equal attachments become several blobs, or a blob and an attachment", arguments: someEngines)
  func equalBytes(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["known"])
    let body: JSONValue = ["photo": ["@type": "blob"], "two": ["@type": "blob"]]
    /// A document with such attachments.
    func document(_ id: String, _ attachment: JSONValue, _ names: [String]) -> JSONValue {
      var document = body
      document["_id"] = .string(id)
      document["_attachments"] = .object(JSONObject(names.map { ($0, attachment) }))
      return document
    }
    // As text they are stored as gzip, and the blobs decoded.
    let inline: JSONValue = ["content_type": "text/plain", "data": .string(base64(words))]
    let gzip = try #require(GzipEncoder()).encode(words, isLast: true)
    let follows: JSONValue = [
      "content_type": "text/plain", "follows": true, "encoding": "gzip", "revpos": 1,
      "length": JSONValue(UInt64(words.count)), "encoded_length": JSONValue(UInt64(gzip.count)),
    ]
    let kinds = [
      "blobs": ["blob_/photo", "blob_/two"], "both": ["blob_/photo", "plain.txt"],
      "all": ["blob_/photo", "blob_/two", "plain.txt"],
    ]
    for (kind, names) in kinds.sorted(by: { $0.key < $1.key }) {
      let put = try client.send(
        "PUT", "/db/put-\(kind)", document("put-\(kind)", inline, names).canonicalJSON())
      expect(put.status, equals: 201, "\(put.text)")
      let bulk: JSONValue = [
        "docs": [document("bulk-\(kind)", inline, names), ["_id": .string("by-\(kind)")]]
      ]
      let answer = try client.send("POST", "/db/_bulk_docs", bulk.canonicalJSON())
      try expect(answer.json().array?.allSatisfy { $0["ok"] == true } ?? false, "\(answer.text)")
      var foreign = document("parts-\(kind)", follows, names)
      foreign["_revisions"] = ["start": 1, "ids": ["a"]]
      var parts = Array("--x\r\nContent-Type: application/json\r\n\r\n\(try foreign.canonicalJSON())".utf8)
      for _ in names { parts += Array("\r\n--x\r\n\r\n".utf8) + gzip }
      let related = try client.ask(
        "PUT", "/db/parts-\(kind)?new_edits=false",
        headers: [("Content-Type", "multipart/related; boundary=x")],
        body: parts + Array("\r\n--x--".utf8))
      expect(related.status, equals: 201, "\(related.text)")
      for way in ["put", "bulk", "parts"] {
        for name in names {
          let read = try client.ask("GET", "/db/\(way)-\(kind)/\(name.pathSegment)")
          expect(read.body(), equals: words, "\(way), \(kind), \(name): \(read.status)")
        }
        let own = names.filter { !$0.hasPrefix("blob_") }
        try expect(database.document("\(way)-\(kind)")?.attachmentNames, equals: own, "\(way), \(kind)")
      }
    }
    try expect(database.check(deep: true), equals: [])
    try expectEqualReplicas(database, engine)
  }

  @Test("blobs inside of blobs, and deep ones, have attachments too", arguments: someEngines)
  func nestedBlobs(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, [])
    var (outer, inner) = (
      try Blob(old, contentType: "x/y").jsonValue, try Blob(new, contentType: "x/y").jsonValue
    )
    outer["inner"] = inner
    var document = MutableDocument(id: "inside")
    document["photo"] = outer
    try database.save(&document)
    for _ in 0..<150 { inner = ["k": inner] }
    document = MutableDocument(id: "deep")
    document["r"] = inner
    try database.save(&document)
    try expect(client.ask("GET", "/db/inside/blob_%2Fphoto").body(), equals: old)
    try expect(client.ask("GET", "/db/inside/blob_%2Fphoto%2Finner").body(), equals: new)
    let deep = "blob_/r" + String(repeating: "/k", count: 150)
    try expect(client.ask("GET", "/db/deep/\(deep.pathSegment)").body(), equals: new)
    try put(client, "inside", "blob_%2Fphoto%2Finner", "x/y", words)
    try expect(
      client.get("/db/inside").json()["photo"]["inner"]["digest"].string, equals: (try digest(words)))
    try expect(client.get("/db/inside").json()["photo"]["digest"].string, equals: (try digest(old)))
    try expectEqualReplicas(database, engine)
  }

  @Test(
    "an attachment takes the name under which a blob was reached that has gone, in replicas too",
    arguments: someEngines)
  func successor(_ engine: EngineName) throws {
    for isHTTP in [true, false] {
      let (database, client) = try serve(engine, ["typed", "kept"])
      let replica = try databases.open(engine)
      try replicate(database, with: replica, isHTTP: isHTTP, .push)
      let typed: JSONValue = [
        "_rev": .string(try revision(client, "typed")),
        "_attachments": ["blob_/photo": ["content_type": "image/gif", "data": .string(base64(old))]],
      ]
      try expect(client.send("PUT", "/db/typed", typed.canonicalJSON()).status, equals: 201)
      let parent = String(try revision(client, "kept").dropFirst(2))
      let kept: JSONValue = [
        "_revisions": ["start": 2, "ids": ["b", .string(parent)]],
        "_attachments": ["blob_/photo": ["stub": true, "revpos": 1]],
      ]
      try expect(client.send("PUT", "/db/kept?new_edits=false", kept.canonicalJSON()).status, equals: 201)
      try replicate(database, with: replica, isHTTP: isHTTP, .push)
      try expect(contents(replica), equals: contents(database), "\(isHTTP)")
      try expect(replica.document("typed")?.attachment("blob_/photo")?.blob.contentType, equals: "image/gif")
      try expect(replica.document("kept")?.attachment("blob_/photo")?.revpos, equals: 1)
    }
  }

  @Test("attachments of an app, and copies, are the same in all replicas", arguments: someEngines)
  func ofAnApp(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["source"])
    var document = MutableDocument(id: "untyped")
    document.setAttachment("file", try Blob(old, contentType: nil))
    try database.save(&document)
    document["n"] = 1
    try database.save(&document)
    try database.save(
      "odd",
      .value([
        "_attachments": [
          "null": ["data": "AQI=", "content_type": .null], "number": ["data": "AQI=", "content_type": 5],
          "more": ["data": "AQI=", "name": "more", "custom": [1]],
          "length": ["data": "AQI=", "encoded_length": 7],
        ]
      ]))
    // A copy keeps the generation in which its source has got the attachment, which is above its own.
    try put(client, "source", "file", "text/plain", words)
    try expect(client.send("COPY", "/db/source", headers: [("Destination", "copied")]).status, equals: 201)
    try expect(database.document("copied")?.attachment("file")?.revpos, equals: 2)
    try expectEqualReplicas(database, engine)
  }
}
