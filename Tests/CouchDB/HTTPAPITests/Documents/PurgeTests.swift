import Documents
import Fleece
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite("Purges over HTTP") struct PurgeRequestTests {
  @Test("the requests are kept, the oldest first, and go with the oldest", arguments: someEngines)
  func requests(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    try expect(client.ask("PUT", "/db").status, equals: 201)
    try expect(client.get("/db/_purged_infos").json(), equals: ["purged_infos": []])
    try expect(client.get("/db").json()["purge_seq"], equals: "0")
    let a = try client.save("/db/a", "{}")
    let b = try client.save("/db/b", "{}")
    let answer = try client.send(
      "POST", "/db/_purge", "{\"b\":[\"\(b)\"],\"a\":[\"\(a)\",\"1-no\"],\"no\":[\"1-x\"]}")
    expect(answer.status, equals: 201)
    try expect(
      answer.json(),
      equals: ["purge_seq": .null, "purged": ["b": [.string(b)], "a": [.string(a)], "no": []]])
    let infos = try client.get("/db/_purged_infos").json()["purged_infos"].array ?? []
    // Those of one request come in any order.
    expect(
      Set(infos),
      equals: [
        ["id": "b", "revs": [.string(b)]], ["id": "a", "revs": [.string(a), "1-no"]],
        ["id": "no", "revs": ["1-x"]],
      ])
    try expect(client.get("/db").json()["purge_seq"], equals: "3")
    try expect(client.get("/db/a").error, equals: ["not_found", "missing"])
    // One request of more than are kept.
    let many = JSONValue.object(
      JSONObject((0..<1_100).map { ("x\($0)", JSONValue.array(["1-a"])) }))
    try expect(client.send("POST", "/db/_purge", many.description).status, equals: 201)
    let kept = try client.get("/db/_purged_infos").json()["purged_infos"].array ?? []
    expect(kept.count == 1_000 && Set(kept).count == 1_000 && kept.allSatisfy { $0["revs"] == ["1-a"] })
    try expect(client.get("/db").json()["purge_seq"], equals: "1103")
    try expect(client.send("POST", "/db/_purge", "{}").status, equals: 201)
    try expect(client.ask("POST", "/db/_purged_infos").status, equals: 405)
  }

  @Test("as many requests are kept as the limit says", arguments: someEngines)
  func limit(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    try expect(client.ask("PUT", "/db").status, equals: 201)
    let path = "/db/_purged_infos_limit"
    try expect(client.get(path).text, equals: "1000\n")
    func purge(_ names: Range<Int>) throws {
      for number in names {
        try expect(client.send("POST", "/db/_purge", #"{"d\#(number)":["1-a"]}"#).status, equals: 201)
      }
    }
    func kept() throws -> [String] {
      (try client.get("/db/_purged_infos").json()["purged_infos"].array ?? []).compactMap { $0["id"].string }
    }
    try purge(0..<5)
    try expect(client.send("PUT", path, "3").json(), equals: ["ok": true])
    try expect(client.get(path).text, equals: "3\n")
    try expect(kept(), equals: ["d2", "d3", "d4"])
    try purge(5..<7)
    try expect(kept(), equals: ["d4", "d5", "d6"])
    // A higher one brings nothing back, and counts from now on.
    try expect(client.send("PUT", path, "5").status, equals: 200)
    try purge(7..<10)
    try expect(kept(), equals: ["d5", "d6", "d7", "d8", "d9"])
    for body in ["0", "-1", "\"5\"", "1.5", "null", "{}", "", "x"] {
      let answer = try client.send("PUT", path, body)
      expect(answer.status, equals: 400, "\(body)")
    }
    try expect(client.send("PUT", path, "99999999999").status, equals: 200)
    try expect(client.get(path).text, equals: "1000000\n")
    try expect(client.get("/db").json()["purge_seq"], equals: "10")
  }

  @Test("a purge that leaves a leaf is a change, and that of the last leaf isn't", arguments: someEngines)
  func left(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.saveKnown()
    try reading.database.save(
      "_design/d", ["views": ["x": ["map": "function (doc) { emit(doc._id, doc.x) }"]]])
    let view = "_design/d/_view/x?key=%22conf%22&update_seq=true"
    func value() throws -> JSONValue? { try reading.get(view).json()["rows"].array?.first?["value"] }
    try expect(value(), equals: 4)
    let feed = try reading.get("_changes?feed=longpoll&style=all_docs&since=7")
    eventually { reading.client.service.watches.counts.waiting == 1 && reading.timer.count > 0 }
    try expect(
      reading.post("_purge", #"{"conf":["2-x"]}"#).json()["purged"], equals: ["conf": ["2-x"]])
    expect(
      feed.unmarkedText,
      equals: "{\"results\":[\n\n{\"seq\":\"8\",\"id\":\"conf\",\"changes\":[{\"rev\":\"2-w\"}]}\n],\n"
        + "\"last_seq\":\"8\",\"pending\":0}\n\n")
    try expect(value(), equals: 5)
    try expect(reading.get("conf?conflicts=true&local_seq=true").json()["_local_seq"], equals: 8)
    // A leaf that lost goes, and the current one stays.
    try reading.apply("conf", "2-a", "1-y", body: ["x": 6])
    try expect(reading.post("_purge", #"{"conf":["2-a","2-none"]}"#).status, equals: 201)
    let rows = try reading.get("_changes?style=all_docs&since=9").json()["results"]
    expect(rows, equals: [["seq": reading.sequence(10), "id": "conf", "changes": [["rev": "2-w"]]]])
    try expect(value(), equals: 5)
    // Nothing is left.
    try expect(reading.post("_purge", #"{"conf":["2-w"]}"#).status, equals: 201)
    try expect(reading.get("_changes?since=10").json()["results"], equals: [])
    try expect(reading.get("_changes?since=0").json()["last_seq"], equals: reading.sequence(10))
    try expect(reading.get("conf").error, equals: ["not_found", "missing"])
    try expect(value() == nil)
    try expect(reading.database.check(deep: true), equals: [])
  }

  @Test("they outlive a close, and a check finds nothing wrong with them", arguments: someEngines)
  func stored(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var database = try Database.open("db", in: directory.path, options: try options(engine))
    let saved = try database.save("a", ["n": 1])
    let request = PurgeRequest(id: "a", revisions: [saved.revisionID.description])
    try expect(database.replicatingChanges { try $0.purge([request]) }, equals: [request.revisions])
    try database.close()
    database = try Database.open("db", in: directory.path, options: try options(engine))
    try expect(database.read { try $0.purgeRequests }, equals: [request])
    try expect(database.read { try $0.lastPurgeRequest }, equals: 1)
    try expect(database.check(deep: true), equals: [])
    try expect(database.document("a") == nil)
    try database.close()
  }
}
