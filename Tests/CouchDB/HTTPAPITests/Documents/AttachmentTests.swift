import Blobs
import Bytes
import Fleece
import HTTP
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite struct AttachmentTests {
  private let databases = TestDatabases()

  private let text = String(repeating: "All work and no play makes Jack a dull boy. ", count: 40)
  private let bytes: [UInt8] = (0..<70).map { UInt8($0 * 37 & 0xFF) }

  @Test("attachments in the JSON of a document are stored, and come back", arguments: someEngines)
  func inline(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let first = try client.save(
      "/db/a",
      #"{"x":1,"_attachments":{"t.txt":{"content_type":"text/plain","data":"\#(base64(Array(text.utf8)))"},"p":{"data":"\#(base64(bytes))"}},"y":2}"#
    )
    let stubs = try client.get("/db/a").json()
    expect(stubs["y"], equals: 2)
    expect(stubs["_attachments"]["t.txt"]["length"], equals: 1760)
    expect(stubs["_attachments"]["t.txt"]["stub"], equals: true)
    expect(stubs["_attachments"]["t.txt"]["revpos"], equals: 1)
    expect(stubs["_attachments"]["t.txt"]["encoding"].isNull)
    expect(stubs["_attachments"]["p"]["content_type"], equals: "application/octet-stream")
    let info = try client.get("/db/a?att_encoding_info=true").json()["_attachments"]
    expect(info["t.txt"]["encoding"], equals: "gzip")
    expect((info["t.txt"]["encoded_length"].uint ?? 1760) < 200)
    expect(info["p"]["encoding"].isNull)
    let whole = try client.get("/db/a?attachments=true").json()["_attachments"]
    expect(whole["t.txt"]["data"].string, equals: base64(Array(text.utf8)))
    expect(whole["p"]["data"].string, equals: base64(bytes))
    expect(whole["p"]["stub"].isNull)
    // Stubs keep what is there; what is left out goes.
    var document = stubs
    document["_attachments"].remove("p")
    let second = try client.save("/db/a", try document.canonicalJSON())
    try expect(client.get("/db/a").json()["_attachments"]["t.txt"], equals: stubs["_attachments"]["t.txt"])
    try expect(client.get("/db/a/p").error, equals: ["not_found", "Document is missing attachment"])
    try expect(client.ask("GET", "/db/a/p?rev=\(first)").body(), equals: bytes)
    for (entry, status, error) in [
      (#"{"stub":true}"#, 412, ["missing_stub", "Invalid attachment stub in a for g"]),
      (#"{"data":"!!!"}"#, 400, ["bad_request", "Invalid attachment data for g"]),
      (#"{"data":"abc"}"#, 400, ["bad_request", "Invalid attachment data for g"]),
      (#"{"data":5}"#, 400, ["bad_request", "Invalid attachment data for g"]),
      (#"{}"#, 400, ["bad_request", "Invalid attachment data for g"]),
      ("5", 400, ["bad_request", "Invalid attachment data for g"]),
      (#"{"follows":true}"#, 400, ["bad_request", "Invalid attachment data for g"]),
    ] {
      let response = try client.send("PUT", "/db/a?rev=\(second)", "{\"_attachments\":{\"g\":\(entry)}}")
      expect(response.status, equals: status, "\(entry)")
      try expect(response.error, equals: error, "\(entry)")
    }
    try expect(
      client.send("PUT", "/db/a?rev=\(second)", #"{"_attachments":{"t.txt":{"stub":true,"revpos":99}}}"#)
        .status, equals: 412)
  }

  @Test("attachments are put, read, ranged and deleted on their own", arguments: someEngines)
  func standalone(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    func put(_ target: String, _ body: [UInt8], _ headers: [(String, String)] = []) throws -> Response {
      try client.ask("PUT", target, headers: headers, body: body)
    }
    let made = try put("/db/d/dir/file%20name.bin", bytes, [("Content-Type", "image/png")])
    expect(made.status, equals: 201)
    expect(made.header("Location"), equals: "http://localhost/db/d/dir%2Ffile%20name.bin")
    let first = try made.json()["rev"].string ?? ""
    let read = try client.ask("GET", "/db/d/dir%2Ffile%20name.bin")
    expect(read.body(), equals: bytes)
    expect(read.header("Content-Type"), equals: "image/png")
    expect(read.header("Accept-Ranges"), equals: "bytes")
    expect(read.header("Content-Security-Policy"), equals: "sandbox")
    let tag = read.header("ETag") ?? ""
    try expect(
      client.ask("GET", "/db/d/dir/file%20name.bin", headers: [("If-None-Match", tag)]).status, equals: 304)
    for (range, expected) in [
      ("bytes=0-3", 0..<4), ("bytes=0-69", 0..<70), ("bytes=10-", 10..<70), ("bytes=-99", 0..<70),
      ("bytes=-5", 65..<70), ("bytes=0-0", 0..<1),
      ("bytes=60-9999", 60..<70),
    ] {
      let part = try client.ask("GET", "/db/d/dir/file%20name.bin", headers: [("Range", range)])
      expect(part.status, equals: 206, "\(range)")
      expect(part.body(), equals: Array(bytes[expected]), "\(range)")
      expect(
        part.header("Content-Range"), equals: "bytes \(expected.lowerBound)-\(expected.upperBound - 1)/70")
    }
    for range in ["bytes=9999-", "bytes=5-2", "bytes=-0", "bytes=0-3,5-2", "bytes=0-3,70-80"] {
      try expect(
        client.ask("GET", "/db/d/dir/file%20name.bin", headers: [("Range", range)]).status, equals: 416,
        "\(range)")
    }
    for range in [
      "lines=1-2", "bytes:0-", "bytes=x", "bytes=", "bytes=1", "bytes=--", "bytes=0-", "bytes=0-,0-,0-",
      "bytes=1-2,0-,9-3", "bytes=0-1,0-1,0-1,0-1,0-1,0-1,0-1,0-1,0-1,0-1",
    ] {
      let whole = try client.ask("GET", "/db/d/dir/file%20name.bin", headers: [("Range", range)])
      expect(whole.status == 200 && whole.body() == bytes, "\(range)")
      expect(whole.header("Content-Range") == nil)
    }
    let several = try client.ask("GET", "/db/d/dir/file%20name.bin", headers: [("Range", "bytes=0-3,5-6")])
    expect(several.status, equals: 206)
    expect(several.parts.map(\.bytes), equals: [Array(bytes[0..<4]), Array(bytes[5..<7])])
    expect(several.parts.first?.header("Content-Range"), equals: "bytes 0-3/70")
    try expect(
      client.ask(
        "GET", "/db/d/dir/file%20name.bin", headers: [("Range", "bytes=0-3"), ("If-Range", "\"x\"")]
      ).status, equals: 200)
    let same = try client.ask(
      "GET", "/db/d/dir/file%20name.bin", headers: [("Range", "bytes=0-3"), ("If-Range", tag)])
    expect(same.status == 206 && same.body() == Array(bytes[0..<4]))
    let head = try client.ask("HEAD", "/db/d/dir/file%20name.bin")
    expect(head.status, equals: 200)
    expect(head.header("ETag"), equals: tag)
    try expect(put("/db/d/x", bytes).status, equals: 409)
    for target in ["/db/d/x?rev=1-ff", "/db/d/x?rev=0-1", "/db/newdoc/x?rev=1-000"] {
      try expect(put(target, bytes).status, equals: 409)
      try expect(put(target, bytes).error, equals: ["not_found", "missing_rev"])
    }
    try expect(
      client.send("DELETE", "/db/d/dir/file%20name.bin?rev=4-garbage").error,
      equals: [
        "not_found", "missing_rev",
      ])
    try expect(
      client.send("DELETE", "/db/d/none").error, equals: ["not_found", "Document is missing attachment"])
    try expect(client.send("DELETE", "/db/none/x").error, equals: ["not_found", "missing"])
    try expect(
      put("/db/d/a%80b", bytes).error, equals: ["bad_request", "Attachment name is not UTF-8 encoded"])
    try expect(put("/db/d/_x", bytes).status, equals: 400)
    try expect(put("/db/d/x", bytes, [("If-Match", first), ("Content-Encoding", "br")]).status, equals: 415)
    try expect(
      put("/db/d/x", bytes, [("If-Match", first), ("Content-Encoding", "gzip")]).status, equals: 400)
    let second = try put("/db/d/x", [], [("If-Match", first)]).json()["rev"].string ?? ""
    try expect(client.ask("GET", "/db/d/x").body(), equals: [])
    try expect(client.get("/db/d").json()["_attachments"].count, equals: 2)
    try expect(put("/db/d/x?rev=\(first)", bytes).status, equals: 409)
    try expect(client.send("DELETE", "/db/d/x").status, equals: 409)
    let third = try client.send("DELETE", "/db/d/x?rev=\(second)")
    expect(third.status, equals: 200)
    let revision = try third.json()["rev"].string ?? ""
    try expect(
      client.send("DELETE", "/db/d/x?rev=\(revision)").error,
      equals: [
        "not_found", "Document is missing attachment",
      ])
    try expect(client.send("POST", "/db/d/x", "").header("Allow"), equals: "DELETE,GET,HEAD,PUT")
    _ = try client.send("DELETE", "/db/d?rev=\(revision)")
    try expect(client.get("/db/d/x").error, equals: ["not_found", "deleted"])
    try expect(client.get("/db/none/x").error, equals: ["not_found", "missing"])
  }

  @Test("a copy keeps the generations of its source, also when it is changed", arguments: someEngines)
  func copied(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let first = try client.save("/db/a", #"{"_attachments":{"one":{"data":"YQ=="}}}"#)
    let second = try client.save(
      "/db/a?rev=\(first)", #"{"_attachments":{"one":{"stub":true},"two":{"data":"Yg=="}}}"#)
    expect(second.hasPrefix("2-"))
    func generations(_ id: String) throws -> [UInt64?] {
      let found = try client.get("/db/\(id)").json()["_attachments"]
      return ["one", "two", "three"].map { found[$0]["revpos"].uint }
    }
    let copy = try client.ask("COPY", "/db/a", headers: [("Destination", "b")])
    expect(copy.status, equals: 201)
    try expect(generations("b"), equals: [1, 2, nil])
    let revision = try copy.json()["rev"].string ?? ""
    let stubs = #"{"one":{"stub":true},"two":{"stub":true,"revpos":2},"three":{"data":"Yw=="}}"#
    try client.save("/db/b?rev=\(revision)", "{\"_attachments\":\(stubs)}")
    try expect(generations("b"), equals: [1, 2, 2])
    try expect(client.ask("GET", "/db/b/two").text, equals: "b")
  }

  @Test("another type, or other bytes, are a change of the attachment", arguments: someEngines)
  func changedType(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    var revision = ""
    func put(_ type: String, _ bytes: [UInt8], encoding: String = "identity") throws -> [UInt64?] {
      let answer = try client.ask(
        "PUT", "/db/d/a" + (revision.isEmpty ? "" : "?rev=\(revision)"),
        headers: [("Content-Type", type), ("Content-Encoding", encoding)], body: bytes)
      expect(answer.status, equals: 201)
      revision = try answer.json()["rev"].string ?? ""
      return [try client.get("/db/d").json()["_attachments"]["a"]["revpos"].uint]
    }
    let encoded = try #require(GzipEncoder()).encode(bytes, isLast: true)
    try expect(put("x/one", bytes), equals: [1])
    try expect(put("x/two", bytes), equals: [2])
    try expect(put("x/two", bytes), equals: [2])
    try expect(put("x/two", encoded), equals: [4])
    try expect(put("x/two", encoded, encoding: "gzip"), equals: [5])
    // A replica that has an older one gets it again.
    let since = try client.get("/db/d?rev=\(revision)&revs=true").json()["_revisions"]["ids"][1].string ?? ""
    let sent = try client.get("/db/d?atts_since=%5B%224-\(since)%22%5D").json()["_attachments"]["a"]
    expect(sent["data"].string != nil && sent["stub"].isNull)
    // The same inline, and stubs.
    let inline = #"{"_attachments":{"a":{"content_type":"x/three","data":"\#(base64(bytes))"}}}"#
    revision = try client.save("/db/d?rev=\(revision)", inline)
    let document = try client.get("/db/d").json()
    expect(document["_attachments"]["a"]["revpos"], equals: 6)
    _ = try client.save("/db/d", try document.canonicalJSON())
    try expect(client.get("/db/d").json()["_attachments"], equals: document["_attachments"])
  }

  @Test("what comes as gzip on its own has the length of what came", arguments: someEngines)
  func gzipped(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let encoded = try #require(GzipEncoder()).encode(Array(text.utf8), isLast: true)
    let headers = [("Content-Encoding", "gzip"), ("Content-Type", "text/plain")]
    try expect(client.ask("PUT", "/db/a/t", headers: headers, body: encoded).status, equals: 201)
    let stub = try client.get("/db/a?att_encoding_info=true").json()["_attachments"]["t"]
    expect(
      stub["length"].uint == UInt64(encoded.count) && stub["encoded_length"].uint == UInt64(encoded.count))
    try expect(client.ask("GET", "/db/a/t").text, equals: text)
    // Several members in a row are one stream (RFC 1952, 2.2).
    let members = encoded + encoded
    try expect(client.ask("PUT", "/db/b/t", headers: headers, body: members).status, equals: 201)
    try expect(client.ask("GET", "/db/b/t").text, equals: text + text)
    for broken in [members + [1], Array(members.dropLast()), encoded + Array("x".utf8)] {
      try expect(client.ask("PUT", "/db/c/t", headers: headers, body: broken).status, equals: 400)
    }
    // A list shows the same, always in the same order.
    let lists = try (0..<10).map { _ in try client.get("/db/_all_docs?include_docs=true").text }
    expect(Set(lists).count, equals: 1)
  }

  @Test("types that compress are stored as gzip, and sent so to those who take it", arguments: someEngines)
  func compressed(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    _ = try client.ask(
      "PUT", "/db/t/t.txt", headers: [("Content-Type", "text/plain; charset=utf-8")], body: Array(text.utf8))
    let plain = try client.ask("GET", "/db/t/t.txt", headers: [("Range", "bytes=0-9")])
    expect(plain.status, equals: 200)
    expect(plain.text, equals: text)
    expect(plain.header("Accept-Ranges"), equals: "none")
    let gzip = try client.ask("GET", "/db/t/t.txt", headers: [("Accept-Encoding", "gzip")])
    expect(gzip.header("Content-Encoding"), equals: "gzip")
    let encoded = gzip.body()
    expect(encoded.starts(with: [0x1F, 0x8B]))
    // What comes as gzip is kept as it comes.
    let made = try client.ask(
      "PUT", "/db/g/g.txt", headers: [("Content-Type", "text/plain"), ("Content-Encoding", "gzip")],
      body: encoded)
    expect(made.status, equals: 201)
    try expect(client.ask("GET", "/db/g/g.txt").text, equals: text)
    // HEAD tells the length that GET would have.
    for target in ["/db/t/t.txt", "/db/g/g.txt"] {
      try expect(client.ask("HEAD", target).length, equals: text.utf8.count)
      let encodedHead = try client.ask("HEAD", target, headers: [("Accept-Encoding", "gzip")])
      expect(encodedHead.length, equals: encoded.count)
    }
    try expect(
      client.ask("GET", "/db/g/g.txt", headers: [("Accept-Encoding", "gzip")]).body(), equals: encoded)
    try expect(
      client.ask("GET", "/db/g/g.txt", headers: [("Accept-Encoding", "gzip;q=0")]).text, equals: text)
    try expect(
      client.ask(
        "PUT", "/db/g2/g.txt", headers: [("Content-Encoding", "gzip")], body: encoded.dropLast(3)
      ).status, equals: 400)
  }

  @Test("a document and its attachments travel as multipart", arguments: someEngines)
  func multipart(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    func body(_ json: String, _ parts: [[UInt8]]) -> [UInt8] {
      var body = Array("--abc\r\nContent-Type: application/json\r\n\r\n\(json)".utf8)
      for part in parts { body += Array("\r\n--abc\r\n\r\n".utf8) + part }
      return body + Array("\r\n--abc--".utf8)
    }
    let type = [("Content-Type", "multipart/related;boundary=\"abc\"")]
    let json =
      #"{"m":1,"_attachments":{"z.bin":{"follows":true,"content_type":"application/octet-stream","length":70},"a.txt":{"follows":true,"content_type":"text/plain","length":1760}}}"#
    let made = try client.ask("PUT", "/db/m", headers: type, body: body(json, [bytes, Array(text.utf8)]))
    expect(made.status, equals: 201)
    let revision = try made.json()["rev"].string ?? ""
    try expect(client.ask("GET", "/db/m/z.bin").body(), equals: bytes)
    try expect(client.ask("GET", "/db/m/a.txt").text, equals: text)
    let read = try client.ask(
      "GET", "/db/m?attachments=true&revs=true", headers: [("Accept", "multipart/related")])
    expect(read.parts.count, equals: 3)
    expect(read.parts.last?.header("Content-Disposition")?.hasPrefix("attachment; filename="), equals: true)
    expect(read.header("ETag"), equals: "\"\(revision)\"")
    // What was read is stored as it comes in another database, as a replicator does.
    _ = try client.ask("PUT", "/copy")
    let copied = try client.ask(
      "PUT", "/copy/m?new_edits=false", headers: [("Content-Type", read.header("Content-Type") ?? "")],
      body: read.body())
    try expect(copied.json()["rev"].string, equals: revision)
    try expect(
      client.get("/copy/m?attachments=true").json(), equals: client.get("/db/m?attachments=true").json())
    // The first part is the document, and says so.
    for head in ["", "Content-Type: text/plain\r\n"] {
      let other = Array("--abc\r\n\(head)\r\n{}\r\n--abc--".utf8)
      let refused = try client.ask("PUT", "/db/m9", headers: type, body: other)
      expect(refused.status, equals: 415)
      try expect(refused.error, equals: ["bad_content_type", "Content-Type must be application/json"])
    }
    // Who has no revision wants all attachments.
    let all = try client.get("/db/m?atts_since=%5B%5D").json()["_attachments"]
    expect(all["z.bin"]["data"].string != nil && all["a.txt"]["data"].string != nil)
    // Only what is new is sent to one who has a revision.
    let second = try client.save(
      "/db/m", #"{"_rev":"\#(revision)","m":2,"_attachments":{"z.bin":{"stub":true},"n":{"data":"M3Jk"}}}"#)
    let since = try client.get("/db/m?atts_since=%5B%22\(revision)%22%5D").json()["_attachments"]
    expect(since["z.bin"]["stub"], equals: true)
    expect(since["n"]["data"], equals: "M3Jk")
    let open = try client.ask(
      "GET", "/db/m?open_revs=%5B%22\(second)%22%5D&revs=true", headers: [("Accept", "multipart/mixed")])
    expect(open.parts.count, equals: 1)
    guard case .parts(let inner)? = open.parts.first?.content else {
      Issue.record("no multipart/related inside")
      return
    }
    expect(inner.count, equals: 3)
    for (json, parts, reason) in [
      (
        #"{"_attachments":{"a":{"follows":true,"length":2}}}"#, [[1, 2, 3]], "attachment longer than expected"
      ),
      (
        #"{"_attachments":{"a":{"follows":true,"length":4}}}"#, [[1, 2, 3]],
        "attachment shorter than expected"
      ),
      (
        #"{"_attachments":{"a":{"follows":true}}}"#, [], "the multipart body has no part for the attachment a"
      ),
      (
        #"{"_attachments":{"a":{"follows":true,"digest":"md5-MDAwMDAwMDAwMDAwMDAwMA=="}}}"#, [[1, 2, 3]],
        "Possible message corruption."
      ),
      (#"{"_attachments":"#, [], "invalid UTF-8 JSON"),
    ] as [(String, [[UInt8]], String)] {
      let response = try client.ask("PUT", "/db/bad", headers: type, body: body(json, parts))
      expect(response.status, equals: 400, "\(json)")
      try expect(response.error[1], equals: reason, "\(json)")
    }
    try expect(
      client.ask("PUT", "/db/bad", headers: type, body: Array("no parts at all".utf8)).status, equals: 400)
    try expect(client.get("/db/bad").status, equals: 404)
  }

  @Test("blobs of documents that aren't saved don't stay")
  func leftovers() throws {
    let database = try databases.open(.lmdb)
    let client = APIClient(["db": database])
    try client.save("/db/a", #"{"_attachments":{"x":{"data":"eHg="},"y":{"data":"eHg="}}}"#)
    for index in 0..<5 {
      let data = base64([UInt8(index), 1, 2])
      try expect(
        client.send(
          "PUT", "/db/a", #"{"_attachments":{"x":{"data":"\#(data)"},"y":{"data":"\#(data)"}}}"#
        ).status, equals: 409)
      try expect(client.ask("PUT", "/db/a/z", body: [UInt8(index), 9]).status, equals: 409)
      try expect(
        client.send(
          "POST", "/db/_bulk_docs", #"{"docs":[{"_id":"a","_attachments":{"x":{"data":"\#(data)"}}}]}"#
        ).status, equals: 201)
    }
    try expect(database.replicating { try $0.requiredBlobs.hasUnsaved }, equals: false)
    try expect(database.replicating { try $0.requiredBlobs.files().count }, equals: 1)
  }
}
