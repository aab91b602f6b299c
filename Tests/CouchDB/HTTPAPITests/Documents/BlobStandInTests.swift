import Blobs
import Fleece
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite("Blobs of documents as attachments") struct BlobStandInTests {
  private let bytes: [UInt8] = (0..<3_000).map { UInt8(truncatingIfNeeded: $0 &* 37) }

  @Test("blobs are read as attachments, and aren't stored as such", arguments: someEngines)
  func blobs(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    _ = try client.ask("PUT", "/db")
    let data = base64(bytes)
    // Where a document names a blob, the attachment that stands for it is left out when it is stored.
    let blob = try Blob(bytes, contentType: "image/png")
    let member = #"{"@type":"blob","digest":"\#(blob.digest.text)","length":3000,"content_type":"image/png"}"#
    let text =
      #"{"_id":"doc","_rev":"2-b","_revisions":{"start":2,"ids":["b","a"]},"photo":\#(member),"list":[1,{"a/b~":\#(member)}],"_attachments":{"#
      + #""blob_/photo":{"data":"\#(data)","content_type":"image/png"},"own":{"data":"AQI="},"blob_/none":{"data":"Aw=="}}}"#
    let saved = try client.send("POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":[\#(text)]}"#)
    try expect(saved.json(), equals: [])
    let read = try client.get("/db/doc").json()
    let attachments = read["_attachments"].object ?? [:]
    expect(Set(attachments.keys), equals: ["blob_/photo", "blob_/list/1/a~1b~0", "own", "blob_/none"])
    expect(attachments["blob_/photo"]?["digest"].string, equals: blob.digest.text)
    expect(attachments["blob_/photo"]?["length"] == 3000 && attachments["blob_/photo"]?["revpos"] == 2)
    for name in ["blob_%2Fphoto", "blob_/photo", "blob_%2Flist%2F1%2Fa~1b~0"] {
      try expect(client.ask("GET", "/db/doc/\(name)").body(), equals: bytes)
    }
    // An update by a client that sends what it has got.
    var document = read
    document["n"] = 1
    _ = try client.save("/db/doc", try document.canonicalJSON())
    let again = try client.get("/db/doc?attachments=true").json()
    expect(again["photo"] == read["photo"] && again["_attachments"]["blob_/photo"]["revpos"] == 3)
    expect(again["_attachments"]["blob_/photo"]["data"].string, equals: data)
    // A blob that goes takes its attachment along.
    document = try client.get("/db/doc").json()
    document.remove("photo")
    document["_attachments"].remove("blob_/photo")
    _ = try client.save("/db/doc", try document.canonicalJSON())
    try expect(client.get("/db/doc/blob_%2Fphoto").status, equals: 404)
    try expect(client.ask("GET", "/db/doc/own").body(), equals: [1, 2])
  }

  /// A client that knows only attachments has replaced that of a blob, and the body still has the old digest.
  @Test("an attachment that was replaced elsewhere becomes the blob", arguments: someEngines)
  func replaced(_ engine: EngineName) throws {
    let old = try Blob(Array("photo bytes".utf8), contentType: "image/png")
    let new = Array("NEW bytes!!".utf8)
    let member = #"{"@type":"blob","digest":"\#(old.digest.text)","length":11,"content_type":"image/png"}"#
    func document(_ revision: String, _ attachment: String) -> String {
      #"{"_id":"x","_rev":"\#(revision)","n":1,"list":[0,{"a/b":\#(member)}],"_attachments":{"blob_/list/1/a~1b":\#(attachment)}}"#
    }
    // The database may have the old bytes or not.
    for hasOld in [true, false] {
      let client = try APIClient(engine)
      _ = try client.ask("PUT", "/db")
      if hasOld {
        let first = document(
          "1-a", #"{"content_type":"image/png","data":"\#(base64(Array("photo bytes".utf8)))"}"#)
        try expect(client.send("PUT", "/db/x?new_edits=false", first).status, equals: 201)
      }
      let second = document("2-b", #"{"content_type":"image/png","revpos":2,"data":"\#(base64(new))"}"#)
      let bulk = try client.send("POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":[\#(second)]}"#)
      expect(bulk.status == 201 && bulk.text == "[]\n", "\(bulk.text)")
      let read = try client.get("/db/x").json()
      let blob = read["list"][1]["a/b"]
      try expect(
        blob["digest"].string == (try Blob(new, contentType: nil)).digest.text && blob["length"] == 11)
      expect(blob["content_type"] == "image/png" && read["n"] == 1)
      expect(read["_attachments"].object?.count, equals: 1)
      try expect(client.ask("GET", "/db/x/blob_%2Flist%2F1%2Fa~1b").body(), equals: new)
      // The next revision of the other side has a stub, and still the digest of old.
      let third = document("3-c", #"{"stub":true,"revpos":2}"#).replacing(
        #""_rev":"3-c""#, with: #""_revisions":{"start":3,"ids":["c","b"]}"#)
      try expect(client.send("PUT", "/db/x?new_edits=false", third).status, equals: 201)
      try expect(client.get("/db/x").json()["list"], equals: read["list"])
    }
  }

  @Test("a blob that comes as a compressed attachment is stored as it is", arguments: someEngines)
  func compressed(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    _ = try client.ask("PUT", "/db")
    let text = Array(String(repeating: "words ", count: 500).utf8)
    let gzip = try #require(GzipEncoder()).encode(text, isLast: true)
    let blob = try Blob(text, contentType: "text/plain")
    let json =
      #"{"_id":"t","_rev":"1-a","text":{"@type":"blob","digest":"\#(blob.digest.text)","length":3000},"_attachments":{"blob_/text":"#
      + #"{"follows":true,"content_type":"text/plain","length":3000,"encoding":"gzip","encoded_length":\#(gzip.count)}}}"#
    let body =
      Array("--x\r\nContent-Type: application/json\r\n\r\n\(json)\r\n--x\r\n\r\n".utf8) + gzip
      + Array("\r\n--x--".utf8)
    let saved = try client.ask(
      "PUT", "/db/t?new_edits=false", headers: [("Content-Type", "multipart/related; boundary=x")], body: body
    )
    expect(saved.status, equals: 201, "\(saved.text)")
    let read = try client.get("/db/t").json()
    expect(read["text"]["digest"].string, equals: blob.digest.text)
    expect(read["_attachments"]["blob_/text"]["digest"].string, equals: blob.digest.text)
    try expect(client.ask("GET", "/db/t/blob_%2Ftext").body(), equals: text)
  }

  @Test("a blob without bytes refuses its document alone", arguments: someEngines)
  func dangling(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    _ = try client.ask("PUT", "/db")
    let document =
      #"{"_rev":"1-a","v":{"@type":"blob","digest":"sha1-AAAAAAAAAAAAAAAAAAAAAAAAAAA=","length":3}}"#
    let answer = try client.send("PUT", "/db/a?new_edits=false", document)
    expect(answer.status, equals: 403)
    try expect(answer.error[0], equals: "forbidden")
  }
}
