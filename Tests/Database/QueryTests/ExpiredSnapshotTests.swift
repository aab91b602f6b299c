import Query
import TestSupport

@testable import Touchstone

/// Queries on an engine whose snapshots expire while they run.
@Suite("Queries whose snapshots expire") struct ExpiredSnapshotTests {
  private static let engines: [EngineName] = [.sqlite, .lmdb]
  /// Half of all snapshots expire at one of their first reads.
  private static let often = Strictness(expirations: 2)
  private static let numbers = Array(0..<30)

  /// A database of documents that are numbered, on an engine whose snapshots expire.
  private func withNumbers(_ engine: EngineName, _ body: (Database) throws -> Void) throws {
    try withStrictDatabase(engine, Self.often) { database in
      try database.inBatch {
        for number in Self.numbers { try database.save("doc\(100 + number)", ["n": .int(Int64(number))]) }
      }
      try database.createIndex("n", on: ["n"])
      try body(database)
    }
  }

  @Test("what collects its rows begins again, and has each row once", arguments: engines)
  func run(_ engine: EngineName) throws {
    try withNumbers(engine) { database in
      for round in 0..<20 {
        // Another condition each time: preparing reads as well.
        let query = try database.query("SELECT n FROM _ WHERE n >= \(-round) ORDER BY n")
        try expect(query.run().map { $0[0].int.map(Int.init) }, equals: Self.numbers)
        let unordered = try database.query("SELECT n FROM _ WHERE n + \(round) >= 0")
        try expect(unordered.run().compactMap { $0[0].int.map(Int.init) }.sorted(), equals: Self.numbers)
        try expect(unordered.explain(analyze: true).lines.contains { $0.contains("(rows 30,") })
      }
    }
  }

  @Test("forEach begins again before its first row, and never after", arguments: engines)
  func forEach(_ engine: EngineName) throws {
    try withNumbers(engine) { database in
      let query = try database.query("SELECT n FROM _ WHERE n + 0 >= 0")
      var (whole, cut) = (0, 0)
      for _ in 0..<60 {
        var found: [Int] = []
        do {
          try query.forEach { row in
            found.append(row[0].int.map(Int.init) ?? -1)
            return true
          }
          whole += 1
          expect(found.sorted(), equals: Self.numbers)
        } catch let error as StorageError where error.code == .snapshotExpired {
          cut += 1
          expect(!found.isEmpty && Set(found).count == found.count)
        }
      }
      expect(whole > 0 && cut > 0)
    }
  }

  @Test("a live query tells each change, and no expired snapshot", arguments: engines)
  func live(_ engine: EngineName) throws {
    try withNumbers(engine) { database in
      let told = Lock<[Result<[Int], any Error>]>([])
      let signal = CountingSemaphore()
      let query = try database.query("SELECT n FROM _ WHERE n >= 1000 ORDER BY n")
      let live = try database.observe(query) { outcome in
        told.withLock { $0.append(outcome.map { $0.map { $0[0].int.map(Int.init) ?? -1 } }) }
        signal.signal()
      }
      signal.wait()
      // Each is told before the next is saved, also by runs that only look whether they are concerned.
      for number in 0..<20 {
        try database.save("other", ["n": .int(Int64(number))])
        live.waitForRuns()
        try database.save("new\(number)", ["n": .int(Int64(1000 + number))])
        signal.wait()
      }
      live.cancel()
      let outcomes = told.withLock { $0 }
      expect(outcomes.count, equals: 21)
      for (count, outcome) in outcomes.enumerated() {
        try expect(outcome.get(), equals: (0..<count).map { 1000 + $0 })
      }
    }
  }
}
