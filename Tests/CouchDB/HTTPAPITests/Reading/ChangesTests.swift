import Fleece
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite("Changes are those of CouchDB") struct ChangesTests {
  @Test("rows, sequences and what is left", arguments: someEngines)
  func rows(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try expect(
      reading.get("_changes").unmarkedText,
      equals: "{\"results\":[\n\n],\n\"last_seq\":\"0\",\"pending\":0}\n\n")
    try reading.saveKnown()
    try expect(
      reading.get("_changes?style=all_docs&include_docs=true&conflicts=true&since=2").unmarkedText,
      equals: "{\"results\":[\n"
        + "{\"seq\":\"3\",\"id\":\"gone\",\"changes\":[{\"rev\":\"2-g\"}],\"deleted\":true,"
        + "\"doc\":{\"_id\":\"gone\",\"_rev\":\"2-g\",\"left\":true,\"_deleted\":true}},\r\n"
        + "{\"seq\":\"4\",\"id\":\"c\",\"changes\":[{\"rev\":\"1-c\"}],\"doc\":{\"_id\":\"c\",\"_rev\":\"1-c\",\"x\":3}},\r\n"
        + "{\"seq\":\"6\",\"id\":\"conf\",\"changes\":[{\"rev\":\"2-x\"},{\"rev\":\"2-w\"}],"
        + "\"doc\":{\"_id\":\"conf\",\"_rev\":\"2-x\",\"x\":4,\"_conflicts\":[\"2-w\"]}}\n"
        + "],\n\"last_seq\":\"6\",\"pending\":0}\n\n")
    try expect(
      reading.get("_changes?limit=1").unmarkedText,
      equals:
        "{\"results\":[\n{\"seq\":\"1\",\"id\":\"a\",\"changes\":[{\"rev\":\"1-a\"}]}\n],\n\"last_seq\":\"1\",\"pending\":4}\n\n"
    )
    try expect(
      reading.get("_changes?limit=0").unmarkedText,
      equals: "{\"results\":[\n\n],\n\"last_seq\":\"0\",\"pending\":5}\n\n")
    try expect(
      reading.get("_changes?since=now").unmarkedText,
      equals: "{\"results\":[\n\n],\n\"last_seq\":\"6\",\"pending\":0}\n\n")
    try expect(
      reading.get("_changes?descending=true&limit=2").unmarkedText,
      equals: "{\"results\":[\n{\"seq\":\"6\",\"id\":\"conf\",\"changes\":[{\"rev\":\"2-x\"}]},\r\n"
        + "{\"seq\":\"4\",\"id\":\"c\",\"changes\":[{\"rev\":\"1-c\"}]}\n],\n\"last_seq\":\"4\",\"pending\":3}\n\n"
    )
    let everySecond = try reading.get("_changes?seq_interval=2").json()["results"]?.array ?? []
    let sequences = [reading.sequence(1), .null, reading.sequence(3), .null, reading.sequence(6)]
    expect(everySecond.map { $0["seq"] }, equals: sequences)
    let mixed = try reading.get("_changes?Limit=1&Since=2").json()
    expect(mixed["results"]?.array?.map { $0["id"] }, equals: ["gone"])
    let quoted = try reading.get("_changes?since=%224%22").json()
    expect(quoted["results"]?.array?.count, equals: 1)
    try expect(reading.get("_changes?active_only=true").json()["results"]?.array?.count, equals: 4)
  }

  @Test("changes of chosen documents are looked up", arguments: someEngines)
  func documentIDs(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.saveKnown()
    try reading.database.save("_design/d", [:])
    func ids(_ answer: Response) throws -> [String] {
      try answer.json()["results"]?.array?.compactMap { $0["id"]?.string } ?? []
    }
    let some = try reading.post(
      "_changes?filter=_doc_ids", "{\"doc_ids\":[\"c\",\"gone\",\"a\",\"nosuch\",\"a\"]}")
    try expect(ids(some), equals: ["a", "gone", "c"])
    try expect(some.json()["last_seq"] == reading.sequence(7) && some.json()["pending"] == 3)
    let limited = try reading.post(
      "_changes?filter=_doc_ids&limit=1&since=1", "{\"doc_ids\":[\"c\",\"gone\"]}")
    try expect(ids(limited), equals: ["gone"])
    try expect(limited.json()["last_seq"] == reading.sequence(3) && limited.json()["pending"] == 4)
    let backwards = try reading.get("_changes?filter=_doc_ids&doc_ids=%5B%22a%22,%22c%22%5D&descending=true")
    try expect(ids(backwards), equals: ["c", "a"])
    let many = (0..<150).map { "\"x\($0)\"" }.joined(separator: ",")
    let walked = try reading.post("_changes?filter=_doc_ids", "{\"doc_ids\":[\"b\",\(many)]}")
    try expect(ids(walked), equals: ["b"])
    try expect(walked.json()["last_seq"] == reading.sequence(7) && walked.json()["pending"] == 5)
    try expect(ids(reading.post("_changes?filter=_doc_ids", "{\"doc_ids\":[]}")), equals: [])
    let design = try reading.get("_changes?filter=_design")
    try expect(ids(design) == ["_design/d"] && design.json()["pending"] == 5)
  }

  @Test("pages and what is left agree with a naive count", arguments: someEngines)
  func random(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    var random = SeededGenerator(seed: testSeed)
    // What is expected: the last change of each document.
    var order: [String] = []
    for _ in 0..<200 {
      let id = "doc\(random.below(60))"
      if random.once(in: 5), try reading.database.document(id) != nil {
        try reading.database.delete(id)
      } else {
        try reading.database.save(id, ["n": .int(Int64(random.below(100)))])
      }
      order.removeAll { $0 == id }
      order.append(id)
    }
    for _ in 0..<20 {
      let limit = 1 + random.below(20)
      var (since, found) = ("0", [String]())
      while true {
        let page = try reading.get("_changes?limit=\(limit)&since=\(since)").json()
        let rows = page["results"]?.array ?? []
        found += rows.compactMap { $0["id"]?.string }
        since = page["last_seq"]?.string ?? ""
        expect(page["pending"]?.int, equals: Int64(order.count - found.count), "seed \(testSeed)")
        if rows.count < limit { break }
      }
      expect(found, equals: order, "seed \(testSeed)")
    }
    let backwards = try reading.get("_changes?descending=true").json()["results"]?.array ?? []
    expect(backwards.map { $0["id"]?.string }, equals: order.reversed())
  }

  @Test("long answers are whole", arguments: someEngines)
  func long(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    let filling = String(repeating: "x", count: 20_000)
    try reading.database.inBatch {
      for number in 0..<150 { try reading.database.save("doc\(number)", ["text": .string(filling)]) }
    }
    for options in ["include_docs=true", "include_docs=true&descending=true"] {
      let rows = try reading.get("_changes?" + options).json()["results"]?.array ?? []
      expect(Set(rows.map { $0["id"]?.string }).count == 150 && rows.count == 150)
    }
  }

  @Test("the same state has the same tag") func tags() throws {
    let reading = try ReadingClient(.sqlite)
    try reading.saveKnown()
    let tag = try #require(try reading.get("_changes").header("ETag"))
    try expect(reading.get("_changes", headers: [("If-None-Match", tag)]).status, equals: 304)
    try expect(reading.get("_changes", headers: [("If-None-Match", "\"x\", W/\(tag)")]).status, equals: 304)
    try expect(reading.get("_changes", headers: [("If-None-Match", "\"x\"")]).status, equals: 200)
    try expect(reading.client.ask("HEAD", "/db/_changes").header("ETag"), equals: tag)
    try reading.database.purge("a")
    try expect(reading.get("_changes", headers: [("If-None-Match", tag)]).status, equals: 200)
  }

  @Test(
    "wrong options get CouchDB's errors",
    arguments: [
      ("since=junk", 400, "bad_request", "Malformed sequence supplied in 'since' parameter."),
      ("since=12-", 400, "bad_request", "Malformed sequence supplied in 'since' parameter."),
      ("since=12-g1%2F", 400, "bad_request", "Malformed sequence supplied in 'since' parameter."),
      ("since=", 400, "bad_request", "Malformed sequence supplied in 'since' parameter."),
      (
        "since=99999999999999999999999", 400, "bad_request",
        "Malformed sequence supplied in 'since' parameter."
      ),
      (
        "feed=other", 400, "bad_request",
        "Supported `feed` types: normal, continuous, live, longpoll, eventsource"
      ),
      (
        "heartbeat=0", 400, "bad_request",
        "The heartbeat value should be a positive integer (in milliseconds)."
      ),
      (
        "Heartbeat=-1000", 400, "bad_request",
        "The heartbeat value should be a positive integer (in milliseconds)."
      ),
      (
        "heartbeat=x", 400, "bad_request",
        "Invalid heartbeat value. Expecting a positive integer value (in milliseconds)."
      ),
      ("seq_interval=0", 400, "bad_request", "invalid_seq_interval"),
      ("SEQ_INTERVAL=x", 400, "bad_request", "invalid_seq_interval"),
      ("limit=x", 500, "unknown_error", "badarg"), ("timeout=x", 500, "unknown_error", "badarg"),
      ("filter=_nosuch", 400, "bad_request", "unknown builtin filter name"),
      ("filter=bad", 400, "bad_request", "`filter` must be of the form `designname/filtername`"),
      ("filter=nosuch/x", 404, "not_found", "missing"),
      ("filter=d/nosuch", 404, "not_found", "missing json key: nosuch"),
      ("filter=_view&view=d/nosuch", 404, "not_found", "missing json key: views"),
      ("filter=_doc_ids", 400, "bad_request", "`doc_ids` filter parameter is not a list of doc ids."),
      ("filter=_selector", 400, "bad_request", "Selector must be specified in POST payload"),
    ])
  func errors(_ options: String, _ status: Int, _ error: String, _ reason: String) throws {
    let reading = try ReadingClient(.lmdb)
    try reading.database.save("_design/d", ["filters": ["f": "function (doc) { return true; }"]])
    for feed in ["", "&feed=longpoll", "&feed=continuous"] where !options.hasPrefix("feed") {
      let answer = try reading.get("_changes?" + options + feed)
      expect(answer.status, equals: status)
      try expect(answer.json(), equals: ["error": .string(error), "reason": .string(reason)])
    }
  }

  @Test(
    "functions see conflicts, unless they are asked for each of them", arguments: [EngineName.sqlite, .lmdb])
  func conflicts(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.apply("a", "2-b", "1-a", body: ["n": 1])
    try reading.apply("a", "2-c", "1-a", body: ["n": 2])
    try reading.apply("a", "2-d", "1-a", isDeleted: true)
    try reading.apply("b", "1-a", body: ["n": 3])
    try reading.database.save(
      "_design/d",
      [
        "filters": ["f": "function (doc) { return doc._conflicts && doc._conflicts.join() === '2-b'; }"],
        "views": ["v": ["map": "function (doc) { if (doc._conflicts) emit(doc._conflicts); }"]],
      ])
    func ids(_ target: String) throws -> [String?] {
      let rows = try reading.get(target).json()["results"]?.array ?? []
      return rows.map { $0["id"]?.string }
    }
    for filter in ["filter=d/f", "filter=_view&view=d/v"] {
      try expect(ids("_changes?" + filter), equals: ["a"], "\(filter)")
      try expect(ids("_changes?style=all_docs&" + filter), equals: [], "\(filter)")
    }
  }

  @Test("scripts choose revisions", arguments: [EngineName.sqlite, .lmdb])
  func scripts(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.saveKnown()
    try reading.database.save(
      "_design/d",
      [
        "filters": [
          "odd": "function (doc, req) { return doc.x % 2 == 1; }",
          "least": "function (doc, req) { return doc.x >= Number(req.query.least); }",
          "gone": "function (doc, req) { return doc._deleted === true; }",
          "boom": "function (doc, req) { throw 'boom'; }",
        ], "views": ["v": ["map": "function (doc) { if (doc.x > 2) emit(doc.x); }"]],
      ])
    func changes(_ options: String) throws -> [String] {
      try reading.get("_changes?" + options).json()["results"]?.array?.map { row in
        let revisions = row["changes"]?.array?.compactMap { $0["rev"]?.string } ?? []
        return (row["id"]?.string ?? "") + " " + revisions.joined(separator: ",")
      } ?? []
    }
    try expect(changes("filter=d/odd"), equals: ["a 1-a", "c 1-c"])
    try expect(changes("filter=d/odd&style=all_docs"), equals: ["a 1-a", "c 1-c", "conf 2-w"])
    try expect(changes("filter=d/least&least=3&limit=1"), equals: ["c 1-c"])
    let least = try reading.get("_changes?filter=d/least&least=3&limit=1").json()
    expect(least["last_seq"], equals: reading.sequence(4))
    try expect(changes("filter=d/gone"), equals: ["gone 2-g"])
    try expect(changes("filter=_view&view=d/v"), equals: ["c 1-c", "conf 2-x"])
    try expect(changes("filter=d/odd&descending=true"), equals: ["c 1-c", "a 1-a"])
    let boom = try reading.get("_changes?filter=d/boom")
    expect(boom.status, equals: 500)
    try expect(boom.json()["error"], equals: "error")
  }

  @Test("channels of 1.x", arguments: someEngines)
  func channels(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.database.save("one", ["channels": "news"])
    try reading.database.save("two", ["channels": ["sport", "news"]])
    try reading.database.save("three", ["channels": ["sport"]])
    try reading.database.save("none", [:])
    try reading.database.save("gone", [:])
    try reading.database.delete("gone")
    func ids(_ answer: Response) throws -> [String] {
      try answer.json()["results"]?.array?.compactMap { $0["id"]?.string } ?? []
    }
    let filter = "_changes?filter=sync_gateway/bychannel"
    try expect(ids(reading.get(filter + "&channels=news")), equals: ["one", "two", "gone"])
    try expect(ids(reading.post(filter, "{\"channels\":\"sport,other\"}")), equals: ["two", "three", "gone"])
    try expect(ids(reading.get(filter + "&channels=*")).count, equals: 5)
    try expect(reading.get(filter).status, equals: 400)
  }

  @Test("ranks are exact with and without a table", arguments: someEngines)
  func ranks(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    let timer = ManualTimer()
    let ranks = EntryRanks(timer, walked: 10, spacing: 8)
    var random = SeededGenerator(seed: testSeed)
    var ids = Set<String>()
    for round in 0..<4 {
      try reading.database.inBatch {
        for _ in 0..<80 {
          let id = "doc\(random.below(1_000))"
          try reading.database.save(id, ["n": 1])
          ids.insert(id)
        }
      }
      let sorted = ids.sortedByBytes()
      for _ in 0..<50 {
        let id = "doc\(random.below(1_100))"
        let count = try reading.database.read { snapshot in
          try ranks.count(of: .documents, before: Array(id.utf8), in: snapshot)
        }
        expect(
          count, equals: sorted.filter { $0.precedesInBytes(id) }.count, "round \(round), seed \(testSeed)")
      }
      let changes = try reading.database.changes().map(\.sequence)
      for _ in 0..<50 {
        let sequence = UInt64(random.below(350))
        let key = withUnsafeBytes(of: sequence.bigEndian) { Array($0) }
        let count = try reading.database.read { try ranks.count(of: .changes, before: key, in: $0) }
        expect(count, equals: changes.filter { $0 < sequence }.count, "round \(round), seed \(testSeed)")
      }
    }
  }
}
