import Fleece
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import HTTPAPI

/// A database goes away while others use it.
@Suite("Deleted databases") struct DeletionTests {
  @Test("requests to a database that is deleted find it, or find it gone", arguments: someEngines)
  func requests(_ engine: EngineName) throws {
    let client = try APIClient(engine)
    let problems = Lock<[String]>([])
    let isDone = Lock(false)
    let asked = Lock(0)
    @Sendable func ask(_ number: Int) throws {
      let json = ("Content-Type", "application/json")
      let (method, target, body): (String, String, String) =
        switch number % 9 {
        case 0: ("PUT", "/db/\(UUID())", #"{"n":1}"#)
        case 1: ("GET", "/db/_all_docs?include_docs=true", "")
        case 2: ("GET", "/db/_changes", "")
        case 3: ("POST", "/db/_bulk_docs", #"{"docs":[{"n":1},{"n":2}]}"#)
        case 4: ("GET", "/db", "")
        case 5: ("POST", "/db/_query", #"{"query":"SELECT COUNT(*) FROM _"}"#)
        case 6: ("GET", "/db/_changes?feed=continuous&timeout=1", "")
        case 7: ("PUT", "/db/\(UUID())/file", "bytes")
        default: ("GET", "/_all_dbs", "")
        }
      let answer = try client.ask(method, target, headers: [json], body: Array(body.utf8))
      _ = answer.body()
      asked.withLock { $0 += 1 }
      // 412 is the answer of a creation that comes too early, 409 cannot be.
      guard [200, 201, 404].contains(answer.status) else {
        return problems.withLock {
          $0.append("\(method) \(target): \(answer.status) \(answer.text.prefix(200))")
        }
      }
    }
    let threads = 4
    let ended = CountingSemaphore()
    for thread in 0..<threads {
      Thread.detachNewThread {
        var number = thread
        while !isDone.withLock({ $0 }) {
          do { try ask(number) } catch { problems.withLock { $0.append("\(error)") } }
          number += 1
        }
        ended.signal()
      }
    }
    for _ in 0..<(isLong ? 100 : 8) {
      try expect(client.ask("PUT", "/db").status, equals: 201)
      let before = asked.withLock { $0 }
      eventually { asked.withLock { $0 } > before + 30 }
      let deleted = try client.ask("DELETE", "/db")
      expect(deleted.status, equals: 200, "\(deleted.text)")
      try expect(client.ask("GET", "/db").status, equals: 404)
      try expect(client.ask("DELETE", "/db").status, equals: 404)
    }
    isDone.withLock { $0 = true }
    for _ in 0..<threads { ended.wait() }
    expect(problems.withLock { $0.prefix(10) }, equals: [])
    expect(client.service.watches.counts.open, equals: 0)
  }
}
