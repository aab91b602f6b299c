import TestSupport

@testable import Query
@testable import Touchstone

/// Aggregates over frames that slide give, bit for bit, what adding up each frame gives.
@Suite struct SlidingFrameTests {
  private let databases = TestDatabases()

  /// The sum as aggregates define it: exact, and rounded at the end.
  private static func sum(_ numbers: [JSONValue]) -> JSONValue? {
    if numbers.isEmpty { return nil }
    let integers = numbers.reduce(Int128(0)) { sum, number in
      if case .int(let value) = number { sum + Int128(value) } else { sum }
    }
    let doubles = numbers.compactMap { number in if case .double(let value) = number { value } else { nil } }
    if doubles.isEmpty { return .int(Int64(integers)) }
    return .double(exactSum(doubles + [Double(integers)]))
  }

  /// Values as text that tells all bits.
  private static func text(_ value: JSONValue?) -> String {
    switch value {
    case .double(let value)?: "double \(value.bitPattern)"
    case .int(let value)?: "int \(value)"
    case nil, .null?: "null"
    case let other?: "\(other)"
    }
  }

  /// The rows of a frame, by the position of the current one.
  private static let frames: [(text: String, rows: @Sendable (Int, Int) -> [Int])] = [
    ("ROWS BETWEEN 5 PRECEDING AND 3 FOLLOWING", { at, _ in Array(at - 5...at + 3) }),
    ("ROWS BETWEEN 40 PRECEDING AND 20 PRECEDING", { at, _ in Array(at - 40...at - 20) }),
    ("ROWS BETWEEN 2 FOLLOWING AND 30 FOLLOWING", { at, _ in Array(at + 2...at + 30) }),
    (
      "ROWS BETWEEN 7 PRECEDING AND 7 FOLLOWING EXCLUDE CURRENT ROW",
      { at, _ in Array(at - 7...at + 7).filter { $0 != at } }
    ),
    (
      "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING EXCLUDE GROUP",
      { at, count in Array(0..<count).filter { $0 / 3 != at / 3 } }
    ),
    // Peers have no order of their own, so a frame of rows would be open.
    (
      "GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE TIES",
      { at, count in
        (0..<count).filter { (at / 3 - 2...at / 3 + 1).contains($0 / 3) && ($0 / 3 != at / 3 || $0 == at) }
      }
    ),
    (
      "GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING",
      { at, count in (0..<count).filter { ($0 / 3 - at / 3 + 2) >= 0 && $0 / 3 - at / 3 <= 1 } }
    ),
    (
      "RANGE BETWEEN 4 PRECEDING AND 2 PRECEDING",
      { at, count in
        (0..<count).filter { (at / 3 - 4...at / 3 - 2).contains($0 / 3) }
      }
    ),
    // Bounds that go forth and back.
    ("ROWS BETWEEN w PRECEDING AND 1 FOLLOWING", { at, _ in Array(at - at * 7 % 11...at + 1) }),
  ]

  @Test(
    "sums, counts and extremes are those of each frame",
    arguments: ["integers", "cents", "mixed", "wide", "unlike"])
  func frames(_ kind: String) throws {
    var random = SeededGenerator(seed: testSeed)
    func value() -> JSONValue {
      let number = Int.random(in: -500...500, using: &random)
      switch kind {
      case "integers": return .int(Int64(number) * 10_000_000_000_000)
      case "cents": return .double(Double(number) / 100)
      case "wide":
        return .double(Double(number) * 0x1p-30 * Double(sign: .plus, exponent: number % 20, significand: 1))
      // No scale holds these: frames are added up.
      case "unlike": return number % 5 == 0 ? 1e300 : .double(Double(number) * 1e-20)
      default:
        return number % 3 == 0
          ? .int(Int64(number % 4)) : number % 3 == 1 ? .double(Double(number % 4)) : .null
      }
    }
    let values = (0..<120).map { _ in value() }
    let database = try databases.open(.lmdb)
    // Three rows each are peers by n.
    try database.saveBatch(values.indices) { number in
      let digits = String(number + 1000)
      return (
        digits,
        [
          "n": .int(Int64(number / 3)), "id": .string(digits), "v": values[number],
          "w": .int(Int64(number * 7 % 11)),
        ]
      )
    }
    let numbers = values.map { $0.isNull ? nil : $0 }
    func order(_ left: JSONValue, _ right: JSONValue) -> Bool { (left.double ?? 0) < (right.double ?? 0) }
    for frame in Self.frames {
      let isOfRows = frame.text.hasPrefix("ROWS")
      let isByPeers = frame.text.contains("GROUP") || frame.text.contains("TIES") || !isOfRows
      let over = "OVER (ORDER BY n\(isByPeers ? "" : ", id") \(frame.text))"
      let query = try database.query(
        "SELECT SUM(v) \(over) AS s, AVG(v) \(over) AS a, COUNT(v) \(over) AS c, COUNT(*) \(over) AS r, "
          + "MIN(v) \(over) AS least, MAX(v) \(over) AS most, SUM(v) FILTER (WHERE v > 0) \(over) AS f "
          + "FROM _ ORDER BY id")
      for (position, row) in try query.run().enumerated() {
        let rows = frame.rows(position, values.count).filter { values.indices.contains($0) }
        let inside = rows.compactMap { numbers[$0] }
        let sum = Self.sum(inside)
        let average = sum?.double.map { JSONValue.double($0 / Double(inside.count)) }
        let wanted: [JSONValue?] = [
          sum, average, .int(Int64(inside.count)), .int(Int64(rows.count)),
          // Of 1 and 1.0 the first one.
          inside.reduce(nil as JSONValue?) { least, next in least.map { order(next, $0) ? next : $0 } ?? next
          },
          inside.reduce(nil as JSONValue?) { most, next in most.map { order($0, next) ? next : $0 } ?? next },
          Self.sum(inside.filter { ($0.double ?? 0) > 0 }),
        ]
        let found = try (0..<row.count).map { try row[$0].jsonValue() }
        // Which of 1 and 1.0 comes first is open among peers.
        func texts(_ values: [JSONValue?]) -> [String] {
          values.map { value in
            Self.text(isByPeers && value?.double != nil ? value?.double.map { .double($0) } : value)
          }
        }
        expect(
          texts(found), equals: texts(wanted),
          "\(kind), \(frame.text), row \(position), seed \(testSeed)")
      }
    }
  }

  @Test("a sum of multiples is the exact sum, rounded once")
  func scale() {
    var random = SeededGenerator(seed: testSeed)
    var exact = 0
    for _ in 0..<(isLong ? 20_000 : 2_000) {
      let reach = Int.random(in: 0...60, using: &random)
      let base = Int.random(in: -1_060...900, using: &random)
      let doubles = (0..<Int.random(in: 1...40, using: &random)).map { _ in
        let size = Double(
          sign: .plus, exponent: base + Int.random(in: 0...reach, using: &random), significand: 1)
        return Double.random(in: -1...1, using: &random) * size
      }
      var scale = FixedScale()
      for value in doubles { scale.include(value) }
      guard scale.isExact else { continue }
      exact += 1
      let units = doubles.reduce(Int128(0)) { $0 + scale.units($1) }
      expect(
        scale.double(units).bitPattern, equals: (exactSum(doubles) + 0).bitPattern,
        "\(doubles), seed \(testSeed)")
    }
    expect(exact > 100)
    // No room: the lowest bits would be lost.
    for unlike in [[1e300, 1], [1, 0x1p-127, 0x1p-1074], [0x1p62, 0x1p-63]] {
      var scale = FixedScale()
      for value in unlike { scale.include(value) }
      expect(!scale.isExact)
    }
  }

  @Test("wide frames are cancelled, and count as memory")
  func limits() throws {
    let database = try databases.open(.lmdb)
    try database.saveBatch(0..<3_000) { ("d\($0)", ["n": .int(Int64($0))]) }
    let text = "SELECT MAX(n) OVER (ORDER BY n ROWS BETWEEN n % 7 PRECEDING AND 900 FOLLOWING) AS m FROM _"
    let cancelled = QueryCancellation()
    cancelled.cancel()
    try expect(
      queryCode { _ = try database.query(text).run(cancellation: cancelled) }, equals: .cancelled)
    try expect(database.query(text).run().count, equals: 3_000)
    try expect(
      queryCode {
        _ = try database.query(text, options: .init(memoryLimit: 300_000, temporaryFileLimit: 0)).run()
      }, equals: .memoryLimit)
  }
}
