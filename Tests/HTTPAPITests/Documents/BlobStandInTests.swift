import Blobs
import Fleece
import HTTPAPI
import TestSupport
import Testing
import Touchstone

@Suite("Blobs of documents as attachments") struct BlobStandInTests {
  private let bytes: [UInt8] = (0..<3_000).map { UInt8(truncatingIfNeeded: $0 &* 37) }

  @Test("blobs are read as attachments, and aren't stored as such", arguments: allEngines)
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
    #expect(try saved.json() == [])
    let read = try client.get("/db/doc").json()
    let attachments = read["_attachments"].object ?? [:]
    #expect(Set(attachments.keys) == ["blob_/photo", "blob_/list/1/a~1b~0", "own", "blob_/none"])
    #expect(attachments["blob_/photo"]?["digest"].string == blob.digest.text)
    #expect(attachments["blob_/photo"]?["length"] == 3000 && attachments["blob_/photo"]?["revpos"] == 2)
    for name in ["blob_%2Fphoto", "blob_/photo", "blob_%2Flist%2F1%2Fa~1b~0"] {
      #expect(try client.ask("GET", "/db/doc/\(name)").body() == bytes)
    }
    // An update by a client that sends what it has got.
    var document = read
    document["n"] = 1
    _ = try client.save("/db/doc", try document.canonicalJSON())
    let again = try client.get("/db/doc?attachments=true").json()
    #expect(again["photo"] == read["photo"] && again["_attachments"]["blob_/photo"]["revpos"] == 3)
    #expect(again["_attachments"]["blob_/photo"]["data"].string == data)
    // A blob that goes takes its attachment along.
    document = try client.get("/db/doc").json()
    document.remove("photo")
    document["_attachments"].remove("blob_/photo")
    _ = try client.save("/db/doc", try document.canonicalJSON())
    #expect(try client.get("/db/doc/blob_%2Fphoto").status == 404)
    #expect(try client.ask("GET", "/db/doc/own").body() == [1, 2])
  }
}
