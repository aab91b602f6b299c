import TestSupport

@testable import Documents

/// Histories that reach further back than the document does here.
@Suite("The older part of a history is joined") struct JoinedHistoryTests {
  private let databases = TestDatabases()

  @discardableResult
  private func apply(_ database: Database, _ history: String..., deleted: Bool = false) throws -> Bool {
    try database.apply(
      PulledRevision(id: "a", history: history, isDeleted: deleted, body: ["from": .string(history[0])]))
  }

  private func revisions(_ database: Database) throws -> [String] {
    try database.revisions(of: "a")?.map { $0.id.description } ?? []
  }

  private func faults(_ database: Database) throws -> [String] {
    try storageFaults(database) + database.check(deep: true).map(\.description)
  }

  @Test("a document that began later gets its beginning", arguments: allEngines)
  func beginning(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try apply(database, "5-e")
    #expect(try apply(database, "6-f", "5-e", "4-d", "3-c"))
    #expect(try revisions(database) == ["6-f", "5-e", "4-d", "3-c"])
    #expect(try database.revisions(of: "a")?.map { $0.parent?.description } == ["5-e", "4-d", "3-c", nil])
    #expect(try database.lastSequence == 3)
    #expect(try database.changes().map(\.sequence) == [3])
    // What is older isn't a conflict, and isn't new.
    #expect(try !apply(database, "4-d", "3-c"))
    #expect(try database.document("a")?.isConflicted == false)
    #expect(try apply(database, "7-g", "6-f", "5-e", "4-d", "3-c"))
    #expect(try database.lastSequence == 4)
    // A branch from what was joined.
    #expect(try apply(database, "5-z", "4-d"))
    #expect(try database.leaves(of: "a").map(\.id.description) == ["7-g", "5-z"])
    #expect(try faults(database) == [])
  }

  @Test("a leaf that another one descends from is no conflict", arguments: allEngines, [true, false])
  func noConflict(_ engine: EngineName, _ keepsBodies: Bool) throws {
    let database = try databases.open(engine) { $0.keepsReplacedBodies = keepsBodies }
    try apply(database, "5-e")
    try apply(database, "3-c")
    try apply(database, "1-a")
    #expect(try database.document("a")?.isConflicted == true)
    try apply(database, "6-f", "5-e", "4-d", "3-c", "2-b", "1-a")
    #expect(try revisions(database) == ["6-f", "5-e", "4-d", "3-c", "2-b", "1-a"])
    #expect(try database.document("a")?.isConflicted == false)
    #expect(try database.document("a")?["from"].string == "6-f")
    let old = try database.revisions(of: "a")?.first { $0.id.description == "3-c" }
    let kept: JSONValue? = keepsBodies ? ["from": "3-c"] : nil
    #expect(old?.isLeaf == false && old?.body == kept)
    #expect(try faults(database) == [])
  }

  @Test("the current revision may turn out to be an ancestor", arguments: allEngines)
  func current(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try database.createIndex("from", on: ["`from`"])
    try apply(database, "5-e", deleted: true)
    try apply(database, "3-c")
    try apply(database, "3-x", "2-y")
    #expect(try database.document("a")?.revisionID.description == "3-x")
    try apply(database, "6-f", "5-e", "4-d", "3-x", "2-y", deleted: true)
    #expect(try database.document("a")?.revisionID.description == "3-c")
    #expect(try database.leaves(of: "a", includeDeleted: true).map(\.id.description) == ["3-c", "6-f"])
    #expect(try faults(database) == [])
    try apply(database, "4-k", "3-c", deleted: true)
    #expect(try database.document("a") == nil)
    #expect(try faults(database) == [])
  }

  @Test("a resolver is asked, and what lost may have no branch to end", arguments: allEngines)
  func resolved(_ engine: EngineName) throws {
    let database = try databases.open(engine)
    try apply(database, "5-e", deleted: true)
    try apply(database, "3-c")
    let revision = PulledRevision(
      id: "a", history: ["6-f", "5-e", "4-d", "3-c"], isDeleted: false, body: ["from": "6-f"])
    try database.apply(revision, resolvingWith: ClosureConflictResolver { _ in .remote })
    #expect(try database.leaves(of: "a", includeDeleted: true).map(\.id.description) == ["6-f"])
    #expect(try faults(database) == [])
  }

  @Test("what pruning would remove isn't joined", arguments: allEngines)
  func pruned(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.maximumTreeDepth = 5 }
    func history(_ newest: Int) -> [String] { (1...newest).reversed().map { "\($0)-a\($0 % 10)" } }
    for newest in 1...12 {
      try database.apply(PulledRevision(id: "a", history: history(newest), isDeleted: false, body: [:]))
      #expect(try database.lastSequence == UInt64(newest))
    }
    #expect(try revisions(database) == Array(history(12).prefix(5)))
    // With conflicts each branch has its depth.
    try apply(database, "12-b", "11-b")
    try database.apply(PulledRevision(id: "a", history: history(13), isDeleted: false, body: [:]))
    #expect(try database.lastSequence == 14)
    try apply(database, "13-b", "12-b", "11-b", "10-b", "9-b", "8-b")
    #expect(try revisions(database).filter { $0.hasSuffix("b") } == ["13-b", "12-b", "11-b", "10-b", "9-b"])
    #expect(try faults(database) == [])
  }

  @Test("deep histories too", arguments: allEngines)
  func deep(_ engine: EngineName) throws {
    let database = try databases.open(engine) { $0.maximumTreeDepth = 1_000 }
    func history(_ newest: Int, _ oldest: Int) -> [String] {
      (oldest...newest).reversed().map { "\($0)-a\($0 % 10)" }
    }
    func add(_ newest: Int, _ oldest: Int) throws {
      try database.apply(
        PulledRevision(id: "a", history: history(newest, oldest), isDeleted: false, body: [:]))
    }
    try add(300, 300)
    for newest in 301...400 { try add(newest, newest - 1) }
    #expect(try revisions(database).count == 101)
    let last = try database.lastSequence
    try add(401, 150)
    #expect(try revisions(database) == history(401, 150))
    #expect(try database.lastSequence == last + 2)
    try add(402, 150)
    #expect(try database.lastSequence == last + 3)
    #expect(try faults(database) == [])
  }
}
