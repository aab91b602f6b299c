import Fleece
import TestSupport

// Random documents and the texts of random queries over them. Names and values are few, so that conditions meet
// documents, and of all types.

struct RandomQuery {
  var random: SeededGenerator
  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  private mutating func one<T>(_ items: [T]) -> T { items[Int.random(in: items.indices, using: &random)] }
  private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &random) < percent }

  // MARK: Documents

  private static let scalars = [
    "null", "true", "false", "-1", "0", "1", "2", "2.0", "3", "2.5", "\"\"", "\"a\"", "\"A\"", "\"ab\"",
    "\"b\"",
    "\"Bc\"", "\"2\"",
  ]

  private mutating func array() -> String {
    let count = Int.random(in: 0...3, using: &random)
    return "["
      + (0..<count).map { _ in one(Self.scalars + ["{\"x\":1}", "{\"x\":\"a\"}"]) }.joined(separator: ",")
      + "]"
  }

  /// The JSON of a document, whose ID is `d` and a number below `count`.
  mutating func document(_ count: Int) -> String {
    var members: [String] = []
    if chance(85) { members.append("\"a\":\(one(Self.scalars))") }
    if chance(85) {
      members.append("\"b\":\(chance(80) ? one(["-2", "0", "1", "1.5", "2", "3", "7"]) : one(Self.scalars))")
    }
    if chance(85) {
      members.append("\"s\":\(one(["\"a\"", "\"A\"", "\"ab\"", "\"abc\"", "\"b\"", "\"Ba\"", "\"\"", "1"]))")
    }
    if chance(60) { members.append("\"l\":\(chance(90) ? array() : one(Self.scalars))") }
    if chance(60) { members.append("\"o\":{\"x\":\(one(Self.scalars)),\"y\":\(array())}") }
    if chance(60) { members.append("\"r\":\"d\(Int.random(in: 0..<count, using: &random))\"") }
    return "{" + members.joined(separator: ",") + "}"
  }

  /// Indexes, as arguments of `createIndex`.
  mutating func indexes() -> [(on: [String], condition: String?, unnest: String?)] {
    let all: [(on: [String], condition: String?, unnest: String?)] = [
      (["a"], nil, nil), (["s", "b"], nil, nil), (["b"], nil, nil), (["LOWER(s)"], nil, nil),
      (["o.x", "a"], nil, nil),
      (["b", "a"], "b > 0", nil), (["r"], nil, nil), ([], nil, "l"), (["a", "b", "s"], nil, nil),
    ]
    return all.filter { _ in chance(40) }
  }

  // MARK: Expressions

  private mutating func constant() -> String { one(Self.scalars + ["missing", "[1]"]).replacingOccurrences }

  private mutating func path(_ sources: [String]) -> String {
    let source = one(sources)
    if source == "u" { return one(["u", "u", "u.x"]) }
    return "\(source).\(one(["a", "a", "b", "b", "s", "s", "o.x", "l[0]", "r", "gone"]))"
  }

  private mutating func value(_ sources: [String], _ depth: Int) -> String {
    if depth <= 0 || chance(60) { return chance(75) ? path(sources) : constant() }
    let inner = value(sources, depth - 1)
    switch Int.random(in: 0..<7, using: &random) {
    case 0: return "LOWER(\(inner))"
    case 1: return "LENGTH(\(inner))"
    case 2: return "TYPE(\(inner))"
    case 3: return "(\(inner) \(one(["+", "-", "*", "/", "%"])) \(value(sources, depth - 1)))"
    case 4: return "IFMISSINGORNULL(\(inner), \(constant()))"
    case 5: return "CASE WHEN \(condition(sources, depth - 1)) THEN \(inner) ELSE \(constant()) END"
    default: return "[\(inner), 1]"
    }
  }

  mutating func condition(_ sources: [String], _ depth: Int) -> String {
    if depth > 0, chance(45) {
      let (left, right) = (condition(sources, depth - 1), condition(sources, depth - 1))
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1: return "(\(left) AND \(right))"
      case 2, 3: return "(\(left) OR \(right))"
      default: return "(NOT \(left))"
      }
    }
    let subject = chance(75) ? path(sources) : value(sources, 1)
    switch Int.random(in: 0..<10, using: &random) {
    case 0...3:
      return
        "\(subject) \(one(["=", "=", "=", "!=", "<", "<=", ">", ">="])) \(chance(80) ? constant() : value(sources, 1))"
    case 4: return "\(subject) \(chance(80) ? "" : "NOT ")IN (\(constant()), \(constant()), \(constant()))"
    case 5: return "\(subject) \(chance(80) ? "" : "NOT ")BETWEEN \(constant()) AND \(constant())"
    case 6: return "\(subject) LIKE \(one(["'a%'", "'%b'", "'_'", "'A%'", "'ab%'", "'%'", "'ab'", "'%B%'"]))"
    case 7: return "\(subject) IS \(chance(50) ? "" : "NOT ")\(one(["NULL", "MISSING", "VALUED"]))"
    case 8:
      let source = one(sources.filter { $0 != "u" })
      return
        "\(one(["ANY", "EVERY", "ANY AND EVERY"])) v IN \(source).\(one(["l", "l", "o.y", "o"])) SATISFIES v \(one(["=", "=", ">", "<"])) \(constant()) END"
    default:
      let source = one(sources.filter { $0 != "u" })
      return "META(\(source)).id \(one(["=", "<", ">="])) 'd\(Int.random(in: 0..<30, using: &random))'"
    }
  }

  // MARK: Queries

  /// The text of a query, and whether ORDER BY decides the order of all of its rows.
  mutating func query() -> (text: String, isOrdered: Bool) {
    var sources = ["d"]
    var from = "FROM _ AS d"
    switch Int.random(in: 0..<10, using: &random) {
    case 0:
      sources.append("e")
      from +=
        " \(one(["JOIN", "LEFT JOIN"])) _ AS e ON \(one(["META(e).id = d.r", "e.a = d.a", "e.s = d.s AND e.b > d.b", "e.r = META(d).id"]))"
    case 1, 2:
      sources.append("u")
      from += " UNNEST d.\(one(["l", "l", "o.y"])) AS u"
    default: break
    }
    let filter = chance(85) ? " WHERE \(condition(sources, 2))" : ""
    if chance(25) {
      let keys = chance(80) ? (0..<(chance(70) ? 1 : 2)).map { _ in path(sources) } : []
      let aggregates = [
        "COUNT(*)", "COUNT(\(path(sources)))", "SUM(\(path(sources)))", "AVG(\(path(sources)))",
        "MIN(\(path(sources)))", "MAX(\(path(sources)))", "COUNT(DISTINCT \(path(sources)))",
      ]
      var columns = keys + ["COUNT(*)"]
      for aggregate in aggregates where chance(30) { columns.append(aggregate) }
      let list = columns.enumerated().map { "\($1) AS c\($0)" }.joined(separator: ", ")
      let group = keys.isEmpty ? "" : " GROUP BY \(keys.joined(separator: ", "))"
      let having = !keys.isEmpty && chance(30) ? " HAVING COUNT(*) > 1" : ""
      let order = !keys.isEmpty && chance(50)
      let orderBy =
        order ? " ORDER BY " + keys.map { $0 + (chance(30) ? " DESC" : "") }.joined(separator: ", ") : ""
      return ("SELECT \(list) \(from)\(filter)\(group)\(having)\(orderBy)\(order ? page() : "")", order)
    }
    var columns = sources.filter { $0 != "u" }.map { "META(\($0)).id" }
    let isDistinct = chance(15)
    if isDistinct { columns = [path(sources)] } else { for _ in 0..<2 { columns.append(value(sources, 1)) } }
    if sources.contains("u") { columns.append("u") }
    let list = columns.enumerated().map { "\($1) AS c\($0)" }.joined(separator: ", ")
    let order = chance(50)
    // With the columns at the end rows that are tied are equal.
    let keys = (isDistinct ? [] : [value(sources, 1)]).map { $0 + (chance(40) ? " DESC" : "") } + columns
    let orderBy = order ? " ORDER BY \(keys.joined(separator: ", "))" : ""
    return (
      "SELECT \(isDistinct ? "DISTINCT " : "")\(list) \(from)\(filter)\(orderBy)\(order ? page() : "")", order
    )
  }

  private mutating func page() -> String {
    chance(50)
      ? " LIMIT \(Int.random(in: 0...6, using: &random))\(chance(40) ? " OFFSET \(Int.random(in: 0...4, using: &random))" : "")"
      : ""
  }
}

extension String {
  /// Double quotes as single ones, as literals of the query language.
  fileprivate var replacingOccurrences: String { String(map { $0 == "\"" ? "'" : $0 }) }
}
