import TestSupport

@testable import Query
@testable import Touchstone

/// Functions whose results depend on the time or on chance.
@Suite struct VolatileFunctionTests {
  private let databases = TestDatabases()

  /// The current time in milliseconds.
  private var now: Double { Double(ClockFunctions.microseconds) / 1000 }

  @Test("NOW_… is one time for all expressions and rows of a run, also of its subqueries")
  func oneTimePerRun() throws {
    let database = try databases.open(someEngines[0])
    try database.fill((0..<300).map { ("d\($0)", "{}") })
    let query = try database.query(
      """
      SELECT NOW_MILLIS() AS m, NOW_UTC('1111-11-11T11:11:11.111Z') AS s, NOW_TZ('UTC', '1111-11-11T11:11:11.111Z') AS z,
      EXISTS (SELECT 1 FROM _ WHERE NOW_MILLIS() > $last) AS later FROM _ WHERE NOW_MILLIS() = NOW_MILLIS()
      """)
    let before = now
    let rows = try query.run(["last": .double(before - 1)])
    expect(rows.count, equals: 300)
    expect(Set(rows.map { $0["m"].double }).count, equals: 1)
    let time = try #require(rows[0]["m"].double)
    expect(time >= before && time <= now, "\(time)")
    let text = try EvaluationHarness().evaluate(
      "MILLIS_TO_UTC(\(time.rounded(.down)), '1111-11-11T11:11:11.111Z')")
    for row in rows {
      expect("\"\(row["s"].string ?? "")\"", equals: text)
      expect(row["z"].string, equals: row["s"].string)
      expect(row["later"].bool, equals: true)
    }
    // The next run has a time of its own.
    let later = try query.run(["last": .double(time)])
    try expect(#require(later[0]["m"].double) >= time)
  }

  @Test("CLOCK_… is the time of the call")
  func clock() throws {
    let harness = try EvaluationHarness()
    let before = now
    let time = try #require(Double(harness.evaluate("CLOCK_MILLIS()")))
    expect(time >= before && time <= now)
    for (text, other) in [
      ("CLOCK_UTC('1111')", "CLOCK_TZ('UTC')"), ("CLOCK_STR()", "CLOCK_LOCAL()"),
      ("CLOCK_TZ(60)", "CLOCK_TZ(60, 'x')"), ("NOW_STR()", "NOW_LOCAL()"),
    ] {
      for form in [text, other] {
        let millis = try #require(Double(harness.evaluate("STR_TO_MILLIS(\(form))")), "\(form)")
        expect(millis >= before.rounded(.down) && millis <= now, "\(form)")
      }
    }
    for (text, expected) in [
      ("CLOCK_TZ('nowhere')", "null"), ("NOW_TZ(1.5)", "\"x\""), ("NOW_UTC(null)", "null"),
      ("CLOCK_STR(missing)", "missing"), ("NOW_TZ('europe/london')", "null"),
    ] where expected != "\"x\"" {
      try expect(harness.evaluate(text), equals: expected, "\(text)")
    }
  }

  @Test("each call of UUID and RANDOM has a result of its own")
  func chance() throws {
    let database = try databases.open(someEngines[0])
    try database.fill((0..<200).map { ("d\($0)", #"{"n":\#($0)}"#) })
    try database.createIndex("n", on: ["n"])
    let rows = try database.query("SELECT UUID() AS u, RANDOM() AS r, RANDOM(7) AS s, RANDOM(n) AS t FROM _")
      .run()
    expect(Set(rows.map { $0["u"].string }).count, equals: 200)
    for row in rows {
      let uuid = row["u"].string ?? ""
      expect(
        uuid.wholeMatch(of: /[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}/) != nil,
        "\(uuid)")
      for name in ["r", "s", "t"] { expect((0..<1).contains(row[name].double ?? -1), "\(name)") }
    }
    expect(Set(rows.map { $0["r"].double }).count > 190)
    expect(Set(rows.map { $0["s"].double }).count, equals: 1)
    expect(Set(rows.map { $0["t"].double }).count, equals: 200)
    // A condition without properties isn't the same for all rows then, and is no range of an index.
    for condition in ["RANDOM() < 0.5", "n > RANDOM() * 200"] {
      let count = try database.query("SELECT 1 FROM _ WHERE \(condition)").run().count
      expect((20...180).contains(count), "\(condition): \(count)")
    }
  }

  @Test("no index holds a result that changes")
  func indexes() throws {
    let database = try databases.open(someEngines[0])
    for text in ["NOW_MILLIS()", "CLOCK_STR()", "a + RANDOM()", "UUID()"] {
      try expect(queryCode { try database.createIndex("i", on: [text]) }, equals: .index, "\(text)")
    }
  }

  @Test("each commit runs a live query again whose result changes by itself")
  func live() throws {
    let database = try databases.open(someEngines[0])
    try database.fill([("a", #"{"type":"hotel"}"#)])
    let told = ToldResults()
    let live = try database.observe(
      try database.query("SELECT NOW_MILLIS() AS m FROM _ WHERE type = 'hotel'")
    ) { told.append($0) }
    told.wait()
    for number in 0..<3 {
      try database.fill([("r\(number)", #"{"type":"route"}"#)])
      expect(told.wait())
    }
    live.cancel()
  }

  @Test("ARRAY_RANGE and its like end at the limit of items, and at that of memory")
  func limits() throws {
    let harness = try EvaluationHarness()
    for text in [
      "ARRAY_RANGE(0, 1e300)", "ARRAY_RANGE(0, 2000000)", "ARRAY_REPEAT('a', 9223372036854775807)",
      "DATE_RANGE_MILLIS(0, 253402300799999, 'millisecond')", "LPAD('a', 9223372036854775807)",
      "SUFFIXES(REPEAT('a', 2000000))", "RPAD('a', 100000000, 'bc')",
    ] {
      try expect(queryCode { _ = try harness.evaluate(text) }, equals: .evaluation, "\(text)")
    }
    let database = try databases.open(someEngines[0])
    let query = try database.query(
      "SELECT ARRAY_LENGTH(ARRAY_RANGE(0, 1000000)) AS n", options: .init(memoryLimit: 1 << 20))
    try expect(queryCode { _ = try query.run() }, equals: .memoryLimit)
  }
}
