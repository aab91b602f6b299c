import TestSupport

@testable import Query
@testable import Touchstone

/// Queries whose size is beyond what may be prepared are refused, and not tried.
@Suite struct QuerySizeTests {
  private let databases = TestDatabases()

  private func code(_ text: String, _ database: Database) -> QueryError.Code? {
    do {
      _ = try database.query(text)
      return nil
    } catch { return (error as? QueryError)?.code }
  }

  /// `first`, and names each of which stands for what the one before does, twice or with one more level.
  private func chain(
    _ count: Int, _ first: String, _ step: (String) -> String, _ binding: (String, String) -> String
  )
    -> String
  {
    (0...count).map { binding("a\($0)", $0 == 0 ? first : step("a\($0 - 1)")) }.joined(separator: ", ")
  }

  @Test("names that double each other") func doubling() throws {
    let database = try databases.open(.lmdb)
    try database.save("d", ["n": 1])
    func twice(_ name: String) -> String { "\(name) + \(name)" }
    for (count, wanted) in [(10, nil), (60, .tooLarge)] as [(Int, QueryError.Code?)] {
      let with = "WITH \(chain(count, "1", twice) { "\($0) AS (\($1))" }) SELECT RAW a\(count) FROM _"
      let letting =
        "SELECT RAW a\(count) FROM _ GROUP BY n LETTING "
        + chain(count, "COUNT(*)", twice) { "\($0) = \($1)" }
      let lets = "SELECT RAW a\(count) FROM _ LET " + chain(count, "n", twice) { "\($0) = \($1)" }
      let inner =
        "SELECT RAW (SELECT RAW a\(count)) FROM _ LET " + chain(count, "n", twice) { "\($0) = \($1)" }
      for text in [with, letting, lets, inner] {
        expect(code(text, database), equals: wanted, "\(text.prefix(60))")
        guard wanted == nil else { continue }
        let row = try #require(try database.query(text).run().first)
        try expect(row[0][text == inner ? 0 : -1].int ?? row[0].int, equals: 1_024)
      }
    }
  }

  @Test("names that nest in each other") func nesting() throws {
    let database = try databases.open(.lmdb)
    for (count, wanted) in [(150, nil), (250, .tooDeep), (5_000, .tooDeep)] as [(Int, QueryError.Code?)] {
      let lets = chain(count, "n", { "\($0) + 1" }) { "\($0) = \($1)" }
      expect(code("SELECT a\(count) FROM _ LET \(lets)", database), equals: wanted)
      let with = chain(count, "1", { "\($0) + 1" }) { "\($0) AS (\($1))" }
      expect(code("WITH \(with) SELECT a\(count) FROM _", database), equals: wanted)
    }
  }

  @Test("sources") func sources() throws {
    let database = try databases.open(.lmdb)
    try database.save("d", ["n": 1, "l": [1]])
    for (count, wanted) in [(99, nil), (100, .tooLarge), (20_000, .tooLarge)] as [(Int, QueryError.Code?)] {
      let names = (0..<count).map { "a\($0)" }
      for sources in [
        names.map { ", [1] AS \($0)" }, names.map { " JOIN _ AS \($0) ON \($0).n = a.n" },
        names.map { " UNNEST a.l AS \($0)" }, names.map { " NEST _ AS \($0) ON \($0).n = a.n" },
      ] {
        let text = "SELECT RAW 1 FROM _ AS a" + sources.joined()
        expect(code(text, database), equals: wanted, "\(text.prefix(60))")
        if wanted == nil { try expect(database.query(text).run().count, equals: 1) }
      }
      // Values that aren't cheap are computed once, like sources.
      let lets = names.map { "\($0) = (SELECT RAW n)" }.joined(separator: ", ")
      expect(code("SELECT RAW 1 FROM _ AS a LET \(lets)", database), equals: wanted)
    }
  }

  @Test("terms of GROUP BY and windows") func terms() throws {
    let database = try databases.open(.lmdb)
    try database.save("d", ["n": 1])
    for (count, wanted) in [(500, nil), (501, .tooLarge), (20_000, .tooLarge)] as [(Int, QueryError.Code?)] {
      let terms = (0..<count).map { "n + \($0)" }.joined(separator: ", ")
      expect(code("SELECT COUNT(*) FROM _ GROUP BY \(terms)", database), equals: wanted)
      let calls = (0..<count).map { "SUM(n) OVER (ORDER BY n + \($0))" }.joined(separator: ", ")
      expect(code("SELECT \(calls) FROM _", database), equals: wanted)
    }
    // A window with a name is as large as it is often used.
    let large = (0..<5_000).map { "n + \($0)" }.joined(separator: ", ")
    let uses = (0..<450).map { _ in "SUM(n) OVER w" }.joined(separator: ", ")
    expect(code("SELECT \(uses) FROM _ WINDOW w AS (ORDER BY \(large))", database), equals: .tooLarge)
  }

  @Test("words and values") func words() throws {
    let database = try databases.open(.lmdb)
    let ones = String(repeating: "1,", count: 260_000)
    expect(code("SELECT RAW 1 IN (\(ones)1)", database), equals: .tooLarge)
    expect(code("[\"AND\",\(String(repeating: "true,", count: 510_000))true]", database), equals: .tooLarge)
    let list = JSONValue.array((0..<300_000).map { .int($0) })
    let row = try #require(try database.query("SELECT RAW 299999 IN $list").run(["list": list]).first)
    expect(row[0].bool, equals: true)
  }

  @Test("values that hold the same parts many times") func sharedParts() throws {
    let database = try databases.open(.lmdb)
    try database.save("d", ["n": 1])
    let cube = "ARRAY_REPEAT(ARRAY_REPEAT(ARRAY_REPEAT(n, 1000), 1000), 1000)"
    let texts = "ARRAY_REPEAT(REPEAT('x', 16000000), 1000)"
    // Each name has the one before twice. What isn't cheap is computed once for each row.
    let doubled =
      "LET a0 = (SELECT RAW [n, n])[0], "
      + (1...60).map { "a\($0) = (SELECT RAW [a\($0 - 1), a\($0 - 1)])[0]" }.joined(separator: ", ")
    for text in [
      "SELECT RAW \(cube) FROM _", "SELECT RAW ENCODED_SIZE(\(cube)) FROM _",
      "SELECT RAW 2 WITHIN \(cube) FROM _",
      "SELECT RAW \(cube) = \(cube) FROM _", "SELECT COUNT(*) FROM _ GROUP BY \(cube)",
      "SELECT n FROM _ ORDER BY \(cube)", "SELECT RAW ARRAY_LENGTH(ARRAY_FLATTEN(\(cube), 9)) FROM _",
      "SELECT RAW \(texts) FROM _", "SELECT RAW ENCODED_SIZE({'a': \(texts)}) FROM _",
      "SELECT RAW ENCODED_SIZE(SUFFIXES(REPEAT('x', 1000000))) FROM _",
      "SELECT RAW MASK(REPEAT('x', 10000000), {'mask': REPEAT('*', 10000000)}) FROM _",
      "SELECT RAW ARRAY_LENGTH(a60) FROM _ \(doubled)",
      "SELECT RAW ARRAY_REPEAT(\(cube.replacing("n", with: "1")), 2)",
    ] {
      let error = try thrown(QueryError.self) { _ = try database.query(text).run() }
      // Rows of inner queries are copied, and take memory.
      let wanted: QueryError.Code = text.contains(doubled) ? .memoryLimit : .evaluation
      expect(error?.code, equals: wanted, "\(text)")
    }
    let square = "SELECT RAW ENCODED_SIZE(ARRAY_REPEAT(ARRAY_REPEAT(n, 1000), 1000)) FROM _"
    try expect(database.query(square).run().first?[0].int, equals: 2_002_001)
  }

  /// A time in proportion to the square of the count would be hours.
  @Test("many names and columns") func many() throws {
    let database = try databases.open(.lmdb)
    try database.save("d", ["n": 1])
    let names = (0..<60_000).map { "a\($0)" }
    let lets = names.map { "\($0) = n" }.joined(separator: ", ")
    try expect(database.query("SELECT RAW a7 FROM _ LET \(lets)").run().count, equals: 1)
    let with = names.map { "\($0) AS (1)" }.joined(separator: ", ")
    try expect(database.query("WITH \(with) SELECT RAW a7").run().count, equals: 1)
    let columns = String(repeating: "n, ", count: 60_000)
    let found = try database.query("SELECT \(columns)n FROM _")
    expect(found.columnNames.last, equals: "n #60001")
    try expect(found.run().first?[60_000].int, equals: 1)
  }

  @Test("WITH RECURSIVE takes names that don't use themselves") func notRecursive() throws {
    let database = try databases.open(.lmdb)
    let text = "WITH RECURSIVE a AS (SELECT RAW 7), b AS (3) SELECT RAW x + b FROM a AS x"
    try expect(database.query(text).run().map { $0[0].int }, equals: [10])
  }
}
