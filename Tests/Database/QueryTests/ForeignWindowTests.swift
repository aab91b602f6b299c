import SQLiteLibrary
import TestSupport

@testable import Query
@testable import Touchstone

/// The same windows over the same rows, computed by SQLite.
@Suite struct ForeignWindowTests {
  private let databases = TestDatabases()

  @Test("SQLite gives the same windows")
  func sqlite() throws {
    let connection: Connection
    do {
      connection = try Connection(
        ":memory:", library: try Library.load(Library.sqlitePath), flags: 0x6)
    } catch {
      return print("SQLite's library isn't here, so windows aren't compared with it: \(error)")
    }
    defer { connection.close() }
    var random = SeededGenerator(seed: testSeed)
    let database = try databases.open(someEngines[0])
    try connection.execute("CREATE TABLE t (id INTEGER, g INTEGER, n INTEGER, v INTEGER, x REAL)")
    var documents: [(String, String)] = []
    for id in 100..<260 {
      func number(_ range: ClosedRange<Int>, nulls: Int) -> String {
        Int.random(in: 0..<100, using: &random) < nulls
          ? "null" : String(Int.random(in: range, using: &random))
      }
      let values = [
        number(0...4, nulls: 5), number(0...30, nulls: 8), number(-50...50, nulls: 15),
        number(-50...50, nulls: 15) == "null"
          ? "null" : "\(Double(Int.random(in: -99...99, using: &random)) / 4)",
      ]
      try connection.execute("INSERT INTO t VALUES (\(id), \(values.joined(separator: ", ")))")
      documents.append(
        ("d\(id)", #"{"id":\#(id),"g":\#(values[0]),"n":\#(values[1]),"v":\#(values[2]),"x":\#(values[3])}"#))
    }
    try database.fill(documents)
    var windows: [String] = []
    for order in ["n, id", "n DESC, id", "n NULLS LAST, id", "v, n DESC NULLS FIRST, id"] {
      for partition in ["", "PARTITION BY g "] {
        for call in [
          "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "PERCENT_RANK()", "CUME_DIST()", "NTILE(7)", "LAG(v)",
          "LAG(v, 3, -1)", "LEAD(x, 2)", "SUM(v)", "COUNT(v)", "AVG(x)", "MIN(v)", "MAX(x)",
          "COUNT(*) FILTER (WHERE v > 0)",
        ] { windows.append("\(call) OVER (\(partition)ORDER BY \(order))") }
      }
    }
    for partition in ["", "PARTITION BY g "] {
      for frame in [
        "ROWS BETWEEN 3 PRECEDING AND 1 FOLLOWING", "ROWS BETWEEN 4 PRECEDING AND 2 PRECEDING",
        "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", "ROWS BETWEEN 2 FOLLOWING AND 9 FOLLOWING",
        "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE CURRENT ROW",
      ] {
        for call in ["SUM(v)", "COUNT(x)", "MAX(v)", "FIRST_VALUE(v)", "LAST_VALUE(x)", "NTH_VALUE(v, 2)"] {
          windows.append("\(call) OVER (\(partition)ORDER BY n, id \(frame))")
        }
      }
      for frame in [
        "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING", "GROUPS BETWEEN 2 PRECEDING AND 1 PRECEDING",
        "GROUPS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW EXCLUDE TIES", "RANGE UNBOUNDED PRECEDING",
        "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE GROUP",
        "GROUPS BETWEEN CURRENT ROW AND CURRENT ROW EXCLUDE CURRENT ROW",
      ] {
        for call in ["SUM(v)", "COUNT(*)", "MIN(x)"] {
          windows.append("\(call) OVER (\(partition)ORDER BY n \(frame))")
        }
      }
      // Distances: rows whose order isn't a number have no frame here, and their peers in SQLite.
      for frame in ["RANGE BETWEEN 3 PRECEDING AND 2 FOLLOWING", "RANGE BETWEEN 5 PRECEDING AND 1 PRECEDING"]
      {
        windows.append("SUM(CASE WHEN n IS NOT NULL THEN v END) OVER (\(partition)ORDER BY n \(frame))")
        windows.append("SUM(CASE WHEN n IS NOT NULL THEN v END) OVER (\(partition)ORDER BY n DESC \(frame))")
      }
    }
    for window in windows {
      let theirs = try connection.strings("SELECT json_array(id, \(window)) FROM t ORDER BY id")
      let rows = try database.query("SELECT id, \(window) AS w FROM _ ORDER BY id").run()
      expect(rows.count, equals: theirs.count)
      for (row, other) in zip(rows, theirs) {
        let pair = try JSONValue(json: other).array ?? []
        let own = try row["w"].jsonValue() ?? .null
        let isSame =
          own == pair[1] || own.double.flatMap { a in pair[1].double.map { abs(a - $0) <= 1e-9 } } ?? false
        expect(isSame, "\(window): \(other), not \(own)")
        if !isSame { return }
      }
    }
  }
}
