import StorageConformance
import TestSupport
import Testing
import Touchstone

/// Queries of all documents: run, awaited, repeated, live.
@Suite struct AllDocumentsQueryTests {
  private let databases = TestDatabases()

  private func save(_ database: Database, _ ids: [String]) throws {
    for id in ids { try database.save(id, ["n": .string(id)]) }
  }

  /// Not the asynchronous one.
  private func run(_ query: AllDocumentsQuery) throws -> AllDocumentsResults { try query.run() }

  private func keys(_ query: AllDocumentsQuery) throws -> [String] { try run(query).map(\.key) }

  @Test(
    "a query has the rows of its selection and filter; skip and limit count what is left",
    arguments: someEngines)
  func rows(_ engine: EngineName) async throws {
    let database = try databases.open(engine)
    try save(database, ["c", "a", "d", "b"])
    try database.delete("d")
    var query = try database.allDocuments()
    try expect(keys(query), equals: ["a", "b", "c"])
    query.documents.order = .sequence
    try expect(keys(query), equals: ["c", "a", "b"])
    query.documents.mode = .includingDeleted
    query.documents.isDescending = true
    let awaited = try await query.run()
    expect(awaited.map(\.key), equals: ["d", "b", "a", "c"])
    expect(awaited[0].isDeleted && awaited.sequence == 5)
    query.filter = { row in !row.isDeleted }
    query.documents.skip = 1
    query.documents.limit = 1
    try expect(keys(query), equals: ["a"])
    query.documents.limit = 0
    try expect(keys(query), equals: [])
    query.documents = AllDocuments(keys: ["b", "none", "b"])
    try expect(run(query).map(\.documentID), equals: ["b", nil, "b"])
    struct Refused: Error {}
    query.filter = { _ in throw Refused() }
    #expect(throws: Refused.self) { try run(query) }
  }

  @Test("results know when they are stale, and equal those with the same revisions", arguments: someEngines)
  func stale(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try save(database, ["a", "b"])
    let query = try database.allDocuments()
    let first = try query.run()
    try expect(!first.isStale && first == query.run())
    try expect(query.runIfChanged(since: first.sequence) == nil)
    try database.save("a", ["n": 2])
    try expect(first.isStale)
    let second = try query.runIfChanged(since: first.sequence)
    expect(second != nil && second != first)
    try database.inBatch {
      try database.save("c", [:])
      try expect(query.run().count, equals: 3)
    }
  }

  @Test(
    "a live query tells of rows that changed, until it is cancelled", arguments: [EngineName.sqlite, .lmdb])
  func live(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    let heard = Lock<[[String]]>([])
    let query = try database.allDocuments(AllDocuments(prefix: "a"))
    let live = try database.observe(query, updateInterval: .milliseconds(1)) { outcome in
      let keys = (try? outcome.get())?.map(\.key) ?? ["error"]
      heard.withLock { $0.append(keys) }
    }
    eventually { heard.withLock { $0.last } == [] }
    try save(database, ["b", "a1"])
    eventually { heard.withLock { $0.last } == ["a1"] }
    try database.inBatch { try save(database, ["a3", "a2"]) }
    eventually { heard.withLock { $0.last } == ["a1", "a2", "a3"] }
    try database.purge("a2")
    eventually { heard.withLock { $0.last } == ["a1", "a3"] }
    live.cancel()
    let count = heard.withLock { $0.count }
    try save(database, ["a4"])
    try expect(query.run().count, equals: 3)
    expect(heard.withLock { $0.count }, equals: count)
  }

  @Test("a cancelled task ends its run") func cancelled() async throws {
    let database = try databases.open(.sqlite)
    try save(database, ["a"])
    let query = try database.allDocuments()
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
