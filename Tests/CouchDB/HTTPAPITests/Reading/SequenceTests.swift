import Fleece
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI
@testable import Views

@Suite("Sequences tell of which database they are") struct SequenceTests {
  private func make(_ count: Int, _ client: APIClient) throws {
    try expect(client.ask("PUT", "/db").status, equals: 201)
    for number in 0..<count {
      try expect(client.ask("PUT", "/db/n\(number)", body: Array("{}".utf8)).status, equals: 201)
    }
  }

  private func ids(_ response: Response) throws -> [String] {
    (try response.json()["results"].array ?? []).compactMap { $0["id"].string }
  }

  @Test("a database that was made again sends all its changes", arguments: someEngines)
  func madeAgain(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    try make(10, client)
    let old = try client.ask("GET", "/db/_changes").json()["last_seq"].string ?? ""
    let middle = try client.ask("GET", "/db/_changes?limit=2").json()["last_seq"].string ?? ""
    expect(old.hasPrefix("10-g") && middle.hasPrefix("2-g"))
    try expect(ids(client.ask("GET", "/db/_changes?since=\(middle)")).count, equals: 8)
    try expect(client.ask("GET", "/db").json()["update_seq"].string, equals: old)
    try expect(client.ask("GET", "/db/_all_docs?update_seq=true").json()["update_seq"].string, equals: old)
    try expect(client.ask("GET", "/db/_local_docs?update_seq=true").json()["update_seq"].string, equals: old)

    try expect(client.ask("DELETE", "/db").status, equals: 200)
    try make(3, client)
    let all = ["n0", "n1", "n2"]
    for since in [old, middle, "%22\(old)%22", "12-g1AAAABPeJzLYWBg", "0", "4", "10"] {
      try expect(ids(client.ask("GET", "/db/_changes?since=\(since)")), equals: all, "\(since)")
      try expect(ids(client.ask("GET", "/db/_changes?feed=longpoll&since=\(since)")), equals: all, "\(since)")
    }
    let events = try client.ask(
      "GET", "/db/_changes?feed=eventsource&limit=3", headers: [("Last-Event-ID", "\"\(old)\"")])
    expect(events.text.split(separator: "\n").count { $0.hasPrefix("data:") }, equals: 3)
    // A number of Couchbase Lite 1.x counts, and so does a sequence of this database.
    try expect(ids(client.ask("GET", "/db/_changes?since=2")), equals: ["n2"])
    let new = try client.ask("GET", "/db/_changes?limit=2").json()["last_seq"].string ?? ""
    try expect(ids(client.ask("GET", "/db/_changes?since=\(new)")), equals: ["n2"])
  }

  @Test("replications begin behind sequences of their source only") func replications() throws {
    let client = try ReplicationClient(.lmdb)
    try client.make("a", documents: 5)
    let since = try client.get("/a/_changes?limit=3")["last_seq"]
    let cases: [(String, JSONValue, Int)] = [("b", since, 2), ("c", "3-gffffffff", 5), ("d", 4, 1)]
    for (name, sequence, count) in cases {
      try client.make(name)
      let answer = try client.replicate(["source": "a", "target": .string(name), "since_seq": sequence])
      expect(answer.status, equals: 200)
      try expect(client.contents(name).count, equals: count, "\(name)")
    }
  }

  @Test("what is no sequence isn't taken") func malformed() {
    let sequences = CouchDBSequences(publicUUID: "5c80ad41-0000-4000-8000-000000000000")
    expect(sequences.text(12), equals: "12-g5c80ad41")
    expect(sequences.number("12-g5c80ad41") == 12 && sequences.number("12") == 12)
    expect(sequences.number("12-g5c80ad42") == 0 && sequences.number("12-g5c80ad4") == 0)
    for text in [
      "", "-", "12-", "x", "12x", "-g5c80ad41", "12-g5c8 ", "12-é", "99999999999999999999-g5c80ad41",
    ] {
      expect(sequences.number(text) == nil, "\(text)")
    }
  }
}
