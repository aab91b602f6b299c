import Fleece
import Storage
import TestSupport
import Testing

@testable import Query
@testable import Touchstone

/// Limits of rows and time, and the name of a star's column.
@Suite("Options of queries") struct QueryOptionsTests {
  private func withNumbers(_ engine: EngineName, _ body: (Database) throws -> Void) throws {
    try withDatabase(engine) { database in
      try database.fill((0..<100).map { ("d\(100 + $0)", #"{"n":\#($0),"k":\#($0 % 10),"l":[1,2]}"#) })
      try database.createIndex("n", on: ["n", "k"])
      try body(database)
    }
  }

  private func code(_ body: () throws -> Void) throws -> QueryError.Code? {
    try thrown(QueryError.self, by: body)?.code
  }

  @Test("more rows than the limit are an error that names the limit", arguments: someEngines)
  func rowLimit(_ engine: EngineName) throws {
    try withNumbers(engine) { database in
      // The texts, each with the number of its rows.
      let queries = [
        ("SELECT n FROM _", 100), ("SELECT n, k FROM _ WHERE n >= 0", 100),
        ("SELECT n FROM _ ORDER BY n", 100),
        ("SELECT n FROM _ ORDER BY k DESC, n", 100), ("SELECT DISTINCT k FROM _", 10),
        ("SELECT DISTINCT k FROM _ ORDER BY k", 10), ("SELECT k, COUNT(*) FROM _ GROUP BY k", 10),
        ("SELECT k, COUNT(*) AS c FROM _ GROUP BY k ORDER BY c, k", 10), ("SELECT COUNT(*) FROM _", 1),
        ("SELECT n FROM _ LIMIT 30 OFFSET 20", 30), ("SELECT n FROM _ ORDER BY k LIMIT 30 OFFSET 90", 10),
        ("SELECT x FROM _ AS d UNNEST d.l AS x", 200),
        ("SELECT n FROM _ WHERE EXISTS (SELECT 1 FROM _)", 100),
        ("SELECT a.n FROM _ AS a JOIN _ AS b ON b.n = a.n", 100), ("SELECT 1", 1),
        ("SELECT n FROM _ LIMIT 0", 0),
      ]
      for (text, count) in queries {
        func query(_ limit: Int?) throws -> Query {
          try database.query(text, options: Query.Options(rowLimit: limit))
        }
        let all = try query(nil).run()
        expect(all.count, equals: count, "\(text)")
        for limit in [count, count + 1, .max] {
          try expect(query(limit).run(), equals: all, "\(text)")
          var rows = 0
          try query(limit).forEach { _ in
            rows += 1
            return true
          }
          expect(rows, equals: count, "\(text)")
        }
        guard count > 0 else { continue }
        for limit in Set([0, count / 2, count - 1]) {
          let error = #expect(throws: QueryError.self, "\(text)") { try query(limit).run() }
          expect(error?.code == .rowLimit && error?.message.contains("row limit of \(limit);") == true)
          var rows = 0
          try expect(
            code {
              try query(limit).forEach { _ in
                rows += 1
                return true
              }
            }, equals: .rowLimit, "\(text)")
          expect(rows, equals: limit, "\(text)")
          // Who stops by himself gets no error.
          rows = 0
          if limit > 0 {
            try query(limit).forEach { _ in
              rows += 1
              return rows < limit
            }
            expect(rows, equals: limit)
          }
          try expect(query(limit).explain(analyze: true).description.isEmpty, equals: false)
        }
      }
      expect(Query.Options(rowLimit: -1).rowLimit, equals: 0)
      var options = Query.Options()
      options.rowLimit = -5
      expect(options.rowLimit, equals: 0)
    }
  }

  private static let long =
    "SELECT COUNT(*) FROM _ AS a JOIN _ AS b ON a.n != b.n JOIN _ AS c ON c.n != a.n JOIN _ AS d ON d.n + c.n + a.n + b.n = -1"

  @Test("a run that takes longer than the limit ends", arguments: someEngines)
  func timeLimit(_ engine: EngineName) throws {
    try withNumbers(engine) { database in
      let query = try database.query(Self.long, options: Query.Options(timeLimit: .milliseconds(30)))
      for _ in 0..<3 {
        let error = #expect(throws: QueryError.self) { try query.run() }
        expect(error?.code == .timedOut && error?.message.contains("0.03 seconds") == true)
      }
      try expect(code { try query.forEach { _ in true } }, equals: .timedOut)
      try expect(code { _ = try query.explain(analyze: true) }, equals: .timedOut)
      // The caller's own limit and cancellation end it as well, each with its own error.
      let patient = try database.query(Self.long, options: Query.Options(timeLimit: .seconds(3_600)))
      let own = #expect(throws: QueryError.self) {
        try patient.run(cancellation: QueryCancellation(timeLimit: .milliseconds(20)))
      }
      expect(own?.code == .timedOut && own?.message.contains("0.02 seconds") == true)
      let cancelled = QueryCancellation()
      cancelled.cancel()
      try expect(code { _ = try patient.run(cancellation: cancelled) }, equals: .cancelled)
      // The limit counts from the start of each run.
      let quick = try database.query("SELECT n FROM _", options: Query.Options(timeLimit: .seconds(3_600)))
      for _ in 0..<100 { try expect(quick.run().count, equals: 100) }
      let none = try database.query("SELECT n FROM _", options: Query.Options(timeLimit: .zero))
      try expect(code { _ = try none.run() }, equals: .timedOut)
    }
  }

  @Test("many limits at once end their runs, each by its own time") func manyLimits() throws {
    try withNumbers(.sqlite) { database in
      let query = try database.query(Self.long)
      try onThreads(8) { number in
        let cancellation = QueryCancellation(timeLimit: .milliseconds(20 + 10 * ((number * 5) % 8)))
        let quick = QueryCancellation(timeLimit: .seconds(100 + number))
        #expect(throws: QueryError.self) { try query.run(cancellation: cancellation) }
        expect(!quick.isCancelled)
      }
    }
  }

  @Test("the column of a star has the name of the source, or of the database") func starNames() throws {
    try withNumbers(.sqlite) { database in
      for (text, source, named) in [
        ("SELECT * FROM _", ["_"], ["test"]), ("SELECT * FROM test", ["test"], ["test"]),
        ("SELECT * FROM _default", ["_default"], ["test"]), ("SELECT _.* FROM _", ["_"], ["test"]),
        ("SELECT * FROM _ AS d", ["d"], ["d"]), ("SELECT d.* FROM _ AS d", ["d"], ["d"]),
        ("SELECT * AS x FROM _", ["x"], ["x"]),
        ("SELECT n AS test, * FROM _", ["test", "_"], ["test", "test #2"]),
        ("SELECT META().id, * FROM _", ["id", "_"], ["id", "test"]),
        ("SELECT * FROM _ AS a JOIN _ AS b ON a.n = b.n", ["a", "b"], ["a", "b"]),
        ("SELECT * FROM _ UNNEST l AS x", ["_", "x"], ["test", "x"]),
        ("SELECT COUNT(*) FROM _", ["$1"], ["$1"]),
      ] {
        try expect(database.query(text).columnNames, equals: source, "\(text)")
        let query = try database.query(text, options: Query.Options(starColumnName: .databaseName))
        expect(query.columnNames, equals: named, "\(text)")
        try expect(query.run().columnNames, equals: named, "\(text)")
      }
      let built = try database.query(
        Query.select(.all()).from(), options: Query.Options(starColumnName: .databaseName))
      expect(built.columnNames, equals: ["test"])
    }
  }

  @Test("queries without options have those of their open", arguments: someEngines)
  func defaults(_ engine: EngineName) throws {
    let directory = TemporaryDirectory()
    var options = try options(engine)
    options.queryOptions = Query.Options(rowLimit: 1, starColumnName: .databaseName)
    let limited = try Database.open("test", in: directory.path, options: options)
    try limited.fill([("a", "{}"), ("b", "{}")])
    // Another open of the same path may have others.
    options.queryOptions = Query.Options()
    let free = try Database.open("test", in: directory.path, options: options)
    try expect(code { _ = try limited.query("SELECT * FROM _").run() }, equals: .rowLimit)
    try expect(limited.query("SELECT * FROM _").columnNames, equals: ["test"])
    try expect(limited.query("SELECT * FROM _", options: Query.Options()).run().count, equals: 2)
    try expect(free.query("SELECT * FROM _").run().count, equals: 2)
    try expect(
      code { try limited.write { transaction in _ = try transaction.query("SELECT 1 FROM _").run() } },
      equals: .rowLimit)
    try limited.close()
    try free.close()
  }
}
