import Documents
import Fleece
import Foundation
import StorageConformance
import TestSupport
import Testing
import Touchstone
import TouchstoneServer
import TouchstoneSync

@testable import Replication
@testable import ReplicationHTTP

/// Random changes on three databases with listeners, that replicate in a random topology, by HTTP and by BLIP.
@Suite("Random replications over HTTP") struct HTTPRandomTests {
  private struct Node {
    let database: Database
    let server: TestServer
    /// The same server without `_bulk_get`.
    let poor: Forwarder

    init(_ database: Database) throws {
      self.database = database
      server = try TestServer(["db": database])
      poor = try Forwarder(to: server.url) { $0.hasSuffix("/_bulk_get") }
    }

    func target(byHTTP: Bool, isPoor: Bool) throws -> ReplicatorTarget {
      guard byHTTP else { return try .url(try #require(server.listener.urls.first)) }
      return try .httpURL((isPoor ? poor.server.url : server.url) + "db")
    }
  }

  @Test("three databases end equal in every topology", arguments: 0..<times(4, sanitized: 10, long: 500))
  func equal(_ number: Int) throws {
    let seed = testSeed &+ UInt64(number)
    let what = "TOUCHSTONE_SEED=\(seed)"
    var random = SeededGenerator(seed: seed)
    let databases = TestDatabases()
    let engines =
      isStrict ? [EngineName.sqlite, .lmdb] : [.sqlite, .lmdb, .lmdb, .sqlite, .sqlcipher, .lmdbEncrypted]
    let nodes = try (0..<3).map { _ in try Node(try databases.open(random.pick(engines))) }
    // BLIP carries the current revision only, so with it the winners are equal, and not all leaves.
    let usesBLIP = number % 2 == 1
    let edges = random.pick([
      [(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)], [(1, 0), (1, 2)], [(0, 1), (2, 1)],
    ])
    var kept: [String] = []
    for round in 0..<(6 + random.below(6)) {
      for _ in 0..<random.below(30) {
        try RandomChanges.change(random.pick(nodes).database, &random, &kept, "\(number).\(round)")
      }
      let edge = random.pick(edges)
      let outcome = try replicate(nodes[edge.0], nodes[edge.1], usesBLIP && random.once(in: 2), &random)
      expect(outcome.status.error == nil, "\(what)")
      for (id, error) in outcome.failed { expect(error.code, equals: 409, "\(what): \(id) \(error)") }
    }
    var isQuiet = false
    for round in 0..<12 where !isQuiet {
      isQuiet = true
      for edge in edges {
        // The last word has HTTP.
        for byHTTP in usesBLIP && round < 4 ? [false, true] : [true] {
          let outcome = try replicate(nodes[edge.0], nodes[edge.1], !byHTTP, &random, .pushAndPull)
          expect(outcome.status.error == nil, "\(what)")
          if !outcome.pushed.isEmpty || !outcome.pulled.isEmpty { isQuiet = false }
        }
      }
    }
    expect(isQuiet, "\(what): it isn't quiet")
    for pair in [(0, 1), (1, 2)] { try expectEqual(nodes[pair.0].database, nodes[pair.1].database, what) }
    for node in nodes {
      try expect(node.database.check(deep: true), equals: [], "\(what)")
      for id in kept where try node.database.document(id) == nil { Issue.record("\(what): \(id) is lost") }
    }
  }

  private func replicate(
    _ from: Node, _ to: Node, _ byBLIP: Bool, _ random: inout SeededGenerator,
    _ direction: ReplicatorConfiguration.Direction? = nil
  ) throws -> Outcome {
    var configuration = ReplicatorConfiguration(
      from.database, try to.target(byHTTP: !byBLIP, isPoor: random.once(in: 3)))
    configuration.direction = direction ?? random.pick([.push, .pull, .pushAndPull, .pushAndPull])
    configuration.skipsTombstonesOfFirstPull = false
    configuration.resetsCheckpoint = random.once(in: 8)
    configuration.checkpointDelay = random.pick([0.001, 5])
    return try run(configuration)
  }
}

/// A random change of a document: saved, deleted, with blobs or attachments, branched, or resolved.
enum RandomChanges {
  /// IDs of documents that must stay are added to `kept`.
  static func change(
    _ database: Database, _ random: inout SeededGenerator, _ kept: inout [String], _ what: String
  ) throws {
    let id = "doc\(random.below(25))"
    switch random.below(14) {
    case 0:
      kept.append("kept \(what) \(kept.count)")
      try database.save(kept[kept.count - 1], ["n": .int(Int64(random.below(1_000)))])
    case 1, 2: if try database.document(id) != nil { try database.delete(id) }
    case 3:
      var document = MutableDocument(id: id, ["n": .int(Int64(random.below(1_000)))])
      let bytes = [UInt8](repeating: UInt8(random.below(4)), count: random.pick([0, 10, 5_000]))
      document.set(try Blob(bytes, contentType: "text/plain"), forKey: "blob")
      try database.save(&document)
    case 4, 5:
      var document = try database.document(id)?.toMutable() ?? MutableDocument(id: id)
      document.setAttachment(
        "a\(random.below(3))",
        try Blob([UInt8(random.below(5))], contentType: random.pick(["text/plain", "image/png"])))
      try database.save(&document)
    case 6:
      // A branch that was made elsewhere.
      let suffix = (0..<32).map { _ in random.pick(Array("0123456789abcdef")) }
      try database.apply(
        PulledRevision(
          id: id, history: ["\(1 + random.below(3))-\(String(suffix))"], isDeleted: random.once(in: 4),
          body: .value(["branch": .int(Int64(random.below(100)))])))
    case 7:
      if let winner = try database.conflicts(of: id).first {
        try database.resolveConflict(of: id, keeping: winner.id)
      }
    default:
      let value = JSONValue.int(Int64(random.below(5)))
      try database.update(id, creating: true) { $0["v"] = value }
    }
  }
}

@Suite("Killed replications over HTTP", .serialized) struct HTTPKillTests {
  /// Both sides are processes of their own. Each is killed while the other one goes on. The checkpoints aren't reset.
  @Test(
    "kills on either side lose nothing that was acknowledged",
    arguments: [(EngineName.lmdb, EngineName.sqlite), (.sqlite, .lmdb)])
  func kills(_ here: EngineName, _ there: EngineName) throws {
    let sides = KilledSides(here, there, client: "http")
    let rounds = times(2, sanitized: 4, long: 50)
    try sides.run(rounds: rounds, roundsOfDatabases: rounds) { a, b, port, what in
      let listener = try TestServer(["b": b]) { $0.port = port }
      try expect(replicate(a, listener, "b").status.error == nil, "\(what)")
      try expectEqual(a, b, what)
      listener.listener.stop()
    }
  }
}
