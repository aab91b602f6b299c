import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// Partitioned databases, as one shard of CouchDB answers them.
@Suite struct PartitionTests {
  private let client: APIClient

  init() throws { client = try APIClient() }

  /// A partitioned database with the partitions `a` (three documents and a tombstone) and `b` (two documents).
  private static func fill(_ client: APIClient) throws {
    try expect(client.ask("PUT", "/p?partitioned=true").status, equals: 201)
    for (id, n) in [("a:1", 1), ("a:2", 2), ("a:3", 3), ("b:1", 10), ("b:2", 20)] {
      _ = try client.save("/p/" + id, #"{"n":\#(n),"kind":"\#(n % 2 == 0 ? "even" : "odd")"}"#)
    }
    let gone = try client.save("/p/a:gone", "{}")
    try expect(client.ask("DELETE", "/p/a:gone?rev=\(gone)").status, equals: 200)
    _ = try client.save(
      "/p/_design/d",
      #"{"views":{"n":{"map":"function (doc) { emit(doc.kind, doc.n); }","reduce":"_sum"}}}"#)
  }

  private func ids(_ value: JSONValue, _ member: String = "id") -> [String] {
    (value["rows"].array ?? value["docs"].array ?? []).compactMap { $0[member].string }
  }

  @Test("a partitioned database says so, and takes only IDs with a partition", arguments: someEngines)
  func identifiers(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let folder = try DatabaseFolder(directory.path, options: try options(engine))
    var client = APIClient(folder: folder)
    try expect(client.ask("PUT", "/p?partitioned=true").status, equals: 201)
    try expect(client.ask("PUT", "/q?partitioned=false").status, equals: 201)
    try expect(client.ask("PUT", "/r?partitioned=1").status, equals: 400)
    try expect(client.get("/p").json()["props"], equals: ["partitioned": true])
    try expect(client.get("/q").json()["props"], equals: [:])
    func check(_ client: APIClient) throws {
      for (id, status) in [
        ("a:b", 201), ("a:b:c", 201), ("é:1", 201), ("_design/x", 201), ("_local/x", 201), ("plain", 400),
        (":b", 400), ("a:", 400), (":", 400),
      ] {
        let target = "/p/" + id.replacing("é", with: "%C3%A9")
        let answer = try client.send("PUT", target, "{}")
        expect(answer.status, equals: status, "\(id)")
        if status == 400 { try expect(answer.json()["error"].string, equals: "illegal_docid") }
      }
      let bulk = try client.send("POST", "/p/_bulk_docs", #"{"docs":[{"_id":"x:1"},{"_id":"y"}]}"#)
      expect(bulk.status, equals: 400)
      try expect(client.get("/p/x:1").status, equals: 404)
      try expect(client.send("POST", "/p", "{}").status, equals: 400)
      try expect(
        client.ask("COPY", "/p/a:b", headers: [("Destination", "copy")]).status, equals: 400)
      try expect(client.send("PUT", "/p/plain/att", "x").status, equals: 400)
      let insert = #"{"query":"INSERT INTO _ (KEY, VALUE) VALUES (\"plain\", {})"}"#
      try expect(client.send("POST", "/p/_query", insert).status, equals: 400)
      try expect(client.send("PUT", "/q/plain", "{}").status, equals: 201)
    }
    try check(client)
    // It is kept with the database.
    try folder.close()
    let again = try DatabaseFolder(directory.path, options: try options(engine))
    client = APIClient(folder: again)
    try expect(client.get("/p").json()["props"], equals: ["partitioned": true])
    try expect(client.send("PUT", "/p/other", "{}").status, equals: 400)
    try again.close()
  }

  @Test("a replication brings only documents with a partition") func replication() throws {
    try Self.fill(client)
    try expect(client.ask("PUT", "/plain").status, equals: 201)
    for id in ["c:1", "nothing"] { _ = try client.save("/plain/" + id, "{}") }
    let answer = try client.send("POST", "/_replicate", #"{"source":"plain","target":"p"}"#)
    try expect(answer.json()["history"][0]["doc_write_failures"], equals: 1)
    try expect(client.get("/p/c:1").status == 200 && client.get("/p/nothing").status == 404)
    let made =
      #"{"source":"plain","target":"new","create_target":true,"create_target_params":{"partitioned":true}}"#
    try expect(client.send("POST", "/_replicate", made).status, equals: 501)
  }

  @Test("a partition tells its documents, and lists them", arguments: someEngines)
  func lists(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    try Self.fill(client)
    let information = try client.get("/p/_partition/a").json()
    expect(
      information["db_name"] == "p" && information["partition"] == "a" && information["doc_count"] == 3
        && information["doc_del_count"] == 1, "\(information)")
    expect((information["sizes"]["active"].int ?? 0) > 0)
    try expect(client.get("/p/_partition/none").json()["doc_count"], equals: 0)
    let base = "/p/_partition/a/_all_docs"
    try expect(ids(client.get(base).json()), equals: ["a:1", "a:2", "a:3"])
    try expect(ids(client.get(base + "?descending=true&limit=2").json()), equals: ["a:3", "a:2"])
    try expect(ids(client.get(base + "?startkey=%22a:2%22").json()), equals: ["a:2", "a:3"])
    // A bound beyond the partition ends at its end.
    try expect(
      ids(client.get(base + "?startkey=%22%22&endkey=%22z%22").json()), equals: ["a:1", "a:2", "a:3"])
    try expect(ids(client.get(base + "?startkey=%22b:1%22").json()), equals: [])
    let keys = try client.send("POST", base, #"{"keys":["a:1","b:1","a:none"]}"#).json()
    expect(ids(keys), equals: ["a:1"])
    expect(keys["rows"].array?.compactMap { $0["error"].string } ?? [], equals: ["not_found", "not_found"])
    try expect(
      client.get(base + "?include_docs=true&skip=1&limit=1").json()["rows"][0]["doc"]["n"], equals: 2)
    // IDs that only begin like the partition's aren't in it.
    _ = try client.save("/p/aa:1", "{}")
    try expect(ids(client.get(base).json()).count, equals: 3)
  }

  @Test("_find in a partition finds nothing elsewhere", arguments: someEngines)
  func find(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    try Self.fill(client)
    func find(_ partition: String, _ query: String) throws -> [String] {
      try ids(client.send("POST", "/p/_partition/\(partition)/_find", query).json(), "_id")
    }
    try expect(find("a", #"{"selector":{"n":{"$gt":1}}}"#), equals: ["a:2", "a:3"])
    try expect(find("b", #"{"selector":{"_id":{"$gt":null}}}"#), equals: ["b:1", "b:2"])
    try expect(find("b", #"{"selector":{"_id":{"$lt":"b:2"}}}"#), equals: ["b:1"])
    try expect(
      client.send("POST", "/p/_index", #"{"index":{"fields":["n"]},"name":"byN"}"#).status, equals: 200)
    try expect(find("a", #"{"selector":{"n":{"$gt":1}},"sort":[{"n":"desc"}]}"#), equals: ["a:3", "a:2"])
    try expect(find("b", #"{"selector":{"n":{"$gt":1}},"sort":["n"],"limit":1}"#), equals: ["b:1"])
    try expect(
      find("a", #"{"selector":{"n":{"$gt":0}},"fields":["_id","n"],"skip":1,"sort":["n"]}"#),
      equals: ["a:2", "a:3"])
    // All of them, page by page.
    var (bookmark, found): (String, [String]) = ("", [])
    while true {
      let page = try client.send(
        "POST", "/p/_partition/a/_find",
        #"{"selector":{"n":{"$gt":0}},"limit":1,"bookmark":"\#(bookmark)"}"#
      ).json()
      let rows = ids(page, "_id")
      guard !rows.isEmpty else { break }
      found += rows
      bookmark = page["bookmark"].string ?? ""
    }
    expect(found, equals: ["a:1", "a:2", "a:3"])
    try expect(
      client.send("POST", "/p/_partition/a/_explain", #"{"selector":{"n":1}}"#).json()["index"]["name"],
      equals: "byN")
  }

  @Test("a view of a partition has the rows of its documents, and their reductions", arguments: someEngines)
  func views(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    try Self.fill(client)
    func rows(_ partition: String, _ options: String) throws -> [String] {
      let answer = try client.get("/p/_partition/\(partition)/_design/d/_view/n?" + options).json()
      return (answer["rows"].array ?? []).map { row in
        "\(row["id"].string ?? row["key"].description) \(row["value"].description)"
      }
    }
    try expect(rows("a", "reduce=false"), equals: ["a:2 2", "a:1 1", "a:3 3"])
    try expect(rows("a", "reduce=false&descending=true&limit=1"), equals: ["a:3 3"])
    try expect(rows("a", "reduce=false&skip=2"), equals: ["a:3 3"])
    try expect(rows("b", "reduce=false&key=%22even%22"), equals: ["b:1 10", "b:2 20"])
    try expect(rows("a", ""), equals: ["null 6"])
    try expect(rows("b", ""), equals: ["null 30"])
    try expect(rows("none", ""), equals: [])
    try expect(rows("a", "group=true"), equals: ["\"even\" 2", "\"odd\" 4"])
    try expect(rows("a", "group=true&descending=true"), equals: ["\"odd\" 4", "\"even\" 2"])
    try expect(rows("b", "group=true"), equals: ["\"even\" 30"])
    try expect(rows("a", "group=true&skip=1"), equals: ["\"odd\" 4"])
    try expect(rows("a", "group=true&limit=1"), equals: ["\"even\" 2"])
    let keys = try client.send(
      "POST", "/p/_partition/a/_design/d/_view/n", #"{"keys":["odd","even","odd"],"reduce":false}"#
    ).json()
    expect(ids(keys), equals: ["a:1", "a:3", "a:2", "a:1", "a:3"])
    // The whole view is there too.
    try expect(client.get("/p/_design/d/_view/n").json()["rows"][0]["value"], equals: 36)
  }

  @Test("names that aren't partitions, and databases without any, are refused") func refused() throws {
    try Self.fill(client)
    for (path, status) in [
      ("/p/_partition/_x", 400), ("/p/_partition/a%3Ab", 400), ("/p/_partition", 404),
      ("/p/_partition/a/_changes", 404), ("/p/_partition/a/_design/d/_view/none", 404),
    ] { try expect(client.get(path).status, equals: status, "\(path)") }
    try expect(client.ask("PUT", "/q").status, equals: 201)
    let answer = try client.get("/q/_partition/a")
    try expect(answer.status == 400 && answer.json()["reason"].string == "database is not partitioned")
    try expect(client.get("/none/_partition/a").status, equals: 404)
  }

  @Test("an empty database is asked again whether it is partitioned: another process may just be making it")
  func makingElsewhere() throws {
    try expect(client.ask("PUT", "/q").status, equals: 201)
    // Another process that makes it is between its two commits.
    let database = try #require(try client.service.catalog.database("q"))
    func isPartitioned() throws -> Bool { try client.service.watches.watch(database).isPartitioned(database) }
    try expect(!isPartitioned())
    try database.replicatingChanges { try $0.setPartitioned() }
    try expect(isPartitioned())
    try expect(client.send("PUT", "/q/1", "{}").status, equals: 400)
    try expect(client.send("PUT", "/q/a:1", "{}").status, equals: 201)
    try expect(isPartitioned())
  }
}
