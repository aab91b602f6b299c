import Blobs
import Fleece
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// What a document says of attachments that are stored already.
@Suite struct StubTests {
  @Test("what a stub says is compared, and never stored", arguments: someEngines)
  func stubs(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    var revision = try client.save(
      "/db/a", #"{"_attachments":{"f":{"content_type":"image/png","data":"aGVsbG8="}}}"#)
    let stored = try client.get("/db/a").json()["_attachments"]
    expect(stored["f"]["length"], equals: 5)
    for member in [
      #""length":-1"#, #""length":1e300"#, #""length":18446744073709551615"#, #""length":1.5"#,
      #""length":"5""#, #""length":null"#, #""digest":"md5-AAAAAAAAAAAAAAAAAAAAAA==""#, #""digest":7"#,
      #""encoding":"gzip","encoded_length":-1"#, #""content_type":"text/html""#, #""data":"AAAA""#,
      #""revpos":1"#, #""revpos":1.0"#,
    ] {
      let text = #"{"_rev":"\#(revision)","_attachments":{"f":{"stub":true,\#(member)}}}"#
      let answer = try client.send("PUT", "/db/a", text)
      expect(answer.status, equals: 201, "\(member)")
      revision = try answer.json()["rev"].string ?? ""
      try expect(client.get("/db/a").json()["_attachments"], equals: stored, "\(member)")
      try expect(client.ask("GET", "/db/a/f").text, equals: "hello", "\(member)")
    }
    for revpos in ["0", "2", "-1", "1.5", "\"1\"", "null", "18446744073709551616"] {
      let text = #"{"_rev":"\#(revision)","_attachments":{"f":{"stub":true,"revpos":\#(revpos)}}}"#
      let answer = try client.send("PUT", "/db/a", text)
      expect(answer.status, equals: 412, "\(revpos)")
      try expect(answer.error, equals: ["missing_stub", "Invalid attachment stub in a for f"], "\(revpos)")
    }
    for stub in [#"{"stub":1}"#, #"{"stub":"true"}"#, #"{"stub":false}"#, #"{"stub":null}"#] {
      let text = #"{"_rev":"\#(revision)","_attachments":{"f":\#(stub)}}"#
      try expect(client.send("PUT", "/db/a", text).status, equals: 400, "\(stub)")
    }
    // Of a revision that was made elsewhere the ancestor has them.
    let foreign =
      #"{"_revisions":{"start":2,"ids":["b","a"]},"_attachments":{"f":{"stub":true,"revpos":1,"length":-9}}}"#
    try expect(client.send("PUT", "/db/b?new_edits=false", foreign).status, equals: 412)
    _ = try client.save("/db/b?new_edits=false", #"{"_rev":"1-a","_attachments":{"f":{"data":"aGVsbG8="}}}"#)
    try expect(client.send("PUT", "/db/b?new_edits=false", foreign).status, equals: 201)
    try expect(client.get("/db/b").json()["_attachments"]["f"]["length"], equals: 5)
  }

  @Test("a stub that isn't known doesn't matter where the edit conflicts", arguments: someEngines)
  func conflicts(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let first = try client.save("/db/e", #"{"_attachments":{"a":{"data":"aGVsbG8="}}}"#)
    _ = try client.save("/db/e", #"{"_rev":"\#(first)","n":1}"#)
    let stub = #""_attachments":{"a":{"stub":true},"b":{"stub":true}}"#
    for members in [
      stub, #""_rev":"\#(first)",\#(stub)"#, #""_rev":"1-ff",\#(stub)"#, #""_rev":"9-ff",\#(stub)"#,
    ] {
      try expect(client.send("PUT", "/db/e", "{\(members)}").error[0], equals: "conflict", "\(members)")
      let bulk = try client.send(
        "POST", "/db/_bulk_docs", #"{"docs":[{"_id":"e",\#(members)},{"_id":"\#(DocumentUUID.make())"}]}"#)
      expect(bulk.status, equals: 201)
      try expect(
        bulk.json().array?.map { $0["error"].string ?? "ok" }, equals: ["conflict", "ok"], "\(members)")
    }
    // Over the leaf, and where there is no live document, it does.
    let leaf = try client.get("/db/e").json()["_rev"].string ?? ""
    try expect(client.send("PUT", "/db/e", #"{"_rev":"\#(leaf)",\#(stub)}"#).status, equals: 412)
    try expect(client.send("PUT", "/db/none", "{\(stub)}").status, equals: 412)
    try expect(client.send("DELETE", "/db/e?rev=\(leaf)").status, equals: 200)
    try expect(client.send("PUT", "/db/e", "{\(stub)}").status, equals: 412)
  }

  @Test("a stub that isn't known doesn't matter in a revision that is here already", arguments: someEngines)
  func repeated(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    _ = try client.save("/db/a?new_edits=false", #"{"_revisions":{"start":2,"ids":["b","a"]},"n":1}"#)
    let stub = #""_attachments":{"x":{"stub":true},"y":{"data":"AQI="}}"#
    for revision in ["2-b", "1-a"] {
      let document = #"{"_id":"a","_rev":"\#(revision)",\#(stub)}"#
      let answer = try client.send("PUT", "/db/a?new_edits=false", document)
      expect(answer.status, equals: 201)
      try expect(answer.json()["rev"].string, equals: revision)
      let bulk = try client.send("POST", "/db/_bulk_docs", #"{"new_edits":false,"docs":[\#(document)]}"#)
      expect(bulk.status == 201 && bulk.text == "[]\n")
    }
    try expect(client.get("/db/a?conflicts=true").json().object?.count, equals: 3)
    try expect(client.send("PUT", "/db/a?new_edits=false", "{\"_rev\":\"3-c\",\(stub)}").status, equals: 412)
  }

  @Test("the length of an attachment that follows must be one", arguments: ["-1", "1.5", "\"2\"", "null"])
  func lengths(_ length: String) throws {
    let client = try APIClient.withDatabase()
    let document = #"{"_attachments":{"f":{"follows":true,"length":\#(length)}}}"#
    let body = "--x\r\nContent-Type: application/json\r\n\r\n\(document)\r\n--x\r\n\r\nhi\r\n--x--"
    let answer = try client.send(
      "PUT", "/db/a", body, headers: [("Content-Type", "multipart/related; boundary=x")])
    expect(answer.status, equals: 400)
    try expect(client.get("/db/a").status, equals: 404)
  }

  @Test("very many attachments are read in one pass, and of two with one name the last one counts")
  func many() throws {
    let client = try APIClient.withDatabase()
    let stubs = (0..<100_000).map { "\"\($0)\":{\"stub\":true}" }.joined(separator: ",")
    try expect(client.send("PUT", "/db/a", "{\"_attachments\":{\(stubs)}}").status, equals: 412)
    _ = try client.save(
      "/db/b", #"{"_attachments":{"f":{"data":"AAAA"},"g":{"data":"AAAA"},"f":{"data":"aGVsbG8="}}}"#)
    try expect(client.ask("GET", "/db/b/f").text, equals: "hello")
  }

  @Test("attachments don't count as the size of their document") func sizes() throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.maximumDocumentBytes = 1_000
    let client = try APIClient.withDatabase(.lmdb, configuration)
    let data = base64([UInt8](repeating: 7, count: 3_000))
    let document = #"{"n":1,"_attachments":{"f":{"data":"\#(data)"}}}"#
    try expect(client.send("PUT", "/db/a", document).status, equals: 201)
    try expect(
      client.send("POST", "/db/_bulk_docs", #"{"docs":[\#(document)]}"#).status, equals: 201)
    try expect(client.ask("GET", "/db/a/f").body().count, equals: 3_000)
    try expect(client.send("PUT", "/db/b", #"{"s":"\#(data)"}"#).status, equals: 413)
  }
}
