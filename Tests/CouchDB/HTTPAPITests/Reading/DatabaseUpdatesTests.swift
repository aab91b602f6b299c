import Fleece
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// `_db_updates`: what happens to the databases of a server.
@Suite struct DatabaseUpdatesTests {
  private let client: APIClient
  private let timer = ManualTimer()

  init() throws { client = try APIClient(.lmdb, timer: timer) }

  private func rows(_ text: String) throws -> [String] {
    try JSONValue(body: Array(text.utf8))["results"].array?.map(Self.row) ?? []
  }

  private static func row(_ value: JSONValue) -> String {
    "\(value["type"].string ?? "") \(value["db_name"].string ?? "")"
  }

  private func lines(_ response: Response) -> [String] {
    String(decoding: response.arrived, as: UTF8.self).split(separator: "\n").compactMap {
      (try? JSONValue(body: Array($0.utf8))).map(Self.row)
    }
  }

  private func normal(_ options: String = "") throws -> (rows: [String], last: String) {
    let answer = try client.get("/_db_updates" + options)
    expect(answer.header("Content-Type"), equals: "application/json")
    let value = try answer.json()
    return (try rows(answer.text), value["last_seq"].string ?? "")
  }

  private func settle(_ count: Int = 1) {
    eventually { client.service.updates.feedCount == count && timer.count > 0 }
  }

  @Test("databases that are made, changed and deleted are told in order", arguments: someEngines)
  func events(_ engine: EngineName) throws {
    let client = try APIClient(engine, timer: timer)
    func normal(_ options: String = "") throws -> (rows: [String], last: String) {
      let answer = try client.get("/_db_updates" + options)
      return (try rows(answer.text), try answer.json()["last_seq"].string ?? "")
    }
    try expect(client.ask("PUT", "/old").status, equals: 201)
    // What is there at the beginning counts as made and as changed.
    let first = try normal()
    expect(first.rows, equals: ["created old", "updated old"])
    try expect(client.ask("PUT", "/new").status, equals: 201)
    _ = try client.save("/old/a", "{}")
    eventually { (try? normal("?since=\(first.last)").rows) == ["created new", "updated old"] }
    // Each kind comes once for a database, with its last place.
    _ = try client.save("/new/a", "{}")
    eventually { (try? normal("?since=\(first.last)").rows.last) == "updated new" }
    _ = try client.save("/old/b", "{}")
    eventually {
      (try? normal("?since=\(first.last)").rows) == ["created new", "updated new", "updated old"]
    }
    let before = try normal().last
    try expect(client.ask("DELETE", "/new").status, equals: 200)
    try expect(normal("?since=\(before)").rows, equals: ["deleted new"])
    try expect(normal("?since=now").rows, equals: [])
    try expect(client.ask("PUT", "/_users").status, equals: 201)
    try expect(normal("?since=\(before)").rows, equals: ["deleted new", "created _users"])
    try expect(normal("?since=\(before)&limit=1").rows, equals: ["deleted new"])
    try expect(normal("?descending=true&limit=1").rows, equals: ["created _users"])
    // A replication that makes its target, and documents that come by it.
    try expect(
      client.send("POST", "/_replicate", #"{"source":"old","target":"copy","create_target":true}"#).status,
      equals: 200)
    eventually {
      (try? normal("?since=\(before)").rows)?.suffix(2).sorted() == ["created copy", "updated copy"]
    }
  }

  @Test("a sequence of another time begins at the start") func sequences() throws {
    try expect(client.ask("PUT", "/db").status, equals: 201)
    let all = try normal()
    for since in ["0", "99", "1-gffffffff", "%22\(all.last)%22"] {
      try expect(normal("?since=\(since)").rows, equals: since.hasPrefix("%22") ? [] : all.rows, "\(since)")
    }
    try expect(client.get("/_db_updates?since=x").status, equals: 400)
    try expect(client.get("/_db_updates?feed=other").status, equals: 400)
    try expect(client.get("/_db_updates?heartbeat=0&feed=longpoll").status, equals: 400)
    let page = try normal("?limit=1")
    expect(page.rows, equals: ["created db"])
    try expect(normal("?since=\(page.last)").rows, equals: ["updated db"])
    let other = try APIClient()
    try expect(other.ask("PUT", "/x").status, equals: 201)
    // Its events aren't these.
    try expect(
      rows(other.get("/_db_updates?since=\(all.last)").text), equals: ["created x", "updated x"])
  }

  @Test("a long poll waits for an event, or for its time") func longPoll() throws {
    try expect(client.ask("PUT", "/db").status, equals: 201)
    let at = try client.get("/_db_updates?feed=longpoll")
    try expect(rows(at.text), equals: ["created db", "updated db"])
    let poll = try client.get("/_db_updates?feed=longpoll&since=now")
    settle()
    try expect(client.ask("PUT", "/more").status, equals: 201)
    try expect(rows(poll.text), equals: ["created more"])
    let late = try client.get("/_db_updates?feed=longpoll&since=now&timeout=1500")
    settle()
    timer.advance(by: 1.4)
    expect(!late.hasEnded)
    timer.advance(by: 0.2)
    try expect(rows(late.text), equals: [])
    let last = try normal().last
    try expect(late.json()["last_seq"].string, equals: last)
    expect(client.service.updates.feedCount, equals: 0)
  }

  @Test("a continuous feed goes on, with signs of life, until its client goes", arguments: [true, false])
  func continuous(_ hasHeartbeat: Bool) throws {
    let feed = try client.get(
      "/_db_updates?feed=continuous&since=now&" + (hasHeartbeat ? "heartbeat=2000" : "timeout=2000"))
    settle()
    try expect(client.ask("PUT", "/one").status, equals: 201)
    eventually { lines(feed) == ["created one"] }
    try expect(client.ask("DELETE", "/one").status, equals: 200)
    eventually { lines(feed).last == "deleted one" }
    settle()
    let arrived = feed.arrived.count
    eventually {
      timer.advance(by: 2.5)
      return feed.arrived.count > arrived
    }
    if hasHeartbeat {
      expect(!feed.hasEnded && feed.arrived.last == 0x0A)
      feed.cancel()
      eventually { client.service.updates.feedCount == 0 }
    } else {
      expect(feed.text.hasSuffix("\"}\n") && feed.text.contains("{\"last_seq\":\""))
    }
  }

  @Test("server-sent events have a row and its sequence, and go on where a client was") func events() throws {
    try expect(client.ask("PUT", "/db").status, equals: 201)
    let last = try normal().last
    let feed = try client.get("/_db_updates?feed=eventsource&limit=1")
    expect(feed.header("Content-Type"), equals: "text/event-stream")
    let mark = last.drop { $0 != "-" }
    expect(
      feed.text,
      equals: "data: {\"db_name\":\"db\",\"type\":\"created\",\"seq\":\"1\(mark)\"}\nid: 1\(mark)\n\n"
    )
    let next = try client.ask(
      "GET", "/_db_updates?feed=eventsource&limit=1", headers: [("Last-Event-ID", "1\(mark)")])
    expect(next.text.contains("\"updated\""))
  }

  @Test("only administrators follow, and a feed ends when its reader is none any more") func rights() throws {
    let secured = try APIClient.secured()
    for person in [Person.nobody, Person.member, Person.boss] {
      try expect(secured.send("GET", "/_db_updates", as: person).status, equals: 401)
    }
    try expect(secured.send("GET", "/_db_updates", as: Person.root).status, equals: 200)
    try expect(client.ask("POST", "/_db_updates").header("Allow"), equals: "GET")
    let feed = try client.get("/_db_updates?feed=continuous&since=now")
    settle()
    client.service.stopReplications(seconds: 1)
    expect(feed.text.contains("last_seq"))
    // After the end nobody waits for what can't come.
    let late = try client.get("/_db_updates?feed=longpoll&since=now")
    try expect(rows(late.text), equals: [])
  }

  @Test("the oldest deletions are forgotten, and databases that are there aren't") func forgotten() throws {
    let updates = DatabaseUpdates(NamedDatabases([:]))
    for number in 0..<DatabaseUpdates.mostDeletions + 10 {
      updates.note("d\(number)", .created)
      updates.note("d\(number)", .deleted)
    }
    updates.note("d0", .created)
    let (events, last) = updates.events(after: 0)
    expect(events.count, equals: 2 * DatabaseUpdates.mostDeletions + 1)
    expect(last, equals: UInt64(2 * (DatabaseUpdates.mostDeletions + 10) + 1))
    expect(events.last.map { "\($0.kind) \($0.name)" }, equals: "created d0")
  }
}
