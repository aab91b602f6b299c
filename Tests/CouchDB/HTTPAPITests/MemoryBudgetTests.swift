import Foundation
import Storage
import TestSupport
import Testing
import Views

@testable import HTTPAPI

/// The memory that the bodies of requests may take together.
@Suite("The memory of bodies") struct MemoryBudgetTests {
  private static let step = 256 << 10
  /// Nothing waits so long in a test that passes.
  private static let long = 600.0

  private func status(_ body: () throws -> Void) -> Int {
    do {
      try body()
      return 200
    } catch let error as AnswerInstead { return error.answer.status } catch let error as CouchDBError {
      return error.status
    } catch { return 0 }
  }

  @Test("small requests take none, and large ones give theirs back") func taking() throws {
    let budget = MemoryBudget(bytes: 4 * Self.step, waitSeconds: 0)
    let small = RequestMemory(budget)
    try small.hold(RequestMemory.freeBytes)
    expect(budget.free, equals: 4 * Self.step)
    do {
      let large = RequestMemory(budget)
      try large.hold(RequestMemory.freeBytes + 1)
      expect(budget.free, equals: 3 * Self.step)
      try large.hold(Self.step)
      expect(budget.free, equals: 2 * Self.step)
      // What one step needed is there for the next.
      try large.holding(Self.step) { expect(budget.free, equals: Self.step) }
      try large.holding(Self.step) { expect(budget.free, equals: Self.step) }
      // Others find too little, and nobody is refused who needs no more.
      let other = RequestMemory(budget)
      expect(status { try other.hold(3 * Self.step) }, equals: 503)
      let third = RequestMemory(budget)
      expect(status { try third.hold(Self.step) }, equals: 200)
      // Alone, it could never have so much.
      expect(status { try large.hold(5 * Self.step) }, equals: 413)
    }
    withExtendedLifetime(small) {}
    expect(budget.free, equals: 4 * Self.step)
  }

  @Test("a request waits until another one ends") func waiting() throws {
    let budget = MemoryBudget(bytes: 2 * Self.step, waitSeconds: Self.long)
    var first: RequestMemory? = RequestMemory(budget)
    try first?.hold(2 * Self.step)
    let ended = CountingSemaphore()
    let result = Lock(0)
    Thread.detachNewThread {
      let second = RequestMemory(budget)
      let status = status { try second.hold(2 * Self.step) }
      result.withLock { $0 = status }
      ended.signal()
    }
    eventually { budget.waitingCount == 1 }
    expect(result.withLock { $0 }, equals: 0)
    first = nil
    ended.wait()
    expect(result.withLock { $0 }, equals: 200)
    eventually { budget.free == 2 * Self.step }
  }

  @Test("of requests that wait for each other one goes on", arguments: [2, 3, 8]) func deadlocks(_ count: Int)
    throws
  {
    let budget = MemoryBudget(bytes: count * Self.step, waitSeconds: Self.long)
    let have = CountingSemaphore()
    let go = CountingSemaphore()
    let ended = CountingSemaphore()
    let statuses = Lock<[Int]>([])
    for _ in 0..<count {
      Thread.detachNewThread {
        do {
          let memory = RequestMemory(budget)
          let first = status { try memory.hold(RequestMemory.freeBytes + Self.step) }
          have.signal()
          go.wait()
          let second = status { try memory.hold((count - 1) * Self.step) }
          statuses.withLock { $0 += [first, second] }
        }
        ended.signal()
      }
    }
    for _ in 0..<count { have.wait() }
    expect(budget.free, equals: 0)
    for _ in 0..<count { go.signal() }
    for _ in 0..<count { ended.wait() }
    let seconds = statuses.withLock { $0 }
    expect(seconds.count { $0 == 503 } <= count - 1 && seconds.allSatisfy { [200, 503].contains($0) })
    eventually { budget.free == count * Self.step }
    expect(budget.waitingCount, equals: 0)
  }

  @Test("only so many wait, and each for a bounded time") func bounds() throws {
    let budget = MemoryBudget(bytes: Self.step, waitSeconds: Self.long)
    var first: RequestMemory? = RequestMemory(budget)
    try first?.hold(Self.step)
    let ended = CountingSemaphore()
    for _ in 0..<16 {
      Thread.detachNewThread {
        let memory = RequestMemory(budget)
        _ = status { try memory.hold(Self.step) }
        ended.signal()
      }
    }
    eventually { budget.waitingCount == 16 }
    let late = RequestMemory(budget)
    expect(status { try late.hold(Self.step) }, equals: 503)
    first = nil
    for _ in 0..<16 { ended.wait() }
    eventually { budget.free == Self.step }

    let impatient = MemoryBudget(bytes: Self.step, waitSeconds: 0.01)
    let holder = RequestMemory(impatient)
    try holder.hold(Self.step)
    let other = RequestMemory(impatient)
    expect(status { try other.hold(Self.step) }, equals: 503)
    expect(impatient.waitingCount, equals: 0)
    withExtendedLifetime(holder) {}
  }

  @Test("a body, and what is made of it, are counted") func bodies() throws {
    var configuration = DatabaseServiceConfiguration()
    configuration.bodyMemoryBytes = 4 << 20
    configuration.bodyMemorySeconds = 0
    let client = try APIClient.withDatabase(.lmdb, configuration)
    let values = "[" + String(repeating: "1,", count: 60_000) + "1]"
    let text = String(repeating: "x", count: 3 << 20)
    for (method, target, body) in [
      ("PUT", "/db/a", "{\"a\":\"\(text)\"}"), ("POST", "/db", "{\"a\":\"\(text)\"}"),
      ("POST", "/db/_bulk_docs", "{\"docs\":[{\"a\":\"\(text)\"}]}"),
      ("POST", "/db/_bulk_docs", "{\"docs\":[],\"x\":\(values)}"), ("POST", "/db/_bulk_docs", values),
      ("POST", "/db/_bulk_docs", "{\"docs\":{\"a\":\(values)}}"),
      ("PUT", "/db/a", values), ("PUT", "/db/a", "{\"_revs_info\":\(values)}"),
      ("PUT", "/db/a", "{\"_revisions\":\(values)}"), ("PUT", "/db/_local/a", "{\"a\":\(values)}"),
      ("PUT", "/db/_design/a", "{\"a\":\(values)}"),
      ("PUT", "/db/a", "{\"_attachments\":{\"a\":{\"x\":\(values)}}}"),
      ("POST", "/db/_all_docs", "{\"keys\":\(values)}"), ("POST", "/db/_revs_diff", "{\"a\":\(values)}"),
      ("POST", "/db/_missing_revs", "{\"a\":\(values)}"), ("POST", "/db/_bulk_get", "{\"docs\":\(values)}"),
      ("POST", "/db/_changes?filter=_doc_ids", "{\"doc_ids\":\(values)}"),
      ("POST", "/db/_query", "{\"query\":\(values)}"), ("POST", "/_dbs_info", "{\"keys\":\(values)}"),
      ("POST", "/_replicate", "{\"doc_ids\":\(values)}"),
    ] {
      let answer = try client.send(method, target, body)
      expect(answer.status, equals: 413, "\(method) \(target) \(body.prefix(30)): \(answer.status)")
    }
    // A document with many values is stored piece by piece, and takes no more than its text.
    try expect(client.send("PUT", "/db/a", "{\"a\":\(values)}").status, equals: 201)
    eventually { client.service.memory.free == 4 << 20 }

    // While others have it all, small requests are answered.
    let holder = RequestMemory(client.service.memory)
    try holder.hold(4 << 20)
    let late = try client.send("PUT", "/db/b", "{\"a\":\"\(text.prefix(1 << 20))\"}")
    expect(late.status, equals: 503)
    expect(late.header("Retry-After"), equals: "1")
    try expect(late.error[0], equals: "service_unavailable")
    try expect(client.send("PUT", "/db/b", #"{"n":1}"#).status, equals: 201)
    try expect(client.send("POST", "/db/_all_docs", #"{"keys":["b"]}"#).status, equals: 200)
    // So are attachments, which are stored as they arrive.
    try expect(client.send("PUT", "/db/c/f", text).status, equals: 201)
    withExtendedLifetime(holder) {}
  }
}
