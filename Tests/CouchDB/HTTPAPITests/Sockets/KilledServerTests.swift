import Fleece
import Foundation
import RawHTTP
import Storage
import StorageConformance
import TestSupport
import Testing
import Touchstone

/// Clients write to a server that is killed. What it has acknowledged is there afterwards, and a request is done as a whole or not
/// at all.
@Suite("Killed servers", .serialized) struct KilledServerTests {
  /// What was acknowledged, and what was sent.
  private struct Written {
    /// The number of requests that were acknowledged.
    var requests = 0
    /// The revisions of documents.
    var documents: [String: String] = [:]
    /// The seeds of attachments.
    var attachments: [String: UInt64] = [:]
    /// The numbers of requests with several documents, by their prefixes: whether they were acknowledged.
    var groups: [String: Bool] = [:]
  }

  private static let groupSize = 20

  @Test("what a killed server has acknowledged is there", arguments: someEngines)
  func kills(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    let written = Lock(Written())
    var random = SeededGenerator(seed: testSeed)
    let rounds = isLong ? 60 : 6
    for round in 0..<rounds {
      let server = try ServingChild(engine, directory.path)
      let created = try server.client().ask("PUT", "/db")
      expect(created.status == 201 || created.status == 412)
      // The killing process waits for so many acknowledgements, and a moment.
      let before = written.withLock { $0.requests }
      let writers = (0..<3).map { number in
        let seed = testSeed &+ UInt64(round * 3 + number)
        return OnThread { Self.write(server, "r\(round)w\(number)", seed, written) }
      }
      let wanted = before + 10 + random.below(60)
      eventually { written.withLock { $0.requests } >= wanted }
      usleep(UInt32(random.below(30_000)))
      try server.kill()
      for writer in writers { writer.wait() }
      try check(
        directory.path, engine, written.withLock { $0 }, "TOUCHSTONE_SEED=\(testSeed), round \(round)")
    }
    let all = written.withLock { $0 }
    print(
      "\(engine): \(rounds) kills, \(all.documents.count) documents, \(all.attachments.count) attachments, "
        + "\(all.groups.values.count { $0 }) of \(all.groups.count) bulk requests acknowledged")
    expect(all.attachments.count > 0 && all.groups.values.contains(true))
  }

  /// Writes until the server is gone.
  private static func write(
    _ server: ServingChild, _ prefix: String, _ seed: UInt64, _ written: Lock<Written>
  ) {
    var random = SeededGenerator(seed: seed)
    do {
      let client = try server.client()
      for number in 0... {
        let id = "\(prefix)-\(number)"
        switch random.below(4) {
        case 0:
          written.withLock { $0.groups[id] = false }
          let documents: [JSONValue] = (0..<groupSize).map {
            ["_id": .string("\(id)-\($0)"), "n": .int(Int64($0))]
          }
          let body: JSONValue = ["docs": .array(documents)]
          let answer = try client.ask("POST", "/db/_bulk_docs", body.jsonText())
          guard answer.status == 201, let results = try answer.json().array else { return fail(id, answer) }
          written.withLock { written in
            written.requests += 1
            written.groups[id] = true
            for result in results {
              written.documents[result["id"].string ?? ""] = result["rev"].string ?? ""
            }
          }
        case 1:
          let content = Self.content(seed &+ UInt64(number))
          let answer = try client.ask("PUT", "/db/\(id)/file", content, type: "application/octet-stream")
          guard answer.status == 201 else { return fail(id, answer) }
          let revision = try answer.json()["rev"].string ?? ""
          written.withLock {
            $0.requests += 1
            $0.documents[id] = revision
            $0.attachments[id] = seed &+ UInt64(number)
          }
        default:
          let answer = try client.ask("PUT", "/db/\(id)", Array("{\"n\":\(number)}".utf8))
          guard answer.status == 201 else { return fail(id, answer) }
          let revision = try answer.json()["rev"].string ?? ""
          written.withLock {
            $0.requests += 1
            $0.documents[id] = revision
          }
        }
      }
    } catch {
      // The server is gone.
    }
  }

  private static func fail(_ id: String, _ answer: RawClient.Answer) {
    Issue.record("\(id): \(answer.status) \(answer.text)")
  }

  /// The bytes of an attachment, up to 100,000 of them.
  private static func content(_ seed: UInt64) -> [UInt8] {
    var random = SeededGenerator(seed: seed)
    // They repeat after 256.
    let pattern = (0..<256).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ Int(seed & 0xFF)) }
    let count = random.below(100_000)
    var content: [UInt8] = []
    content.reserveCapacity(count + pattern.count)
    while content.count < count { content += pattern }
    return Array(content.prefix(count))
  }

  private func check(_ directory: String, _ engine: EngineName, _ written: Written, _ what: String) throws {
    let database = try Database.open("db", in: directory, options: try options(engine))
    defer { try? database.close() }
    try expect(database.check(deep: true), equals: [], "\(what)")
    for (id, revision) in written.documents {
      try expect(database.document(id)?.revisionID.description, equals: revision, "\(what): \(id)")
    }
    for (id, seed) in written.attachments {
      let attachment = try database.document(id)?.attachment("file")
      let found = try attachment.map { try database.contents(of: $0.blob) }
      expect(found, equals: Self.content(seed), "\(what): the attachment of \(id)")
    }
    for (id, isAcknowledged) in written.groups {
      let found = try (0..<Self.groupSize).count { try database.document("\(id)-\($0)") != nil }
      expect(
        found == Self.groupSize || (found == 0 && !isAcknowledged), "\(what): \(found) documents of \(id)")
    }
  }
}

/// Work on a thread of its own.
private final class OnThread: Sendable {
  private let ended = CountingSemaphore()

  init(_ body: @escaping @Sendable () -> Void) {
    let ended = ended
    Thread.detachNewThread {
      body()
      ended.signal()
    }
  }

  func wait() { ended.wait() }
}
