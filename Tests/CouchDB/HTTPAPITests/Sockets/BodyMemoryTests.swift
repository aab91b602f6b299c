import Foundation
import RawHTTP
import Storage
import StorageConformance
import TestSupport
import Testing

@testable import HTTPAPI

/// Many small bodies that decompress to large ones take no more memory together than the server has for them.
@Suite("The memory of a server", .serialized) struct BodyMemoryTests {
  /// For bodies, in MiB.
  private static let budget = 128
  /// What the server takes besides: the process itself, a transaction, and what the allocator keeps for each thread of what earlier
  /// bodies took: mostly 100, seldom 300. Without a budget the bodies take 600 and more.
  private static let others = 384

  /// So many MiB of blanks, and an object.
  private static func blanks(_ megabytes: Int) -> [UInt8] {
    [UInt8](repeating: UInt8(ascii: " "), count: megabytes << 20) + Array("{}".utf8)
  }

  /// What inflates to so many MiB, and what is made of it.
  private static let bombs: [(what: String, method: String, target: String, text: @Sendable () -> [UInt8])] =
    [
      ("blanks", "PUT", "/db/a", { blanks(60) }),
      (
        "documents", "POST", "/db/_bulk_docs",
        {
          let text = String(repeating: "x", count: 100_000)
          let documents = (0..<400).map { "{\"_id\":\"d\($0)\",\"a\":\"\(text)\"}" }
          return Array("{\"docs\":[\(documents.joined(separator: ","))]}".utf8)
        }
      ),
      (
        "keys", "POST", "/db/_all_docs?limit=1",
        { Array("{\"keys\":[\(String(repeating: "\"a\",", count: 800_000))1]}".utf8) }
      ),
      (
        "revisions", "POST", "/db/_revs_diff",
        {
          let members = (0..<40_000).map { "\"\($0)\":[\"1-a\",\"2-b\"]" }
          return Array("{\(members.joined(separator: ","))}".utf8)
        }
      ),
      (
        "objects", "POST", "/db/_all_docs?limit=1",
        { Array("{\"keys\":[\(String(repeating: "{\"a\":1},", count: 250_000)){}]}".utf8) }
      ),
      ("one too large", "PUT", "/db/a", { blanks(120) }),
    ]

  @Test(
    "many bombs together take a bounded amount", .enabled(if: !isSanitized),
    arguments: isLong ? Array(allEngines) : [EngineName.lmdb],
    bombs.indices)
  func memory(_ engine: EngineName, _ index: Int) throws {
    let (what, method, target, text) = Self.bombs[index]
    let directory = TemporaryDirectory()
    let server = try ServingChild(engine, directory.path, bodyMemory: Self.budget)
    let other = try server.client()
    try expect(other.ask("PUT", "/db").status, equals: 201)
    let bomb = try #require(GzipEncoder()).encode(text(), isLast: true)
    let most = Lock(0)
    let isDone = Lock(false)
    let watching = CountingSemaphore()
    Thread.detachNewThread {
      while !isDone.withLock({ $0 }) {
        most.withLock { $0 = max($0, server.anonymousBytes) }
        usleep(2_000)
      }
      watching.signal()
    }
    let statuses = Lock<[Int]>([])
    let ended = CountingSemaphore()
    for _ in 0..<24 {
      Thread.detachNewThread {
        var status = 0
        // A server that refuses a body may close before it was sent.
        if let client = try? server.client() {
          status =
            (try? client.ask(method, target, bomb, headers: ["Content-Encoding: gzip"]).status) ?? 0
        }
        statuses.withLock { $0.append(status) }
        ended.signal()
      }
    }
    // Others go on meanwhile.
    for number in 0..<20 {
      try expect(other.ask("PUT", "/db/small\(number)", Array("{\"n\":1}".utf8)).status, equals: 201)
      try expect(other.ask("GET", "/db/small\(number)").status, equals: 200)
    }
    for _ in 0..<24 { ended.wait() }
    isDone.withLock { $0 = true }
    watching.wait()
    let all = statuses.withLock { $0 }
    let megabytes = most.withLock { $0 } >> 20
    print("\(what): \(bomb.count >> 10) KiB, 24 at once in \(megabytes) MiB: \(all.sorted())")
    expect(megabytes < Self.budget + Self.others)
    if what == "one too large" {
      expect(all.allSatisfy { [413, 503].contains($0) })
      expect(all.contains(413))
    } else {
      expect(all.allSatisfy { [200, 201, 400, 409, 503].contains($0) })
      expect(all.contains { $0 != 503 })
    }
    try expect(server.client().ask("GET", "/db").status, equals: 200)
  }
}
