import Documents
import Foundation
import TestSupport
import Testing
import Touchstone

@testable import Replication

/// Random changes on three databases that are replicated at random, with faults, until nothing is left to do.
@Suite("Random replications") struct RandomReplicationTests {
  @Test("three databases end equal, whatever goes wrong", arguments: 0..<times(6, sanitized: 16, long: 1_000))
  func equal(_ number: Int) throws {
    let seed = testSeed &+ UInt64(number)
    let what = "TOUCHSTONE_SEED=\(seed)"
    var random = SeededGenerator(seed: seed)
    let databases = TestDatabases()
    let engines = isStrict ? [EngineName.sqlite, .lmdb] : [.sqlite, .lmdb, .lmdb, .sqlite, .sqlcipher]
    let all = try (0..<3).map { _ in try databases.open(random.pick(engines)) }
    let faults = Faults(
      seed: seed,
      Faults.Rates(
        cut: random.pick([0, 10, 40]), lostAnswer: random.pick([0, 10, 40]), duplicate: random.pick([0, 5]),
        delay: random.pick([0, 3]), refusedConnection: random.pick([0, 4])))
    var kept: [String] = []
    for round in 0..<(8 + random.below(8)) {
      for _ in 0..<random.below(30) { try change(random.pick(all), &random, &kept, "\(number).\(round)") }
      let (left, right) = (random.below(3), random.below(2))
      let from = all[left]
      let to = all[(left + 1 + right) % 3]
      var configuration = ReplicatorConfiguration(
        from, ReplicatorTarget(FaultyConnector(inner: connection(to: to), faults: faults)))
      configuration.direction = random.pick([.push, .pull, .pushAndPull, .pushAndPull])
      configuration.maximumRetries = 0
      configuration.skipsTombstonesOfFirstPull = false
      configuration.resetsCheckpoint = random.once(in: 8)
      configuration.checkpointDelay = random.pick([0.001, 5])
      let outcome = try run(configuration)
      if let error = outcome.status.error { expect(error.isTransient, "\(what): \(error)") }
      for (id, error) in outcome.failed {
        expect(error.code == 409 || error.code == 1006 || error.code == 1001, "\(what): \(id) \(error)")
      }
    }
    // Without faults, until nothing happens any more.
    var rounds = 0
    var isQuiet = false
    while !isQuiet, rounds < 12 {
      isQuiet = true
      for (left, right) in [(0, 1), (1, 2), (2, 0)] {
        let isFirst = rounds < 2
        let outcome = try replicate(all[left], all[right]) { $0.resetsCheckpoint = isFirst }
        expect(outcome.status.error == nil, "\(what)")
        if !outcome.pushed.isEmpty || !outcome.pulled.isEmpty { isQuiet = false }
      }
      rounds += 1
    }
    expect(isQuiet, "\(what): it isn't quiet after \(rounds) rounds")
    // Deletions that were made independently may stay different tombstones.
    try expectEqual(all[0], all[1], what, anyTombstone: true)
    try expectEqual(all[1], all[2], what, anyTombstone: true)
    for database in all {
      try expect(database.check(deep: true), equals: [], "\(what)")
      for id in kept where try database.document(id) == nil { Issue.record("\(what): \(id) is lost") }
    }
  }

  private func change(
    _ database: Database, _ random: inout SeededGenerator, _ kept: inout [String], _ what: String
  ) throws {
    let id = "doc\(random.below(25))"
    switch random.below(12) {
    case 0:
      kept.append("kept \(what) \(kept.count)")
      try database.save(kept[kept.count - 1], ["n": .int(Int64(random.below(1_000)))])
    // There may be no such document, or the end of the last replication deletes it just now.
    case 1, 2:
      do { try database.delete(id) } catch let error as DocumentError where error.code == .notFound {}
    case 3: do { try database.purge(id) } catch let error as DocumentError where error.code == .notFound {}
    case 4:
      var document = MutableDocument(id: id, ["n": .int(Int64(random.below(1_000)))])
      let bytes = [UInt8](repeating: UInt8(random.below(4)), count: random.pick([0, 10, 5_000]))
      document.set(try Blob(bytes, contentType: "text/plain"), forKey: "blob")
      try database.save(&document)
    case 5:
      var document = try database.document(id)?.toMutable() ?? MutableDocument(id: id)
      document.setAttachment("a", try Blob([UInt8(random.below(3))], contentType: "text/plain"))
      try database.save(&document)
    default:
      let value = JSONValue.int(Int64(random.below(5)))
      try database.update(id, creating: true) { $0["v"] = value }
    }
  }
}
