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
        guard status == 400 else { continue }
        // What is before the colon isn't a partition, or what is behind it no ID.
        try expect(
          answer.error,
          equals: id.hasPrefix(":")
            ? ["illegal_partition", "Partition must not be empty"]
            : [
              "illegal_docid",
              id == "a:" ? "Document id must not be empty" : "Doc id must be of form partition:id",
            ]
        )
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
    try expect(client.send("POST", "/_replicate", made).json()["history"][0]["doc_write_failures"], equals: 1)
    try expect(client.get("/new").json()["props"], equals: ["partitioned": true])
    try expect(client.get("/new/c:1").status == 200 && client.get("/new/nothing").status == 404)
    // Nothing is made of that name that isn't partitioned, and a database that is there stays as it is.
    let system =
      #"{"source":"plain","target":"a/_users","create_target":true,"create_target_params":{"partitioned":true}}"#
    try expect(client.send("POST", "/_replicate", system).status, equals: 400)
    let again =
      #"{"source":"p","target":"plain","create_target":true,"create_target_params":{"partitioned":true}}"#
    try expect(client.send("POST", "/_replicate", again).status, equals: 200)
    try expect(client.get("/plain").json()["props"], equals: [:])
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
    try expect(client.get("/p/_design/d/_view/n?partition=b").json()["rows"][0]["value"], equals: 30)
  }

  @Test(
    "a view is for partitions or for the whole database, as its design document says", arguments: someEngines)
  func viewKinds(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    try Self.fill(client)
    let map = "function (doc) { emit(doc.n); }"
    _ = try client.save(
      "/p/_design/global", #"{"options":{"partitioned":false},"views":{"n":{"map":"\#(map)"}}}"#)
    func error(_ target: String) throws -> [String] { try client.get(target).error }
    let mandatory = "`partition` parameter is mandatory for queries to this view."
    let unknown = "`partition` parameter is not supported in this design doc"
    try expect(error("/p/_design/d/_view/n"), equals: ["query_parse_error", mandatory])
    try expect(
      client.send("POST", "/p/_design/d/_view/n/queries", #"{"queries":[{}]}"#).error,
      equals: ["query_parse_error", mandatory])
    try expect(error("/p/_partition/a/_design/global/_view/n"), equals: ["query_parse_error", unknown])
    try expect(error("/p/_design/global/_view/n?partition=a"), equals: ["query_parse_error", unknown])
    try expect(client.get("/p/_design/global/_view/n").json()["rows"].array?.count, equals: 5)
    try expect(error("/p/_design/none/_view/n"), equals: ["not_found", "missing"])
    // A database without partitions has views for the whole database only.
    try expect(client.ask("PUT", "/q").status, equals: 201)
    _ = try client.save("/q/_design/d", #"{"views":{"n":{"map":"\#(map)"}}}"#)
    try expect(client.get("/q/_design/d/_view/n").status, equals: 200)
    try expect(error("/q/_design/d/_view/n?partition=a"), equals: ["query_parse_error", unknown])
    try expect(
      client.send("PUT", "/q/_design/e", #"{"options":{"partitioned":true}}"#).error,
      equals: [
        "invalid_design_doc", "partitioned option cannot be true in a non-partitioned database.",
      ])
  }

  @Test("the query names a partition too, but not another one than the path") func partitionInQuery() throws {
    try Self.fill(client)
    try expect(ids(client.get("/p/_all_docs?partition=b").json()), equals: ["b:1", "b:2"])
    try expect(
      ids(client.send("POST", "/p/_find?partition=b", #"{"selector":{"n":{"$gt":1}}}"#).json(), "_id"),
      equals: ["b:1", "b:2"])
    try expect(
      ids(client.send("POST", "/p/_find", #"{"selector":{"n":{"$gt":1}},"partition":"b"}"#).json(), "_id"),
      equals: ["b:1", "b:2"])
    let conflict = ["bad_request", "Conflicting value for `partition` in query string"]
    for target in ["_all_docs", "_design/d/_view/n"] {
      try expect(client.get("/p/_partition/a/\(target)?partition=b").error, equals: conflict)
      try expect(client.get("/p/_partition/a/\(target)?partition=a").status, equals: 200)
    }
    try expect(
      client.send("POST", "/p/_partition/a/_find", #"{"selector":{},"partition":"b"}"#).status, equals: 400)
    try expect(client.get("/p/_all_docs?partition=_b").error[0], equals: "illegal_partition")
    try expect(client.ask("PUT", "/q").status, equals: 201)
    let unknown = ["query_parse_error", "`partition` parameter is not supported on this db"]
    try expect(client.get("/q/_all_docs?partition=a").error, equals: unknown)
    try expect(client.send("POST", "/q/_find", #"{"selector":{},"partition":"a"}"#).error, equals: unknown)
  }

  @Test("_find of a partition takes partitioned indexes, and _find of the database global ones")
  func indexKinds() throws {
    try Self.fill(client)
    func make(_ name: String, _ more: String) throws -> [String] {
      let answer = try client.send(
        "POST", "/p/_index", #"{"index":{"fields":["n"]},"ddoc":"\#(name)","name":"\#(name)"\#(more)}"#)
      return answer.status == 200 ? ["created"] : try answer.error
    }
    func plan(_ target: String) throws -> JSONValue {
      try client.send("POST", target, #"{"selector":{"n":1}}"#).json()
    }
    let sorted = #"{"selector":{"n":{"$gt":0}},"sort":["n"]}"#
    func reason(_ target: String) throws -> String { try client.send("POST", target, sorted).error[1] }
    let hint = "index exists for this sort, try indexing by the sort fields."
    try expect(reason("/p/_find"), equals: "No global " + hint)
    try expect(reason("/p/_partition/a/_find"), equals: "No partitioned " + hint)
    try expect(make("local", ""), equals: ["created"])
    try expect(reason("/p/_find"), equals: "No global " + hint)
    try expect(make("everywhere", #","partitioned":false"#), equals: ["created"])
    let whole = try plan("/p/_explain")
    expect(whole["index"]["name"] == "everywhere" && whole["index"]["partitioned"] == false, "\(whole)")
    expect(whole["partitioned"] == true && whole["mrargs"]["partition"].isNull, "\(whole)")
    expect(
      whole["index_candidates"].array?.first { $0["index"]["name"] == "local" }?["analysis"]["reasons"],
      equals: [["name": "scope_mismatch"]])
    let part = try plan("/p/_partition/a/_explain")
    expect(part["index"]["name"] == "local" && part["index"]["partitioned"] == true, "\(part)")
    expect(part["mrargs"]["partition"] == "a" && part["opts"]["partition"] == "a", "\(part)")
    try expect(
      client.get("/p/_design/everywhere").json()["options"], equals: ["partitioned": false])
    // A design document is of one kind.
    let mismatch =
      "Requested partitioned option does not match existing value on design document _design/"
    try expect(
      make("everywhere", #","partitioned":true"#),
      equals: ["invalid_partitioned_option", mismatch + "everywhere"])
    try expect(client.ask("PUT", "/q").status, equals: 201)
    try expect(
      client.send("POST", "/q/_index", #"{"index":{"fields":["n"]},"partitioned":true}"#).status, equals: 400)
  }

  @Test("what names a document of a partitioned database names its partition") func names() throws {
    try Self.fill(client)
    let purge = try client.send("POST", "/p/_purge", #"{"plain":["1-967a00dff5e02add41819138abb3284d"]}"#)
    try expect(purge.status == 400 && purge.error[0] == "illegal_docid")
    let found = try client.send("POST", "/p/_bulk_get", #"{"docs":[{"id":"plain"},{"id":"a:1"}]}"#).json()
    expect(
      found["results"][0]["docs"][0]["error"],
      equals: [
        "id": "plain", "rev": .null, "error": "illegal_docid",
        "reason": "Doc id must be of form partition:id",
      ])
    expect(found["results"][1]["docs"][0]["ok"]["n"], equals: 1)
    for name in ["_replicator", "_users", "a%2F_users"] {
      try expect(
        client.ask("PUT", "/\(name)?partitioned=true").error,
        equals: ["bad_request", "Cannot partition a system database"])
    }
  }

  @Test("names that aren't partitions, and databases without any, are refused") func refused() throws {
    try Self.fill(client)
    for (path, status) in [
      ("/p/_partition/_x", 400), ("/p/_partition/a%3Ab", 400), ("/p/_partition", 400),
      ("/p/_partition/_x/_all_docs", 400), ("/p/_partition//_design/d/_view/n", 400),
      ("/p/_partition/a/_changes", 404), ("/p/_partition/a/_design/d/_view/none", 404),
    ] { try expect(client.get(path).status, equals: status, "\(path)") }
    try expect(client.send("POST", "/p/_partition/a", "{}").status, equals: 405)
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
