import TestSupport

@testable import Query
@testable import Touchstone

/// Sums, averages, variances and deviations of doubles are exact until they are rounded.
@Suite struct ExactSumTests {
  private let databases = TestDatabases()
  /// All bits of the values of the only row.
  private func bits(_ text: String, _ database: Database) throws -> [String] {
    let rows = try database.query(text).run()
    expect(rows.count, equals: 1)
    return try (0..<rows[0].count).map { column in
      switch try rows[0][column].jsonValue() {
      case .double(let value)?: "double \(value), bits \(value.bitPattern)"
      case let other: "\(String(describing: other))"
      }
    }
  }

  private func values(_ kind: String, _ random: inout SeededGenerator) -> [JSONValue] {
    (0..<60).map { number in
      let unit = Double.random(in: -1...1, using: &random)
      func scaled(_ reach: ClosedRange<Int>) -> JSONValue {
        .double(unit * Double(sign: .plus, exponent: Int.random(in: reach, using: &random), significand: 1))
      }
      return switch kind {
      case "cents": .double((unit * 100_000).rounded() / 100)
      case "alike": scaled(0...40)
      case "unlike": scaled(-1_060...480)
      case "large": scaled(1_000...1_023)
      case "mixed": number % 3 == 0 ? .int(.random(in: .min ... .max, using: &random)) : scaled(-30...70)
      default: .int(.random(in: .min ... .max, using: &random))
      }
    }
  }

  @Test(
    "sums and variances are the same in every order of rows, with an index and without",
    arguments: ["cents", "alike", "unlike", "large", "mixed", "integers"])
  func orders(_ kind: String) throws {
    var random = SeededGenerator(seed: testSeed)
    var values = values(kind, &random)
    let text = "SELECT SUM(v) AS s, AVG(v) AS a, VARIANCE(v) AS v, VAR_POP(v) AS p, STDDEV(v) AS d FROM _"
    var known: [String]?
    for _ in 0..<4 {
      let database = try databases.open(.lmdb)
      try database.saveBatch(values.indices) { (String($0 + 100), ["v": values[$0]]) }
      let found = try bits(text, database)
      expect(found, equals: known ?? found, "\(kind), seed \(testSeed)")
      known = found
      for direction in ["", " DESC"] {
        try database.createIndex("v", on: ["v"])
        let ordered =
          "\(text.dropLast(6)) FROM (SELECT v FROM _ WHERE v IS VALUED ORDER BY v\(direction)) AS x"
        try expect(bits(ordered.replacing("v)", with: "x.v)"), database), equals: found)
      }
      values.shuffle(using: &random)
    }
    let doubles = values.compactMap(\.double)
    if kind == "cents" || kind == "alike" || kind == "unlike" {
      let sum = exactSum(doubles)
      expect(known?.first, equals: "double \(sum), bits \(sum.bitPattern)", "seed \(testSeed)")
    }
  }

  @Test("a sum that is too large on the way is the sum") func largeOnTheWay() throws {
    for (numbers, wanted) in [
      ([1e308, 1e308, -1e308], "1e+308"), ([-1e308, 1e308, 1e308], "1e+308"), ([1e308, 1e308], nil),
      ([1e308, 1e308, -1e308, -1e308, 5e-324], "5e-324"), ([1e16, 1, -1e16], "1.0"),
    ] as [([Double], String?)] {
      let database = try databases.open(.lmdb)
      try database.saveBatch(numbers.indices) { (String($0), ["v": .double(numbers[$0])]) }
      let row = try #require(try database.query("SELECT SUM(v) AS s, AVG(v) AS a FROM _").run().first)
      expect(row["s"].double.map { "\($0)" }, equals: wanted, "\(numbers)")
      expect(row["a"].isNull, equals: wanted == nil)
    }
  }

  /// The wanted values are computed from fractions.
  @Test("variances are right to the last digit but one") func variances() throws {
    for (numbers, sample, population) in [
      ([0.1, 0.2, 0.3, 0.7], 0.06916666666666665, 0.05187499999999999),
      ([100000000.1, 100000000.2, 100000000.3], 0.010000000298023245, 0.00666666686534883),
      ([1e15 + 0.25, 1e15 + 0.5, 1e15 + 0.75, 1e15 - 3], 3.1041666666666665, 2.328125),
      ([1e150, -1e150, 3e149], 1.03e+300, 6.866666666666667e+299),
      ([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1], 0, 0), ([5], 0, 0),
    ] as [([Double], Double, Double)] {
      let database = try databases.open(.lmdb)
      try database.saveBatch(numbers.indices) { (String($0), ["v": .double(numbers[$0])]) }
      let text = "SELECT VARIANCE(v) AS v, VAR_POP(v) AS p, STDDEV(v) AS d FROM _"
      let row = try #require(try database.query(text).run().first)
      for (name, wanted) in [("v", sample), ("p", population), ("d", sample.squareRoot())] {
        let found = row[name].double ?? .nan
        expect(abs(found - wanted) <= wanted.ulp, "\(name) of \(numbers): \(found), wanted \(wanted)")
      }
    }
    let integers: [Int64] = [9_007_199_254_740_993, 9_007_199_254_740_992, 9_007_199_254_740_991]
    let database = try databases.open(.lmdb)
    try database.saveBatch(integers.indices) { (String($0), ["v": .int(integers[$0])]) }
    let row = try #require(try database.query("SELECT VARIANCE(v) AS v FROM _").run().first)
    expect(row["v"].double, equals: 1)
  }

  @Test("sums that three doubles can't hold count as memory of the query") func memory() throws {
    let database = try databases.open(.lmdb)
    try database.saveBatch(0..<3_000) { number in
      let size = [1e300, 1, 1e-300, 1e-160, 1e100][number % 5]
      return ("d\(number)", ["g": .int(Int64(number / 5)), "v": .double(size * 1.1)])
    }
    let text = "SELECT g, SUM(v) AS s FROM _ GROUP BY g"
    try expect(database.query(text).run().count, equals: 600)
    try expect(
      queryCode {
        _ = try database.query(text, options: .init(memoryLimit: 500_000, temporaryFileLimit: 0)).run()
      }, equals: .memoryLimit)
    // The same groups with numbers that fit.
    try expect(
      database.query(
        text.replacing("SUM(v)", with: "SUM(1.5)"),
        options: .init(memoryLimit: 500_000, temporaryFileLimit: 0)
      ).run().count, equals: 600)
  }
}
