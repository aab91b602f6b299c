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
    for name in ["n", "photo", "text", "list", "/\u{338}"] { #expect(plain[name] == expected[name]) }
    #expect(
      Set(plain["_attachments"].object?.keys ?? []) == Set(before["_attachments"].object?.keys ?? []))
    #expect(plain["_attachments"]["blob_/photo"]["digest"].string == (try digest(new)))
    #expect(try client.get("/db/text").json()["text"]["digest"].string == (try digest(words)))
    #expect(try client.ask("GET", "/db/text/blob_/text").body() == words)
    let packed = try client.get("/db/packed").json()["photo"]
    #expect(packed["digest"].string == (try digest(words)) && packed["length"] == 3_000)
    #expect(try client.get("/db/nested").json()["list"][1]["a/b"]["digest"].string == (try digest(new)))
    #expect(try client.get("/db/mark").json()["/\u{338}"]["digest"].string == (try digest(new)))
    #expect(try client.get("/db/item").json()["list"][2]["digest"].string == (try digest(new)))
    #expect(try client.get("/db/type").json()["photo"]["content_type"] == "image/jpeg")
    #expect(try client.get("/db/untyped").json()["photo"]["content_type"] == "image/png")
    #expect(try client.get("/db/again").json()["photo"]["digest"].string == (try digest(new)))
    // None is stored as an attachment besides.
    for id in ids { #expect(try database.document(id)?.attachmentNames == [], "\(id)") }
    #expect(try database.check(deep: true) == [])
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
    #expect(try client.send("PUT", "/db/inline", edited("inline", data).canonicalJSON()).status == 201)
    let bulk: JSONValue = ["docs": [try edited("bulk", data)]]
    #expect(try client.send("POST", "/db/_bulk_docs", bulk.canonicalJSON()).json()[0]["ok"] == true)
    var posted = try edited("source", data)
    posted.remove("_rev")
    posted["_id"] = "posted"
    posted["_attachments"] = ["blob_/photo": data, "own": ["data": "AQI="]]
    #expect(try client.send("POST", "/db", posted.canonicalJSON()).status == 201)
    let follows: JSONValue = [
      "content_type": "text/plain", "follows": true, "length": JSONValue(UInt64(words.count)),
    ]
    let body =
      Array(
        "--x\r\nContent-Type: application/json\r\n\r\n\(try edited("parts", follows).canonicalJSON())".utf8)
      + Array("\r\n--x\r\n\r\n".utf8) + words + Array("\r\n--x--".utf8)
    let parts = try client.ask(
      "PUT", "/db/parts", headers: [("Content-Type", "multipart/related; boundary=x")], body: body)
    #expect(parts.status == 201, "\(parts.text)")
    try put(client, "source", "blob_%2Fphoto", "image/jpeg", new)
    #expect(try client.send("COPY", "/db/source", headers: [("Destination", "copied")]).status == 201)
    // A stub says that the attachment is as it was. So the blob is what the body says, as where an item was removed.
    var moved = try client.get("/db/stubs").json()
    moved["list"] = [moved["list"][2]]
    moved["photo"] = moved["text"]
    #expect(try client.send("PUT", "/db/stubs", moved.canonicalJSON()).status == 201)

    for id in ["inline", "bulk", "posted", "copied"] {
      let photo = try client.get("/db/\(id)").json()["photo"]
      #expect(photo["digest"].string == (try digest(new)) && photo["length"] == 21, "\(id)")
      #expect(photo["content_type"] == "image/jpeg", "\(id)")
      #expect(try client.ask("GET", "/db/\(id)/blob_%2Fphoto").body() == new, "\(id)")
    }
    let photo = try client.get("/db/parts").json()["photo"]
    #expect(photo["digest"].string == (try digest(words)) && photo["length"] == 3_000)
    #expect(try database.document("posted")?.attachmentNames == ["own"])
    let stubs = try client.get("/db/stubs").json()
    #expect(stubs["list"] == moved["list"] && stubs["photo"] == moved["text"])
    #expect(try database.document("stubs")?.attachmentNames == [])
    #expect(try database.check(deep: true) == [])
    try expectEqualReplicas(database, engine)
  }

  @Test("a blob goes when its attachment is deleted", arguments: someEngines)
  func deleting(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["member", "nested", "item", "all"])
    #expect(try delete(client, "member", "blob_%2Fphoto") == 200)
    #expect(try delete(client, "nested", "blob_%2Flist%2F1%2Fa~1b") == 200)
    // Null keeps the names of the others.
    #expect(try delete(client, "item", "blob_%2Flist%2F2") == 200)
    #expect(try client.ask("GET", "/db/member/blob_%2Fphoto").status == 404)
    let member = try client.get("/db/member").json()
    #expect(member.object?["photo"] == nil && member["text"]["@type"] == "blob")
    #expect(try client.get("/db/nested").json()["list"][1] == [:])
    let item = try client.get("/db/item").json()
    #expect(item["list"].array?.count == 3 && item["list"][2] == .null)
    #expect(try delete(client, "item", "blob_%2Flist%2F2") == 404)
    #expect(try delete(client, "item", "blob_%2Flist") == 404)
    for name in ["photo", "text", "list%2F1%2Fa~1b", "list%2F2", "~1%CC%B8"] {
      #expect(try delete(client, "all", "blob_%2F\(name)") == 200, "\(name)")
    }
    #expect(try client.get("/db/all").json()["_attachments"].isNull)
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
      #expect(try client.ask("GET", "/db/doc/\(name.pathSegment)").body() == Array(name.utf8), "\(name)")
    }
    let stored = try #require(try database.document("doc"))
    #expect(Set(stored.attachmentNames) == Set(names))
    #expect(stored["photo"].blob?.digest.text == (try digest(old)))
    // 2.0 numbered what stands for blobs.
    try put(client, "same", "blob_0", "image/png", old)
    #expect(try database.document("same")?.attachmentNames == [])
    try expectEqualReplicas(database, engine)
    for name in names { #expect(try delete(client, "doc", name.pathSegment) == 200, "\(name)") }
    #expect(try database.document("doc")?.attachmentNames == [])
    #expect(try database.document("doc")?.value() == database.document("same")?.value())
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
    #expect(replaced.attachmentNames == [] && replaced["photo"].blob?.contentType == "image/jpeg")
    #expect(try replaced["photo"].blob?.content() == new)
    // What a client of HTTP has got may be saved again: the attachments are those of before, and the body counts.
    try change("kept") { document in
      document["_attachments"] = try client.get("/db/kept").json()["_attachments"]
      document["list"] = [document["list"][2]]
      document.set(try Blob(new, contentType: "image/png"), forKey: "photo")
    }
    let kept = try #require(try database.document("kept"))
    #expect(try kept["photo"].blob?.content() == new && kept["list"][0].blob?.content() == old + [4])
    #expect(Set(kept.attachmentNames) == ["blob_/list/1/a~1b", "blob_/list/2"])
    try change("typed") { $0.setAttachment("blob_/photo", try Blob(old, contentType: "image/gif")) }
    #expect(try database.document("typed")?["photo"].blob?.contentType == "image/gif")
    // No blob is compressed.
    let error = #expect(throws: DocumentError.self) {
      try change("packed") { document in
        document["_attachments"] = [
          "blob_/photo": ["data": .string(base64(new)), "encoding": "gzip", "content_type": "text/plain"]
        ]
      }
    }
    #expect(error?.code == .invalidBody)
    try change("lone") { document in
      document.setAttachment("blob_/none", try Blob(new, contentType: "x/y"))
      document.setAttachment("blob_2", try Blob(new, contentType: "x/y"))
    }
    #expect(try database.document("lone")?.attachmentNames == ["blob_/none", "blob_2"])
    #expect(try database.check(deep: true) == [])
    try expectEqualReplicas(database, engine)
  }

  @Test("a revision from elsewhere keeps an attachment whose blob has gone", arguments: someEngines)
  func vanished(_ engine: EngineName) throws {
    let (database, client) = try serve(engine, ["doc"])
    let before = try client.get("/db/doc?revs=true").json()
    let parent = String((before["_rev"].string ?? "").dropFirst(2))
    let text =
      #"{"_revisions":{"start":2,"ids":["b","\#(parent)"]},"n":2,"_attachments":{"blob_/photo":{"stub":true,"revpos":1}}}"#
    #expect(try client.send("PUT", "/db/doc?new_edits=false", text).status == 201)
    #expect(try database.document("doc")?.attachmentNames == ["blob_/photo"])
    let read = try client.get("/db/doc").json()
    #expect(read["_attachments"]["blob_/photo"]["revpos"] == 1)
    #expect(try client.ask("GET", "/db/doc/blob_%2Fphoto").body() == old)
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
    #expect(try client.send("POST", "/db/_bulk_docs", bulk.canonicalJSON()).text == "[]\n")
    let stored = try #require(try database.document("doc"))
    #expect(stored["photo"].blob?.contentType == "image/jpeg" && stored.attachmentNames == ["blob_7"])
    #expect(try stored["photo"].blob?.content() == new)
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
      #expect(put.status == 201, "\(put.text)")
      let bulk: JSONValue = [
        "docs": [document("bulk-\(kind)", inline, names), ["_id": .string("by-\(kind)")]]
      ]
      let answer = try client.send("POST", "/db/_bulk_docs", bulk.canonicalJSON())
      #expect(try answer.json().array?.allSatisfy { $0["ok"] == true } ?? false, "\(answer.text)")
      var foreign = document("parts-\(kind)", follows, names)
      foreign["_revisions"] = ["start": 1, "ids": ["a"]]
      var parts = Array("--x\r\nContent-Type: application/json\r\n\r\n\(try foreign.canonicalJSON())".utf8)
      for _ in names { parts += Array("\r\n--x\r\n\r\n".utf8) + gzip }
      let related = try client.ask(
        "PUT", "/db/parts-\(kind)?new_edits=false",
        headers: [("Content-Type", "multipart/related; boundary=x")],
        body: parts + Array("\r\n--x--".utf8))
      #expect(related.status == 201, "\(related.text)")
      for way in ["put", "bulk", "parts"] {
        for name in names {
          let read = try client.ask("GET", "/db/\(way)-\(kind)/\(name.pathSegment)")
          #expect(read.body() == words, "\(way), \(kind), \(name): \(read.status)")
        }
        let own = names.filter { !$0.hasPrefix("blob_") }
        #expect(try database.document("\(way)-\(kind)")?.attachmentNames == own, "\(way), \(kind)")
      }
    }
    #expect(try database.check(deep: true) == [])
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
    #expect(try client.ask("GET", "/db/inside/blob_%2Fphoto").body() == old)
    #expect(try client.ask("GET", "/db/inside/blob_%2Fphoto%2Finner").body() == new)
    let deep = "blob_/r" + String(repeating: "/k", count: 150)
    #expect(try client.ask("GET", "/db/deep/\(deep.pathSegment)").body() == new)
    try put(client, "inside", "blob_%2Fphoto%2Finner", "x/y", words)
    #expect(try client.get("/db/inside").json()["photo"]["inner"]["digest"].string == (try digest(words)))
    #expect(try client.get("/db/inside").json()["photo"]["digest"].string == (try digest(old)))
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
      #expect(try client.send("PUT", "/db/typed", typed.canonicalJSON()).status == 201)
      let parent = String(try revision(client, "kept").dropFirst(2))
      let kept: JSONValue = [
        "_revisions": ["start": 2, "ids": ["b", .string(parent)]],
        "_attachments": ["blob_/photo": ["stub": true, "revpos": 1]],
      ]
      #expect(try client.send("PUT", "/db/kept?new_edits=false", kept.canonicalJSON()).status == 201)
      try replicate(database, with: replica, isHTTP: isHTTP, .push)
      #expect(try contents(replica) == contents(database), "\(isHTTP)")
      #expect(try replica.document("typed")?.attachment("blob_/photo")?.blob.contentType == "image/gif")
      #expect(try replica.document("kept")?.attachment("blob_/photo")?.revpos == 1)
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
    #expect(try client.send("COPY", "/db/source", headers: [("Destination", "copied")]).status == 201)
    #expect(try database.document("copied")?.attachment("file")?.revpos == 2)
    try expectEqualReplicas(database, engine)
  }
}
