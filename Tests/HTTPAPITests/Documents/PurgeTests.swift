import Documents
import Fleece
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite("Purges over HTTP") struct PurgeRequestTests {
  @Test("the requests are kept, the oldest first, and go with the oldest", arguments: allEngines)
  func requests(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    #expect(try client.ask("PUT", "/db").status == 201)
    #expect(try client.get("/db/_purged_infos").json() == ["purged_infos": []])
    #expect(try client.get("/db").json()["purge_seq"] == "0")
    let a = try client.save("/db/a", "{}")
    let b = try client.save("/db/b", "{}")
    let answer = try client.send(
      "POST", "/db/_purge", "{\"b\":[\"\(b)\"],\"a\":[\"\(a)\",\"1-no\"],\"no\":[\"1-x\"]}")
    #expect(answer.status == 201)
    #expect(
      try answer.json() == ["purge_seq": .null, "purged": ["b": [.string(b)], "a": [.string(a)], "no": []]])
    let infos = try client.get("/db/_purged_infos").json()["purged_infos"].array ?? []
    // Those of one request come in any order.
    #expect(
      Set(infos) == [
        ["id": "b", "revs": [.string(b)]], ["id": "a", "revs": [.string(a), "1-no"]],
        ["id": "no", "revs": ["1-x"]],
      ])
    #expect(try client.get("/db").json()["purge_seq"] == "3")
    #expect(try client.get("/db/a").error == ["not_found", "missing"])
    // One request of more than are kept.
    let many = JSONValue.object(
      JSONObject((0..<1_100).map { ("x\($0)", JSONValue.array(["1-a"])) }))
    #expect(try client.send("POST", "/db/_purge", many.description).status == 201)
    let kept = try client.get("/db/_purged_infos").json()["purged_infos"].array ?? []
    #expect(kept.count == 1_000 && Set(kept).count == 1_000 && kept.allSatisfy { $0["revs"] == ["1-a"] })
    #expect(try client.get("/db").json()["purge_seq"] == "1103")
    #expect(try client.send("POST", "/db/_purge", "{}").status == 201)
    #expect(try client.ask("POST", "/db/_purged_infos").status == 405)
  }

  @Test("they outlive a close, and a check finds nothing wrong with them", arguments: allEngines)
  func stored(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var database = try Database.open("db", in: directory.path, options: try options(engine))
    let saved = try database.save("a", ["n": 1])
    let request = PurgeRequest(id: "a", revisions: [saved.revisionID.description])
    #expect(try database.replicatingChanges { try $0.purge([request]) } == [request.revisions])
    try database.close()
    database = try Database.open("db", in: directory.path, options: try options(engine))
    #expect(try database.read { try $0.purgeRequests } == [request])
    #expect(try database.read { try $0.lastPurgeRequest } == 1)
    #expect(try database.check(deep: true) == [])
    #expect(try database.document("a") == nil)
    try database.close()
  }
}
