import Fleece
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite struct CopyTests {
  @Test("of a tombstone nothing is copied, unless its revision is named", arguments: someEngines)
  func tombstones(_ engine: EngineName) throws {
    let client = try APIClient.withDatabase(engine)
    let live = try client.save("/db/a", #"{"n":1}"#)
    let tombstone = try client.save("/db/a", #"{"_rev":"\#(live)","_deleted":true,"why":"old"}"#)
    func copy(_ source: String, _ target: String, headers: [(String, String)] = []) throws -> Response {
      try client.send("COPY", "/db/\(source)", headers: [("Destination", target)] + headers)
    }
    let refused = try copy("a", "b")
    #expect(refused.status == 404)
    #expect(try refused.error == ["not_found", "deleted"])
    #expect(try client.get("/db/b").error == ["not_found", "missing"])

    // The tombstone itself makes a tombstone.
    let copied = try copy("a?rev=\(tombstone)", "b")
    #expect(copied.status == 201)
    #expect(try client.get("/db/b").error == ["not_found", "deleted"])
    let revision = try copied.json()["rev"].string ?? ""
    let body = try client.get("/db/b?rev=\(revision)").json()
    #expect(body["_deleted"] == true && body["why"] == "old")
    // Over a document that lives, it deletes that.
    let other = try client.save("/db/c", #"{"n":2}"#)
    #expect(try copy("a?rev=\(tombstone)", "c?rev=\(other)").status == 201)
    #expect(try client.get("/db/c").error == ["not_found", "deleted"])

    // A revision that was replaced is as good as any, in the query or in the header.
    #expect(try copy("a?rev=\(live)", "d").status == 201)
    #expect(try copy("a", "e", headers: [("If-Match", "\"\(live)\"")]).status == 201)
    #expect(try client.get("/db/d").json()["n"] == 1)
    #expect(try client.get("/db/e").json()["n"] == 1)
    #expect(try copy("a?rev=9-a", "f").status == 404)
  }
}
