import Foundation
import Storage
import TestSupport
import Testing

@testable import Query
@testable import Touchstone

/// Runs on the database's threads, bound to their tasks.
@Suite("Asynchronous runs") struct AsyncQueryTests {
  /// Takes minutes.
  /// Goes through 100 documents seven times in each other: it ends only when something ends it, however long a test waits
  /// for a thread of the cooperative pool.
  private static let long =
    "SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON a.n != b.n JOIN _ AS c ON c.n != a.n JOIN _ AS d ON d.n != a.n "
    + "JOIN _ AS e ON e.n != a.n JOIN _ AS f ON f.n != a.n JOIN _ AS g ON g.n + f.n + e.n + d.n + c.n + a.n + b.n = -1"

  private func withNumbers(_ engine: EngineName, _ body: (Database) async throws -> Void) async throws {
    let directory = TemporaryDirectory()
    let database = try Database.open("test", in: directory.path, options: try options(engine))
    try database.fill((0..<100).map { ("d\(100 + $0)", #"{"n":\#($0)}"#) })
    try await body(database)
    // A run that was cancelled may still be about to end.
    for _ in 0..<500 {
      do { return try database.close() } catch let error as StorageError where error.code == .inUse {
        try await Task.sleep(for: .milliseconds(10))
      }
    }
    try database.close()
  }

  @Test("they give what the synchronous runs give", arguments: someEngines)
  func results(_ engine: EngineName) async throws {
    try await withNumbers(engine) { database in
      let query = try database.query("SELECT n FROM _ WHERE n < $n ORDER BY n")
      func now() throws -> (QueryResults, String) {
        (try query.run(["n": 5]), try query.explain().description)
      }
      let (rows, plan) = try now()
      expect(rows.count, equals: 5)
      #expect(try await query.run(["n": 5]) == rows)
      #expect(try await query.run(as: Int.self, ["n": 5]) == [0, 1, 2, 3, 4])
      #expect(try await query.explain().description == plan)
      let count = Counter()
      try await query.forEach(["n": 50]) { _ in
        count.add()
        return count.value < 7
      }
      expect(count.value, equals: 7)
      await #expect(throws: QueryError.self) { try await query.run() }
      await #expect(throws: DecodingError.self) { try await query.run(as: String.self, ["n": 5]) }
      let plans = try database.query("EXPLAIN SELECT n FROM _")
      #expect(try await plans.run().columnNames == ["plan"])
      try await withThrowingTaskGroup(of: Int.self) { group in
        for number in 0..<40 { group.addTask { try await query.run(["n": number]).count } }
        let sum = try await group.reduce(0, +)
        expect(sum == (0..<40).reduce(0, +))
      }
    }
  }

  @Test("a cancelled task ends its run", arguments: someEngines)
  func cancelled(_ engine: EngineName) async throws {
    try await withNumbers(engine) { database in
      let query = try database.query(Self.long)
      let shared = QueryCancellation()
      // More than there are threads, so that some of them wait.
      let tasks = (0..<8).map { number in
        Task {
          switch number % 4 {
          case 0: _ = try await query.run(cancellation: shared)
          case 1: _ = try await query.run(as: Int.self)
          case 2: try await query.forEach { _ in true }
          default: _ = try await query.explain(analyze: true)
          }
        }
      }
      try await Task.sleep(for: .milliseconds(50))
      for task in tasks {
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
      }
      // The caller's cancellation isn't used up.
      expect(!shared.isCancelled)
      #expect(try await database.query("SELECT n FROM _ WHERE n < 2").run(cancellation: shared).count == 2)
    }
  }

  @Test("in a cancelled task nothing runs") func cancelledBefore() async throws {
    try await withNumbers(.sqlite) { database in
      let query = try database.query("SELECT n FROM _")
      let gate = CountingSemaphore()
      let task = Task.detached {
        gate.wait()
        return try await query.run().count
      }
      task.cancel()
      gate.signal()
      await #expect(throws: CancellationError.self) { try await task.value }
    }
  }

  @Test(
    "the caller's cancellation and the time limit end a run with their own errors", arguments: someEngines)
  func otherEnds(_ engine: EngineName) async throws {
    try await withNumbers(engine) { database in
      let cancellation = QueryCancellation()
      let query = try database.query(Self.long)
      let task = Task { try await query.run(cancellation: cancellation) }
      try await Task.sleep(for: .milliseconds(30))
      cancellation.cancel()
      let cancelled = await #expect(throws: QueryError.self) { try await task.value }
      expect(cancelled?.code, equals: .cancelled)
      let late = await #expect(throws: QueryError.self) {
        try await query.run(cancellation: QueryCancellation(timeLimit: .milliseconds(20)))
      }
      expect(late?.code, equals: .timedOut)
      let limited = try database.query(Self.long, options: Query.Options(timeLimit: .milliseconds(20)))
      let tooLong = await #expect(throws: QueryError.self) { try await limited.run() }
      expect(tooLong?.code == .timedOut && tooLong?.message.contains("0.02 seconds") == true)
    }
  }

  @Test("a closed database refuses them") func closed() async throws {
    let directory = TemporaryDirectory()
    let database = try Database.open("test", in: directory.path)
    let query = try database.query("SELECT 1 FROM _")
    try database.close()
    await #expect(throws: DatabaseError.self) { try await query.run() }
  }
}

/// A number that closures on other threads count up.
final class Counter: Sendable {
  private let count = Lock(0)
  var value: Int { count.withLock { $0 } }

  /// Adds one. The result fits a closure that takes all rows.
  @discardableResult
  func add() -> Bool {
    count.withLock { $0 += 1 }
    return true
  }
}
