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
    expect(refused.status, equals: 404)
    try expect(refused.error, equals: ["not_found", "deleted"])
    try expect(client.get("/db/b").error, equals: ["not_found", "missing"])

    // The tombstone itself makes a tombstone.
    let copied = try copy("a?rev=\(tombstone)", "b")
    expect(copied.status, equals: 201)
    try expect(client.get("/db/b").error, equals: ["not_found", "deleted"])
    let revision = try copied.json()["rev"].string ?? ""
    let body = try client.get("/db/b?rev=\(revision)").json()
    expect(body["_deleted"] == true && body["why"] == "old")
    // Over a document that lives, it deletes that.
    let other = try client.save("/db/c", #"{"n":2}"#)
    try expect(copy("a?rev=\(tombstone)", "c?rev=\(other)").status, equals: 201)
    try expect(client.get("/db/c").error, equals: ["not_found", "deleted"])

    // A revision that was replaced is as good as any, in the query or in the header.
    try expect(copy("a?rev=\(live)", "d").status, equals: 201)
    try expect(copy("a", "e", headers: [("If-Match", "\"\(live)\"")]).status, equals: 201)
    try expect(client.get("/db/d").json()["n"], equals: 1)
    try expect(client.get("/db/e").json()["n"], equals: 1)
    try expect(copy("a?rev=9-a", "f").status, equals: 404)
  }
}
