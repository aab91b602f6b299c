import TestSupport
import Touchstone

@testable import Query

/// CREATE INDEX, DROP INDEX and BUILD INDEX.
@Suite struct IndexStatementTests {
  private let databases = TestDatabases()

  private func told(_ results: ChangeResults) -> [String] {
    results.indexes.map { "\($0.kind.rawValue) \($0.name)" }
  }

  /// Statements, and the definitions of the indexes that they make.
  @Test(arguments: [
    ("CREATE INDEX i ON _ (type)", "type"),
    ("create index i on _default(type ASC, LOWER(name) desc) using gsi", "type, LOWER(name)"),
    ("CREATE INDEX i ON _ (type INCLUDE MISSING) WHERE stars > 1;", "type WHERE stars > 1"),
    ("CREATE INDEX i IF NOT EXISTS ON _ (type) WITH {\"defer_build\": true}", "type"),
    ("CREATE INDEX IF NOT EXISTS i ON _ (META().id)", "META().id"),
    ("CREATE INDEX i ON _ (DISTINCT ARRAY s.d FOR s IN stops END)", "s.d UNNEST stops AS s"),
    ("CREATE INDEX i ON _ (ALL ARRAY s.d FOR s IN stops END, type)", "s.d, type UNNEST stops AS s"),
    ("CREATE INDEX i ON _ (DISTINCT likes)", "likes UNNEST likes AS likes"),
    ("CREATE INDEX i ON _ (type, all)", "type, `all`"),
  ])
  func createsAnIndex(_ statement: String, _ definition: String) throws {
    let database = try databases.open(.lmdb)
    try database.fill(smallWorld)
    let results = try database.execute(statement)
    expect(told(results), equals: ["created i"])
    try expect(database.indexes.map(\.text), equals: [definition])
    let printed = try QueryStatement(parsing: statement).description
    try expect(QueryStatement(parsing: printed) == QueryStatement(parsing: statement), "\(printed)")
    // Queries use it, and documents that come later are in it.
    if definition == "type" {
      let query = try database.query("SELECT RAW META().id FROM _ WHERE type = 'hotel'")
      try expect(query.explain().description.contains("Index i"))
      try database.execute("INSERT INTO _ VALUES ('new', {\"type\": 'hotel'})")
      try expect(query.run().count, equals: 4)
    }
  }

  @Test func anIndexThatExistsStays() throws {
    let database = try databases.open(.sqlite)
    try database.execute("CREATE INDEX i ON _ (a)")
    let error = #expect(throws: QueryError.self) { try database.execute("CREATE INDEX i ON _ (b)") }
    expect(error?.code, equals: .index)
    let again = try database.execute("CREATE INDEX i IF NOT EXISTS ON _ (b)")
    expect(told(again), equals: ["unchanged i"])
    try expect(database.indexes.map(\.text), equals: ["a"])
    try expect(
      told(database.execute("CREATE PRIMARY INDEX ON _")),
      equals: ["unchanged #primary"])
    try expect(
      told(database.execute("BUILD INDEX ON _ (i)")), equals: ["unchanged i"])
  }

  @Test func drops() throws {
    let database = try databases.open(.sqlite)
    for statement in ["DROP INDEX i ON _", "DROP INDEX _.i", "DROP INDEX i IF EXISTS ON _ USING GSI"] {
      try database.createIndex("i", on: ["a"])
      let results = try database.execute(statement)
      expect(told(results), equals: ["dropped i"])
      try expect(database.indexes.isEmpty)
    }
    try expect(
      told(database.execute("DROP INDEX i IF EXISTS ON _")), equals: ["unchanged i"])
    for statement in ["DROP INDEX i ON _", "BUILD INDEX ON _ (i)", "DROP PRIMARY INDEX ON _"] {
      let error = #expect(throws: QueryError.self) { try database.execute(statement) }
      expect(error?.code, equals: .index, "\(statement)")
    }
  }

  @Test func aDryRunAndAFailedBatchLeaveNothing() throws {
    let database = try databases.open(.lmdb)
    let results = try database.execute("CREATE INDEX i ON _ (a)", isDryRun: true)
    expect(told(results), equals: ["created i"])
    try expect(database.indexes.isEmpty)
    struct Stop: Error {}
    #expect(throws: Stop.self) {
      try database.inBatch {
        try database.execute("CREATE INDEX i ON _ (a)")
        throw Stop()
      }
    }
    try expect(database.indexes.isEmpty)
  }

  @Test(arguments: [
    ("CREATE INDEX i ON other (a)", QueryError.Code.unknownName, 19),
    ("CREATE INDEX i ON _ ()", .syntax, 22), ("CREATE INDEX ON _ (a)", .syntax, 14),
    ("CREATE INDEX i ON _ (a) PARTITION BY HASH(a)", .unsupported, 25),
    ("CREATE INDEX i ON _ (a) WITH {\"num_replica\": 1}", .unsupported, 30),
    ("CREATE INDEX i ON _ (DISTINCT ARRAY v FOR v IN a WHEN v > 1 END)", .unsupported, 22),
    ("CREATE INDEX i ON _ (DISTINCT a, DISTINCT b)", .unsupported, 34),
    ("DROP INDEX i", .syntax, 13), ("BUILD INDEX ON _ i", .syntax, 18),
    ("CREATE INDEX i ON _ (a) x", .syntax, 25),
  ])
  func mistakesHaveAPlace(_ statement: String, _ code: QueryError.Code, _ column: Int) throws {
    let database = try databases.open(.sqlite)
    let error = #expect(throws: QueryError.self) { try database.execute(statement) }
    expect(error?.code, equals: code)
    expect(error?.column, equals: column)
  }

  @Test func onlyExecuteTakesThem() throws {
    let database = try databases.open(.sqlite)
    let error = #expect(throws: QueryError.self) { _ = try database.query("CREATE INDEX i ON _ (a)") }
    expect(error?.code, equals: .invalidUse)
    expect(GivenStatement("DROP INDEX i ON _").changes)
    expect(!GivenStatement("SELECT 1").changes)
  }
}
