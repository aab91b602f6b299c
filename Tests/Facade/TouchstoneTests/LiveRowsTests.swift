import Dispatch
import Foundation
import Storage
import TestSupport
import Testing
import Touchstone

/// What handlers got, in order.
private final class Told<Value: Sendable>: Sendable {
  private let values = Lock<[Value]>([])
  private let signal = CountingSemaphore()
  var all: [Value] { values.withLock { $0 } }

  func append(_ value: Value) {
    values.withLock { $0.append(value) }
    signal.signal()
  }

  /// Waits until `isLast` is true for the last value, at most 15 minutes: other tests may keep the cooperative pool busy.
  func wait(_ comment: Comment? = nil, until isLast: (Value) -> Bool) {
    let end = Date(timeIntervalSinceNow: 900)
    while !(all.last.map(isLast) ?? false), Date() < end { _ = signal.wait(seconds: 0.05) }
    expect(all.last.map(isLast), equals: true, comment)
  }

  /// The same without blocking a thread of the cooperative pool, which the handler may need.
  func arrived(_ comment: Comment? = nil, until isLast: (Value) -> Bool) async throws {
    let end = Date(timeIntervalSinceNow: 900)
    while !(all.last.map(isLast) ?? false), Date() < end { try await Task.sleep(for: .milliseconds(2)) }
    expect(all.last.map(isLast), equals: true, comment)
  }
}

/// A list that is changed as the differences say.
private final class LiveList: Sendable {
  private let names = Lock<[String]>([])
  var all: [String] { names.withLock { $0 } }

  func apply(_ changes: RowChanges) {
    names.withLock { names in
      expect(names.count, equals: changes.oldCount)
      changes.apply(to: &names) { $0["name"].string ?? "-" }
      expect(names, equals: changes.rows.map { $0["name"].string ?? "-" })
    }
  }
}

private actor Collector {
  private(set) var counts: [Int] = []
  func append(_ count: Int) { counts.append(count) }
}

/// Live queries on executors, and their differences.
@Suite("Live rows") struct LiveRowsTests {
  private static let text = "SELECT META().id AS id, name, n FROM _ WHERE n >= 0 ORDER BY n, id"

  private func open(_ engine: EngineName, _ directory: TemporaryDirectory) throws -> Database {
    try Database.open("test", in: directory.path, options: try options(engine))
  }

  private func save(_ database: Database, _ id: String, _ n: Int) throws {
    try database.save(id, ["name": .string("\(id)-\(n)"), "n": .int(Int64(n))])
  }

  @Test("the differences of each commit turn the list into the new rows", arguments: someEngines)
  func differences(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      let query = try database.query(Self.text)
      for number in 0..<3 { try save(database, "d\(number)", number) }
      let told = Told<RowChanges>()
      let live = try database.observeRows(of: query) { outcome in
        if case .success(let changes) = outcome { told.append(changes) }
      }
      told.wait { $0.inserted == [0, 1, 2] && $0.removed == [] && $0.oldCount == 0 }
      try save(database, "x", 1)
      told.wait { $0.inserted == [2] && $0.removed == [] && $0.moved == [] && $0.updated == [] }
      // It is updated and moves to the end.
      try save(database, "d0", 9)
      told.wait { changes in
        changes.moved.map { [$0.old, $0.new] } == [[0, 3]] && changes.updated == changes.moved
          && changes.inserted == [] && changes.removed == []
      }
      try database.delete("d1")
      told.wait { $0.removed == [0] && $0.inserted == [] && $0.moved == [] && $0.updated == [] }
      live.cancel()
    }
  }

  private func commit(_ database: Database, _ random: inout SeededGenerator) throws {
    try database.inBatch {
      for _ in 0..<Int.random(in: 1...5, using: &random) {
        let id = "d\(Int.random(in: 0..<12, using: &random))"
        if Int.random(in: 0..<4, using: &random) == 0 {
          try? database.purge(id)
        } else {
          try save(database, id, Int.random(in: -2..<10, using: &random))
        }
      }
    }
  }

  @Test("on any executor the list is that of the query", arguments: someEngines)
  func randomCommits(_ engine: EngineName) async throws {
    let seed = testSeed
    var random = SeededGenerator(seed: seed)
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    do {
      let query = try database.query(Self.text)
      func wantedNames() throws -> [String] { try query.run().map { $0["name"].string ?? "-" } }
      let queue = DispatchQueue(label: "list")
      let concurrent = DispatchQueue(label: "lists", attributes: .concurrent)
      let collector = Collector()
      let executors: [(String, CallbackExecutor)] = [
        ("background", .background), ("serial", CallbackExecutor { queue.async(execute: $0) }),
        ("concurrent", CallbackExecutor { concurrent.async(execute: $0) }),
        (
          "slow",
          CallbackExecutor { job in
            concurrent.asyncAfter(deadline: .now() + .milliseconds(3)) { job() }
          }
        ),
        ("thread", CallbackExecutor { job in Thread.detachNewThread { job() } }),
        ("inline", CallbackExecutor { $0() }), ("actor", CallbackExecutor(collector)),
        ("task", CallbackExecutor(globalConcurrentExecutor)),
      ]
      let lists = executors.map { _ in LiveList() }
      let told = executors.map { _ in Told<Int>() }
      let running = executors.map { _ in Lock(0) }
      let lives = try executors.indices.map { index in
        try database.observeRows(of: query, on: executors[index].1) { outcome in
          expect(
            running[index].withLock {
              $0 += 1; return $0
            }, equals: 1, "\(executors[index].0)")
          if case .success(let changes) = outcome {
            lists[index].apply(changes)
            told[index].append(changes.rows.count)
          }
          running[index].withLock { $0 -= 1 }
        }
      }
      for round in 0..<(isLong ? 300 : 30) {
        try commit(database, &random)
        guard round % 3 == 0 else { continue }
        let wanted = try wantedNames()
        for index in executors.indices {
          try await told[index].arrived("\(executors[index].0), round \(round), TOUCHSTONE_SEED=\(seed)") {
            _ in
            lists[index].all == wanted
          }
        }
      }
      for live in lives { live.cancel() }
    }
    try database.close()
  }

  @Test("after a cancel on the executor no call comes, and none before are lost or in disorder")
  func cancelling() throws {
    try withDatabase(.sqlite) { database in
      let query = try database.query("SELECT COUNT(*) AS n FROM _")
      for round in 0..<30 {
        let queue = DispatchQueue(label: "calls")
        let told = Told<Int64>()
        let isCancelled = Lock(false)
        let live = try database.observe(query, on: CallbackExecutor { queue.async(execute: $0) }) { outcome in
          expect(!isCancelled.withLock { $0 })
          if case .success(let rows) = outcome { told.append(rows[0]["n"].int ?? -1) }
        }
        for number in 0..<5 { try save(database, "r\(round)-\(number)", 1) }
        queue.sync {
          live.cancel()
          isCancelled.withLock { $0 = true }
        }
        try save(database, "r\(round)-last", 1)
        queue.sync {}
        let counts = told.all
        expect(counts == counts.sorted() && Set(counts).count == counts.count)
      }
    }
  }

  @Test("a handler on the main actor is called there", arguments: someEngines)
  func mainActor(_ engine: EngineName) async throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    let query = try database.query(Self.text)
    let (counts, told) = AsyncStream<Int>.makeStream()
    let (differences, toldChanges) = AsyncStream<Int>.makeStream()
    let live = try database.observe(query, on: MainActor.shared) { outcome in
      MainActor.assertIsolated()
      if case .success(let rows) = outcome { told.yield(rows.count) }
    }
    let rows = try database.observeRows(of: query, on: MainActor.shared) { outcome in
      MainActor.assertIsolated()
      if case .success(let changes) = outcome { toldChanges.yield(changes.inserted.count) }
    }
    var (count, change) = (counts.makeAsyncIterator(), differences.makeAsyncIterator())
    #expect(await count.next() == 0)
    #expect(await change.next() == 0)
    try save(database, "a", 1)
    #expect(await count.next() == 1)
    #expect(await change.next() == 1)
    live.cancel()
    rows.cancel()
    try database.close()
  }

  @Test("a slow executor gets the latest rows, and the differences from those it got") func slow() throws {
    try withDatabase(.sqlite) { database in
      let query = try database.query(Self.text)
      let gate = CountingSemaphore()
      let told = Told<RowChanges>()
      let live = try database.observeRows(
        of: query, on: CallbackExecutor { job in Thread.detachNewThread { job() } }
      ) { outcome in
        if case .success(let changes) = outcome { told.append(changes) }
        gate.wait()
      }
      told.wait { $0.rows.isEmpty }
      // The first call lasts until all of them are committed. Another live query tells when all are seen.
      let seen = Told<Int>()
      let other = try database.observe(query) { outcome in
        if case .success(let rows) = outcome { seen.append(rows.count) }
      }
      for number in 0..<10 { try save(database, "d\(number)", number) }
      seen.wait { $0 == 10 }
      // This query may have seen fewer yet, and tell of them in calls of their own.
      for _ in 0..<8 { gate.signal() }
      told.wait { $0.rows.count == 10 }
      var list: [String] = []
      for changes in told.all {
        expect(changes.oldCount, equals: list.count)
        changes.apply(to: &list) { $0["name"].string ?? "-" }
      }
      expect(list == (0..<10).map { "d\($0)-\($0)" } && told.all.count <= 4)
      live.cancel()
      other.cancel()
    }
  }

  @Test("a sequence of differences gives those from the last element", arguments: someEngines)
  func sequence(_ engine: EngineName) async throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    let query = try database.query(Self.text + " LIMIT $limit")
    try save(database, "a", 1)
    var list: [String] = []
    var counts: [Int] = []
    for try await changes in try database.rowChanges(of: query, parameters: ["limit": 100]) {
      expect(changes.oldCount, equals: list.count)
      changes.apply(to: &list) { $0["name"].string ?? "-" }
      counts.append(list.count)
      expect(list, equals: changes.rows.map { $0["name"].string ?? "-" })
      switch counts.count {
      case 1: try save(database, "b", 0)
      case 2:
        expect(changes.inserted, equals: [0])
        try save(database, "b", 5)
      case 3:
        expect(changes.moved.count == 1 && changes.updated.count == 1)
        try database.close()
      default: break
      }
    }
    expect(counts, equals: [1, 2, 2])
  }

  @Test("a cancelled task ends its streams and their live queries", arguments: someEngines)
  func cancelledTask(_ engine: EngineName) async throws {
    let directory = TemporaryDirectory()
    let database = try open(engine, directory)
    let query = try database.query(Self.text)
    let started = Told<Int>()
    let rows = Task {
      var count = 0
      for try await _ in try database.results(of: query) {
        count += 1
        started.append(count)
      }
      return count
    }
    let changes = Task {
      var count = 0
      for try await _ in try database.rowChanges(of: query) {
        count += 1
        started.append(count)
      }
      return count
    }
    try await started.arrived { _ in started.all.count == 2 }
    rows.cancel()
    changes.cancel()
    #expect(try await rows.value == 1)
    #expect(try await changes.value == 1)
    try database.close()
  }

  @Test("a run that takes too long is reported, or ends the stream") func timeLimit() async throws {
    let directory = TemporaryDirectory()
    let database = try open(.sqlite, directory)
    let query = try database.query(Self.text, options: Query.Options(timeLimit: .zero))
    let error = await #expect(throws: QueryError.self) {
      for try await _ in try database.rowChanges(of: query) {}
    }
    expect(error?.code, equals: .timedOut)
    let told = Told<QueryError.Code?>()
    let live = try database.observeRows(of: query) { outcome in
      if case .failure(let error) = outcome { told.append((error as? QueryError)?.code) }
    }
    told.wait { $0 == .timedOut }
    live.cancel()
    try database.close()
  }

  @Test("a key that is no column is refused") func noKey() throws {
    try withDatabase(.sqlite) { database in
      let query = try database.query("SELECT name FROM _")
      let error = #expect(throws: QueryError.self) { try database.observeRows(of: query) { _ in } }
      expect(error?.code == .unknownName && error?.message.contains("its columns are name") == true)
      #expect(throws: QueryError.self) { try database.rowChanges(of: query, key: "Name") }
      _ = try database.rowChanges(of: query, key: "name")
    }
  }

  @Test("parameters are of any type that has a JSON form") func parameters() async throws {
    let directory = TemporaryDirectory()
    let database = try open(.sqlite, directory)
    let date = Date(timeIntervalSince1970: 0)
    try database.save("a", ["d": JSONValue(date), "n": 1])
    let query = try database.query("SELECT META().id AS id FROM _ WHERE d >= $since AND n = $n")
    let told = Told<Int>()
    @Sendable func rows(_ outcome: LiveQuery.Outcome) { told.append((try? outcome.get().count) ?? -1) }
    @Sendable func changes(_ outcome: RowChanges.Outcome) {
      told.append((try? outcome.get().inserted.count) ?? -1)
    }
    let lives = [
      try database.observe(query, parameters: ["since": date, "n": 1]) { rows($0) },
      try database.observe(query, parameters: ["since": "1970", "n": 1]) { rows($0) },
      try database.observe(query, parameters: ["since": date, "n": 1], on: MainActor.shared) { rows($0) },
      try database.observe(query, parameters: ["since": "1970", "n": 1], on: MainActor.shared) { rows($0) },
      try database.observeRows(of: query, parameters: ["since": date, "n": 1]) { changes($0) },
      try database.observeRows(of: query, parameters: ["since": "1970", "n": 1]) { changes($0) },
      try database.observeRows(of: query, parameters: ["since": date, "n": 1], on: MainActor.shared) {
        changes($0)
      },
      try database.observeRows(of: query, parameters: ["since": "1970", "n": 1], on: MainActor.shared) {
        changes($0)
      },
    ]
    for try await rows in try database.results(of: query, parameters: ["since": date, "n": 1]) {
      expect(rows.count, equals: 1)
      break
    }
    for try await rows in try database.rowChanges(of: query, parameters: ["since": date, "n": 1]) {
      expect(rows.inserted, equals: [0])
      break
    }
    let end = Date(timeIntervalSinceNow: 900)
    while told.all.count < lives.count, Date() < end { try await Task.sleep(for: .milliseconds(5)) }
    expect(told.all, equals: lives.map { _ in 1 })
    for live in lives { live.cancel() }
    try database.close()
  }
}
