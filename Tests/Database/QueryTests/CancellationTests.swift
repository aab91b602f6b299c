import TestSupport

@testable import Query
@testable import Touchstone

/// Runs that are cancelled, or have a time limit, end inside of a row.
@Suite struct CancellationTests {
  /// Each takes minutes for its one row.
  private static let longRows = [
    "SELECT 1 FROM _ WHERE ANY a IN l SATISFIES ANY b IN l SATISFIES ANY c IN l SATISFIES a + b + c = -1 END END END",
    "SELECT 1 FROM _ WHERE EVERY a IN l SATISFIES EVERY b IN l SATISFIES a + b + 9000 NOT IN l END END",
    "SELECT 1 FROM _ WHERE ANY a IN l SATISFIES REGEXP_LIKE(REPEAT('a', 40), '^(a+)+#' || TOSTRING(a)) END",
    "SELECT COUNT(*) FROM _ AS d UNNEST d.l AS x UNNEST d.l AS y UNNEST d.l AS z WHERE x + y + z = -1",
    "SELECT 1 FROM _ WHERE ANY a IN l SATISFIES LENGTH(REPLACE(REPEAT('ab', 8000000), 'a', TOSTRING(a))) = 1 END",
    "SELECT 1 FROM _ WHERE ANY a IN l SATISFIES ARRAY_LENGTH(SPLIT(REPEAT('ab', 100000 + a), '')) = 1 END",
    "SELECT ARRAY_AGG(x) FROM _ AS d UNNEST d.l AS x UNNEST d.l AS y UNNEST d.l AS z GROUP BY x + y + z",
  ]

  private func withRow(_ engine: EngineName, _ body: (Database) throws -> Void) throws {
    try withDatabase(engine) { database in
      try database.save("d", ["l": .array((0..<3_000).map { .int(Int64($0)) }), "s": "text"])
      try body(database)
    }
  }

  @Test("a time limit ends a row that takes minutes", arguments: someEngines)
  func timeLimit(_ engine: EngineName) throws {
    try withRow(engine) { database in
      for text in Self.longRows {
        let query = try database.query(text)
        let begin = ContinuousClock.now
        let error = #expect(throws: QueryError.self, "\(text)") {
          try query.run(cancellation: QueryCancellation(timeLimit: .milliseconds(20)))
        }
        expect(error?.code == .timedOut && error?.message.contains("0.02 seconds") == true, "\(text)")
        // They would take minutes. What is measured besides the limit is how busy the machine is.
        expect(begin.duration(to: .now) < .seconds(20), "\(text)")
        // The query can be run again.
        #expect(throws: QueryError.self) {
          try query.run(cancellation: QueryCancellation(timeLimit: .zero))
        }
      }
      let quick = try database.query("SELECT s FROM _ WHERE ANY a IN l SATISFIES a = 2999 END")
      try expect(quick.run(cancellation: QueryCancellation(timeLimit: .seconds(1_000_000))).count, equals: 1)
    }
  }

  @Test("cancelling from another thread ends a row that takes minutes", arguments: someEngines)
  func cancelling(_ engine: EngineName) throws {
    try withRow(engine) { database in
      let query = try database.query(Self.longRows[0])
      let cancellation = QueryCancellation()
      let started = CountingSemaphore()
      try onThreads(2) { thread in
        if thread == 0 {
          started.signal()
          let code = try queryCode { _ = try query.run(cancellation: cancellation) }
          guard code == .cancelled else { throw ConformanceFailure("\(code as Any)") }
        } else {
          started.wait()
          cancellation.cancel()
        }
      }
    }
  }

  /// Loops that one evaluation goes through: each asks before it is done.
  @Test(arguments: [
    "ANY a IN l SATISFIES a = -1 END", "EVERY a IN l SATISFIES a > -1 END", "-1 IN l",
    "REGEXP_LIKE(long, 'b$')", "REGEXP_CONTAINS(REPEAT('a', 40), '^(a+)+#')", "REGEXP_POSITION(long, 'b')",
    "REGEXP_REPLACE(long, 'b', 'c')", "REPLACE(long, 'a', 'b')", "SPLIT(long, '')", "SPLIT(long, 'a')",
    "SPLIT(words)", "long LIKE '%' || REPEAT('a_', 500) || 'b%'",
  ]) func loops(_ text: String) throws {
    let long = String(repeating: "a", count: 200_000)
    let harness = try EvaluationHarness(
      #"{"l":[1,2,3,4],"long":"\#(long)","words":"\#(String(repeating: "a ", count: 500))"}"#)
    let cancellation = QueryCancellation()
    cancellation.cancel()
    try expect(
      queryCode { _ = try harness.evaluate(text, cancellation: cancellation) }, equals: .cancelled, "\(text)")
  }

  @Test("a sort that is cancelled gives no row", arguments: someEngines)
  func sorting(_ engine: EngineName) throws {
    try withDatabase(engine) { database in
      try database.fill((0..<300).map { ("d\($0)", #"{"n":\#($0 * 7919 % 300)}"#) })
      // The last row that is looked at cancels: what is left is to sort. No row is given afterwards, at which it could be
      // asked as well.
      let cancellation = QueryCancellation()
      let query = try database.query("SELECT n FROM _ ORDER BY n")
      var given = 0
      try database.read { snapshot in
        let planning = try PlanningContext(database.querySource.knowledge.of(snapshot), usesIndexes: false)
        let compiled = try CompiledQuery(
          Planner.plan(
            NameResolver.resolve(
              SelectStatement(parsing: "SELECT n FROM _ ORDER BY n OFFSET 300"), databaseName: "test",
              text: nil), planning),
          planning)
        let context = try EvaluationContext(compiled.program, sources: 1, slots: compiled.slotCount)
        try context.begin(snapshot.sharedKeys)
        context.begin(cancellation, QueryMemoryBudget(limit: .max))
        let sink = SortingSink(
          compiled, context, try RowWindow(compiled, context),
          .receiver { _ in
            given += 1
            return true
          })
        try snapshot.forEachDocument { view in
          context.rows[0] = try SourceRow(view)
          return try sink.row()
        }
        cancellation.cancel()
        try expect(queryCode { _ = try sink.finish() }, equals: .cancelled)
      }
      expect(given, equals: 0)
      try expect(query.run().count, equals: 300)
    }
  }

  /// They are made of a list before anything is read, at which it could be cancelled as well.
  @Test("ranges of keys that a list makes can be cancelled", arguments: someEngines)
  func lists(_ engine: EngineName) throws {
    try withRow(engine) { database in
      try database.fill((0..<1_000).map { ("d\($0)", #"{"n":"\#($0)"}"#) })
      try database.createIndex("byN", on: ["n"])
      for condition in ["n IN $list", "META().id IN $list"] {
        try database.read { snapshot in
          let planning = try PlanningContext(database.querySource.knowledge.of(snapshot), usesIndexes: true)
          let statement = try SelectStatement(parsing: "SELECT s FROM _ WHERE \(condition)")
          let compiled = try CompiledQuery(
            Planner.plan(
              NameResolver.resolve(statement, databaseName: "test", text: nil), planning), planning)
          let context = try EvaluationContext(compiled.program, sources: 1, slots: compiled.slotCount)
          try context.begin(snapshot.sharedKeys)
          try context.bind(["list": .array((0..<10).map { .string("key\($0)") })])
          let ranges = KeyRanges(context: context)
          func made() throws -> Int {
            switch compiled.steps[0].access {
            case .index(let access): try ranges.ofIndex(access.ranges.lists).count
            case .identifiers(let lists, _): try ranges.ofIdentifiers(lists).count
            default: 0
            }
          }
          let cancellation = QueryCancellation()
          context.begin(cancellation, QueryMemoryBudget(limit: .max))
          try expect(made(), equals: 10, "\(condition)")
          cancellation.cancel()
          try expect(queryCode { _ = try made() }, equals: .cancelled, "\(condition)")
        }
      }
    }
  }

  @Test("constants that take long are left for the rows, where they can be cancelled", arguments: someEngines)
  func constants(_ engine: EngineName) throws {
    try withRow(engine) { database in
      let slow = (0..<200).map { "LENGTH(REPLACE(REPEAT('ab', 8000000), 'a', 'c\($0)'))" }.joined(
        separator: ", ")
      let pattern = (0..<100).map { "REGEXP_LIKE(REPEAT('a', 40), '^(a+)+#\($0)')" }.joined(separator: ", ")
      for text in ["SELECT \(slow)", "SELECT \(pattern)", "SELECT 1 FROM _ WHERE s IN [\(pattern)]"] {
        let begin = ContinuousClock.now
        let query = try database.query(text)
        let code = try queryCode {
          _ = try query.run(cancellation: QueryCancellation(timeLimit: .milliseconds(20)))
        }
        expect(code, equals: .timedOut)
        expect(begin.duration(to: .now) < .seconds(isSanitized ? 200 : 20))
      }
      try expect(
        database.query("SELECT LENGTH(REPEAT('ab', 5000000)) AS n").run()[0]["n"].int, equals: 10_000_000)
    }
  }
}
