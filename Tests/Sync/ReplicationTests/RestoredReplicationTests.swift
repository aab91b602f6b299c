import Documents
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

@testable import Replication

/// Two databases that keep few revisions and are edited often. Now and then one of them is replaced by an older copy of itself,
/// as from a backup. When nothing is left to do, both are equal, or an error was reported.
@Suite("Replications of restored databases") struct RestoredReplicationTests {
  /// A database that can be copied and restored.
  private final class Side {
    private let options: DatabaseOptions
    private let directory = TemporaryDirectory()
    private var copies: [TemporaryDirectory] = []
    private(set) var database: Database

    init(_ engine: EngineName, depth: Int) throws {
      var options = try TestSupport.options(engine)
      options.maximumTreeDepth = depth
      self.options = options
      database = try Database.open("test", in: directory.path, options: options)
      // The first copy is empty: to restore it erases the database.
      try copy()
    }

    private func whileClosed(_ body: () throws -> Void) throws {
      try database.close()
      try body()
      database = try Database.open("test", in: directory.path, options: options)
    }

    func copy() throws {
      let copy = TemporaryDirectory()
      try whileClosed {
        for name in try directory.names() {
          try FileManager.default.copyItem(atPath: directory.file(name), toPath: copy.file(name))
        }
      }
      copies.append(copy)
    }

    /// Replaces it by one of the copies, and returns which.
    func restore(_ random: inout SeededGenerator) throws -> Int {
      let number = random.below(copies.count)
      let copy = copies[number]
      try whileClosed {
        for name in try directory.names() { try FileManager.default.removeItem(atPath: directory.file(name)) }
        for name in try copy.names() {
          try FileManager.default.copyItem(atPath: copy.file(name), toPath: directory.file(name))
        }
      }
      return number
    }
  }

  @Test("they end equal, or tell why not", arguments: 0..<(isLong ? 1_000 : 8)) func equal(_ number: Int)
    throws
  {
    let seed = testSeed &+ UInt64(number)
    let what = "TOUCHSTONE_SEED=\(seed)"
    var random = SeededGenerator(seed: seed)
    let engines =
      isStrict ? [EngineName.sqlite, .lmdb] : [.sqlite, .lmdb, .lmdb, .sqlcipher, .lmdbEncrypted]
    let sides = try (0..<2).map { _ in
      try Side(random.pick(engines), depth: random.pick([2, 3, 5, 20]))
    }
    defer { for side in sides { try? side.database.close() } }
    // What has happened, for failures.
    var events: [String] = []
    var reported: Set<String> = []
    for _ in 0..<(4 + random.below(6)) {
      for side in sides where !random.once(in: 3) {
        for id in ["a", "b", "c", "d"] where random.once(in: 2) { try edit(side.database, id, &random) }
      }
      if random.once(in: 2) {
        let side = random.below(2)
        events.append("\(side) copied")
        try sides[side].copy()
      }
      if random.once(in: 3) {
        let side = random.below(2)
        let copy = try sides[side].restore(&random)
        events.append("\(side) restored, copy \(copy)")
      }
      let direction = random.pick(ReplicatorConfiguration.Direction.allCases)
      let resets = random.once(in: 8)
      let outcome = try replicate(sides[0].database, sides[1].database) {
        $0.direction = direction
        $0.resetsCheckpoint = resets
      }
      expect(outcome.status.error == nil, "\(what)")
      let sequences = try sides.map { try $0.database.lastSequence }
      events.append("\(direction)\(resets ? " reset" : "") up to \(sequences)")
      reported.formUnion(outcome.failed.keys)
    }
    var rounds = 0
    var isQuiet = false
    while !isQuiet, rounds < 10 {
      let outcome = try replicate(sides[0].database, sides[1].database)
      expect(outcome.status.error == nil, "\(what)")
      reported.formUnion(outcome.failed.keys)
      isQuiet = outcome.pushed.isEmpty && outcome.pulled.isEmpty
      rounds += 1
    }
    expect(isQuiet, "\(what): it isn't quiet after \(rounds) rounds")
    let (left, right) = (try contents(sides[0].database), try contents(sides[1].database))
    for id in Set(left.keys).union(right.keys).sorted() where left[id] != right[id] && !reported.contains(id)
    {
      Issue.record(
        "\(what): \(id): \(left[id] ?? "missing") | \(right[id] ?? "missing"): \(events.joined(separator: "; "))"
      )
    }
    for side in sides { try expect(side.database.check(deep: true), equals: [], "\(what)") }
  }

  /// What users see. Deletions that were made independently may stay different tombstones.
  private func contents(_ database: Database) throws -> [String: String] {
    try winners(database).mapValues { $0.contains(" deleted {") ? "deleted" : $0 }
  }

  private func edit(_ database: Database, _ id: String, _ random: inout SeededGenerator) throws {
    let count = random.pick([1, 1, 2, 4, random.below(61)])
    try database.inBatch {
      for _ in 0..<count {
        let value = JSONValue.int(Int64(random.below(1_000_000)))
        try database.update(id, creating: true) { $0["v"] = value }
      }
    }
    // A deletion that meets a change is lost once in some hundred runs: those are left to the long tests.
    if isLong, random.once(in: 8), try database.document(id) != nil { try database.delete(id) }
  }
}
