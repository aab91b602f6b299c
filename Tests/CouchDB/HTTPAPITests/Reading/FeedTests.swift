import Fleece
import Foundation
import HTTP
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

@Suite("Feeds wait for changes as those of CouchDB do") struct FeedTests {
  /// Waits until the one feed has nothing to do.
  private func settle(_ reading: ReadingClient) {
    eventually { reading.client.service.watches.counts.waiting == 1 && reading.timer.count > 0 }
  }

  private func text(_ response: Response) -> String {
    withoutMarks(String(decoding: response.arrived, as: UTF8.self))
  }

  @Test("a long poll with changes at hand answers at once", arguments: someEngines)
  func atHand(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.saveKnown()
    let answer = try reading.get("_changes?feed=longpoll&limit=2")
    expect(answer.header("Content-Type"), equals: "application/json")
    expect(
      answer.unmarkedText,
      equals: "{\"results\":[\n{\"seq\":\"1\",\"id\":\"a\",\"changes\":[{\"rev\":\"1-a\"}]},\r\n"
        + "{\"seq\":\"2\",\"id\":\"b\",\"changes\":[{\"rev\":\"1-b\"}]}\n],\n\"last_seq\":\"2\",\"pending\":3}\n\n"
    )
    expect(reading.client.service.watches.counts.open, equals: 0)
    let backwards = try reading.get("_changes?feed=longpoll&descending=true&limit=1&since=0").json()
    expect(backwards["last_seq"] == reading.sequence(6) && backwards["pending"] == 4)
  }

  @Test("a long poll waits for the next change", arguments: someEngines)
  func waits(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.saveKnown()
    let response = try reading.get("_changes?feed=longpoll&since=now")
    settle(reading)
    expect(text(response), equals: "{\"results\":[\n\n")
    try reading.apply("new", "1-n")
    expect(
      response.unmarkedText,
      equals: "{\"results\":[\n\n{\"seq\":\"7\",\"id\":\"new\",\"changes\":[{\"rev\":\"1-n\"}]}\n],\n"
        + "\"last_seq\":\"7\",\"pending\":0}\n\n")
    expect(reading.client.service.watches.counts.open, equals: 0)
  }

  @Test("a feed ends after its time, and that begins again with each change") func timeout() throws {
    let reading = try ReadingClient(.lmdb)
    try reading.saveKnown()
    let poll = try reading.get("_changes?feed=longpoll&since=now&timeout=1500")
    settle(reading)
    reading.timer.advance(by: 1.4)
    expect(!poll.hasEnded)
    reading.timer.advance(by: 0.2)
    expect(poll.unmarkedText, equals: "{\"results\":[\n\n\n],\n\"last_seq\":\"6\",\"pending\":0}\n\n")

    let feed = try reading.get("_changes?feed=continuous&since=now&timeout=1000")
    settle(reading)
    reading.timer.advance(by: 0.8)
    try reading.apply("new", "1-n")
    let row = "\n{\"seq\":\"7\",\"id\":\"new\",\"changes\":[{\"rev\":\"1-n\"}]}\n"
    eventually { text(feed) == row }
    settle(reading)
    reading.timer.advance(by: 0.8)
    expect(!feed.hasEnded)
    eventually {
      reading.timer.advance(by: 0.3)
      return feed.hasEnded
    }
    expect(feed.unmarkedText, equals: row + "{\"last_seq\":\"7\",\"pending\":0}\n\n")
  }

  @Test("times are at most a minute, and that long without any") func defaults() throws {
    let reading = try ReadingClient(.lmdb)
    for options in ["", "&timeout=100000000", "&heartbeat=100000000", "&heartbeat=true"] {
      let feed = try reading.get("_changes?feed=continuous" + options)
      settle(reading)
      reading.timer.advance(by: 59.9)
      expect(text(feed), equals: "\n")
      eventually {
        reading.timer.advance(by: 0.2)
        return options.contains("heartbeat") ? text(feed) == "\n\n" : feed.hasEnded
      }
      feed.cancel()
      eventually { reading.client.service.watches.counts.open == 0 }
    }
  }

  @Test("heartbeats come while nothing changes, and instead of the end", arguments: someEngines)
  func heartbeats(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    let feed = try reading.get("_changes?feed=continuous&heartbeat=700&timeout=10")
    for count in 1..<4 {
      eventually { text(feed) == String(repeating: "\n", count: count) }
      settle(reading)
      reading.timer.advance(by: 0.7)
    }
    eventually { text(feed) == "\n\n\n\n" }
    try reading.apply("a", "1-a")
    eventually { text(feed).hasSuffix("\n\n{\"seq\":\"1\",\"id\":\"a\",\"changes\":[{\"rev\":\"1-a\"}]}\n") }
    feed.cancel()
    eventually { feed.hasEnded }
    expect(reading.client.service.watches.counts.open, equals: 0)
  }

  @Test("a continuous feed brings each change once, in order", arguments: someEngines)
  func continuous(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.save("first")
    let feed = try reading.get("_changes?feed=continuous&include_docs=true&heartbeat=60000")
    for number in 0..<50 { try reading.database.save("doc\(number)", ["n": .int(Int64(number))]) }
    try reading.database.inBatch {
      for number in 50..<100 { try reading.database.save("doc\(number)", ["n": .int(Int64(number))]) }
    }
    func rows() throws -> [JSONValue] {
      try text(feed).split(separator: "\n").map { line in
        try Array(line.utf8).withUnsafeBytes { try JSONValue(json: $0) }
      }
    }
    eventually { text(feed).contains("doc99\"") && feed.arrived.last == 0x0A }
    let found = try rows()
    expect(found.map { $0["id"]?.string }, equals: ["first"] + (0..<100).map { "doc\($0)" })
    expect(found.dropFirst().enumerated().allSatisfy { $1["doc"]?["n"] == .int(Int64($0)) })
    feed.cancel()
  }

  @Test("a limit ends a continuous feed") func limit() throws {
    let reading = try ReadingClient(.lmdb)
    try reading.saveKnown()
    let now = try reading.get("_changes?feed=continuous&limit=1")
    expect(
      now.unmarkedText,
      equals:
        "{\"seq\":\"1\",\"id\":\"a\",\"changes\":[{\"rev\":\"1-a\"}]}\n{\"last_seq\":\"1\",\"pending\":4}\n\n"
    )
    let later = try reading.get("_changes?feed=live&since=now&limit=1")
    try reading.apply("n1", "1-a")
    expect(
      later.unmarkedText.hasSuffix(
        "\"n1\",\"changes\":[{\"rev\":\"1-a\"}]}\n{\"last_seq\":\"7\",\"pending\":0}\n\n"))
  }

  @Test("server-sent events") func events() throws {
    let reading = try ReadingClient(.sqlite)
    try reading.saveKnown()
    let row = { (sequence: Int, id: String, revision: String) in
      "data: {\"seq\":\"\(sequence)\",\"id\":\"\(id)\",\"changes\":[{\"rev\":\"\(revision)\"}]}\nid: \"\(sequence)\"\n\n"
    }
    let some = try reading.get("_changes?feed=eventsource&limit=2")
    expect(some.header("Content-Type") == "text/event-stream" && some.header("Cache-Control") == "no-cache")
    expect(some.unmarkedText, equals: row(1, "a", "1-a") + row(2, "b", "1-b") + "\n")
    let resumed = try reading.get(
      "_changes?feed=eventsource&since=0&heartbeat=1000", headers: [("Last-Event-ID", "\"4\"")])
    eventually { text(resumed) == row(6, "conf", "2-x") }
    settle(reading)
    reading.timer.advance(by: 1)
    eventually { text(resumed) == row(6, "conf", "2-x") + "event: heartbeat\ndata: \n\n" }
    try reading.apply("new", "1-n")
    eventually {
      text(resumed)
        == row(6, "conf", "2-x") + "event: heartbeat\ndata: \n\n" + row(7, "new", "1-n")
    }
    resumed.cancel()
  }

  @Test("filters wait on for what they choose", arguments: someEngines)
  func filters(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    let poll = try reading.post(
      "_changes?feed=longpoll&filter=_doc_ids&heartbeat=60000", "{\"doc_ids\":[\"yes\"]}")
    try reading.save("no")
    eventually { text(poll) == "{\"results\":[\n\n\n" || text(poll) == "{\"results\":[\n\n" }
    try reading.save("yes")
    let answer = try poll.json()
    expect(answer["results"]?.array?.map { $0["id"]?.string }, equals: ["yes"])
    expect(answer["last_seq"], equals: reading.sequence(2))
  }

  @Test("scripts choose in feeds", arguments: [EngineName.sqlite, .lmdb])
  func scripts(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.database.save(
      "_design/d", ["filters": ["odd": "function (doc, req) { return doc.n % 2 == 1; }"]])
    let feed = try reading.get("_changes?feed=continuous&filter=d/odd&heartbeat=60000")
    try reading.save("n0", "n1", "n2", "n3")
    eventually { text(feed).contains("n3") }
    expect(!text(feed).contains("n2") && text(feed).contains("n1"))
    feed.cancel()
  }

  @Test("a closed database ends its feeds", arguments: someEngines)
  func closing(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    let feeds = try ["continuous", "longpoll", "eventsource"].map { feed in
      try reading.get("_changes?heartbeat=60000&feed=" + feed)
    }
    // Each waits, and has said so with an empty line.
    for (feed, head) in zip(feeds, ["\n", "{\"results\":[\n\n", "\n"]) { eventually { text(feed) == head } }
    try reading.database.close()
    expect(feeds[0].unmarkedText, equals: "\n{\"last_seq\":\"0\",\"pending\":0}\n\n")
    expect(feeds[1].unmarkedText, equals: "{\"results\":[\n\n\n],\n\"last_seq\":\"0\",\"pending\":0}\n\n")
    expect(feeds[2].unmarkedText, equals: "\n")
    expect(reading.client.service.watches.counts.open, equals: 0)
  }

  @Test("a deleted database ends its feeds") func deleting() throws {
    let client = try APIClient()
    try expect(client.ask("PUT", "/db").status, equals: 201)
    let feed = try client.ask("GET", "/db/_changes?feed=continuous&heartbeat=60000")
    eventually { feed.arrived == [0x0A] }
    try expect(client.ask("DELETE", "/db").status, equals: 200)
    expect(feed.unmarkedText.hasSuffix("\"pending\":0}\n\n"))
  }

  @Test("a client that takes nothing is waited for, and misses nothing", arguments: someEngines)
  func slow(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.save("first")
    let feed = try reading.client.stall(
      "GET", "/db/_changes?feed=continuous&include_docs=true&heartbeat=1000")
    feed.waitUntilStalled()
    let filling = String(repeating: "x", count: 20_000)
    for number in 0..<40 { try reading.database.save("doc\(number)", ["text": .string(filling)]) }
    reading.timer.advance(by: 100)
    // One piece is offered; nothing gathers behind it.
    expect(feed.arrived.count < 200)
    feed.release()
    eventually { String(decoding: feed.arrived, as: UTF8.self).contains("doc39") }
    let found = String(decoding: feed.arrived, as: UTF8.self).split(separator: "\n").filter {
      $0.hasPrefix("{")
    }
    expect(found.count, equals: 41)
    feed.cancel()
    eventually { feed.hasEnded }
  }

  @Test("a client that goes while it is waited for leaves nothing behind") func gone() throws {
    let reading = try ReadingClient(.lmdb)
    try reading.save("first")
    let feed = try reading.client.stall("GET", "/db/_changes?feed=continuous&heartbeat=1000")
    feed.waitUntilStalled()
    feed.cancel()
    expect(feed.hasFailed && reading.client.service.watches.counts.open == 0)
    feed.release()
  }

  @Test("many idle feeds take little memory, and no threads", arguments: [EngineName.lmdb])
  func idle(_ engine: EngineName) throws {
    let reading = try ReadingClient(engine)
    try reading.save("first")
    let count = 5_000
    func threads() throws -> Int {
      try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count
    }
    let (memory, before) = (ProcessMemory.anonymousBytes, try threads())
    let feeds = try (0..<count).map { _ in
      try reading.get("_changes?feed=continuous&since=now&heartbeat=60000")
    }
    eventually { feeds.allSatisfy { $0.arrived == [0x0A] } }
    expect(reading.client.service.watches.counts.open, equals: count)
    let each = (ProcessMemory.anonymousBytes - memory) / count
    print("an idle feed takes \(each) bytes, with what the test keeps of it")
    if !isSanitized { expect(each < 32 << 10) }
    // The workers of the service, and those of other tests that run meanwhile.
    try expect(threads() < before + 100)
    try reading.database.save("new", [:])
    eventually { feeds.allSatisfy { String(decoding: $0.arrived, as: UTF8.self).contains("\"new\"") } }
    eventually { reading.client.service.watches.counts.waiting == count && reading.timer.count > 0 }
    reading.timer.advance(by: 61)
    eventually { feeds.allSatisfy { $0.arrived.suffix(2) == [0x0A, 0x0A] } }
    for feed in feeds { feed.cancel() }
    expect(reading.client.service.watches.counts.open, equals: 0)
  }
}

/// The memory of this process.
private enum ProcessMemory {
  /// What isn't backed by files, in bytes.
  static var anonymousBytes: Int {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
    return (line.flatMap { Int($0.filter(\.isNumber)) } ?? 0) << 10
  }
}
