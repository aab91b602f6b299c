import Fleece
import Query
import StorageConformance

// The texts of random queries over what DocumentGenerator.swift makes.

extension CaseGenerator {
  /// Sources that an expression can name: those of documents, and the items of UNNEST.
  struct Names {
    var documents = ["d"]
    var items: [String] = []
    /// Whether the one source of documents has no alias, and properties no source's name before them.
    var isBare = false

    /// What stands before a property of a source.
    func prefix(_ source: String) -> String { isBare ? "" : source + "." }

    /// What stands in META's parentheses.
    func inMeta(_ source: String) -> String { isBare ? "" : source }
  }

  /// A text of the query language for a value.
  static func literal(_ value: JSONValue) -> String {
    switch value {
    case .string(let text):
      "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "''") + "'"
    case .array(let items): "[" + items.map(literal).joined(separator: ", ") + "]"
    case .object(let object):
      "{" + object.map { "\"\($0.key)\": \(literal($0.value))" }.joined(separator: ", ") + "}"
    case .null: "NULL"
    case .bool(let value): value ? "TRUE" : "FALSE"
    default: naiveJSON(value)
    }
  }

  mutating func constant() -> String {
    switch number(0...19) {
    case 0: "MISSING"
    case 1: "[1]"
    case 2: "{\"x\": 1}"
    case 3: "[]"
    default: Self.literal(scalar())
    }
  }

  mutating func path(_ names: Names) -> String {
    if !names.items.isEmpty, chance(40) {
      let item = one(names.items)
      return one([item, item, "\(item).x", "\(item)[0]"])
    }
    let source = one(names.documents)
    let rest = one([
      "a", "a", "b", "b", "s", "s", "o.x", "l[0]", "r", "gone", "`\(Self.composed)`", "`\(Self.decomposed)`",
      "t",
      "l[-1]", "o.y[0]", "o", "l", "o.z.w.x", "big",
    ])
    return chance(8) ? meta(names.inMeta(source)) : names.prefix(source) + rest
  }

  private mutating func meta(_ source: String) -> String {
    one([
      "META(\(source)).id", "META(\(source)).id", "META(\(source)).sequence", "META(\(source)).revisionID",
      "META(\(source)).expiration", "META(\(source)).id",
    ])
  }

  mutating func value(_ names: Names, _ depth: Int) -> String {
    if depth <= 0 || chance(55) { return chance(75) ? path(names) : constant() }
    let inner = value(names, depth - 1)
    if chance(8) { return converted(inner, path(names)) }
    if chance(18) { return collected(names, inner, depth) }
    switch number(0...23) {
    case 0: return "LOWER(\(inner))"
    case 1: return "LENGTH(\(inner))"
    case 2: return "TYPE(\(inner))"
    case 3...6: return "(\(inner) \(one(["+", "-", "*", "/", "%", "||"])) \(value(names, depth - 1)))"
    case 7:
      return
        "\(one(["IFMISSINGORNULL", "IFMISSING", "IFNULL", "NULLIF", "MISSINGIF"]))(\(inner), \(constant()))"
    case 8: return "CASE WHEN \(condition(names, depth - 1)) THEN \(inner) ELSE \(constant()) END"
    case 9: return "[\(inner), 1]"
    case 10: return "{\"x\": \(inner), \"\(Self.composed)\": 1}"
    case 11:
      return "\(one(["ARRAY_LENGTH", "ARRAY_COUNT", "ARRAY_MAX", "ARRAY_IFNULL", "TOARRAY"]))(\(inner))"
    case 12: return "ARRAY_CONTAINS(\(inner), \(constant()))"
    case 13: return "\(one(["TOSTRING", "TOBOOLEAN", "TOARRAY", "TOOBJECT", "TONUMBER", "TOATOM"]))(\(inner))"
    case 14: return "\(one(["ISARRAY", "ISATOM", "ISBOOLEAN", "ISNUMBER", "ISOBJECT", "ISSTRING"]))(\(inner))"
    case 15: return "\(one(["GREATEST", "LEAST"]))(\(inner), \(value(names, depth - 1)))"
    case 16: return "\(one(["ABS", "SIGN", "FLOOR", "CEIL", "SQRT", "ROUND", "TRUNC"]))(\(inner))"
    case 17: return "\(one(["IDIV", "DIV", "POWER"]))(\(inner), \(value(names, depth - 1)))"
    case 18: return "\(one(["UPPER", "REVERSE", "TRIM", "INITCAP", "SPLIT"]))(\(inner))"
    case 19:
      return
        "\(one(["CONTAINS", "POSITION", "SPLIT"]))(\(inner), \(one(["'a'", "'b'", "''", "'\(Self.decomposed)'"])))"
    case 20: return "SUBSTR(\(inner), \(number(-2...2))\(chance(50) ? ", \(number(0...2))" : ""))"
    case 21: return "\(chance(50) ? "-" : "+")\(path(names))"
    case 22:
      return one(
        [
          "REPLACE(\(inner), 'a', 'zz')", "REPEAT(\(inner), 2)", "REGEXP_CONTAINS(\(inner), '^[aA]')",
          "REGEXP_REPLACE(\(inner), '[ab]', 'x')", "LTRIM(\(inner), 'a')", "ARRAY_SUM(\(inner))",
          "ARRAY_AVG(\(inner))",
          "CONCAT(\(inner), \(path(names)))", "ARRAY_OF(\(inner), \(path(names)))", "STR_TO_MILLIS(\(inner))",
          "MILLIS_TO_UTC(\(inner))", "\(inner).x", "(\(inner))[0]", "[\(inner), \(path(names))][1]",
          "{\"x\": \(inner)}.x", "ROUND(\(inner), 1)", "SPLIT(\(inner), 'b')[0]",
        ].filter { !$0.hasPrefix(inner) || inner.hasSuffix(")") || inner.hasSuffix("]") })
    default:
      return
        "CASE \(inner) WHEN \(constant()) THEN \(value(names, depth - 1)) WHEN \(path(names)) THEN 'w' END"
    }
  }

  mutating func condition(_ names: Names, _ depth: Int) -> String {
    if depth > 0, chance(45) {
      let (left, right) = (condition(names, depth - 1), condition(names, depth - 1))
      switch number(0...4) {
      case 0, 1: return "(\(left) AND \(right))"
      case 2, 3: return "(\(left) OR \(right))"
      default: return "(NOT \(left))"
      }
    }
    let subject = chance(75) ? path(names) : value(names, 2)
    if chance(6) { return collectionTest(names, subject) }
    if chance(4) { return patternTest(names, subject) }
    let comparison = one(["=", "=", "=", "!=", "<", "<=", ">", ">="])
    switch number(0...22) {
    case 0...4: return "\(subject) \(comparison) \(chance(75) ? constant() : value(names, 1))"
    case 5: return "\(subject) \(not())IN (\(constant()), \(constant()), \(constant()))"
    case 6: return "\(subject) \(not())IN (\(value(names, 1)), \(path(names)))"
    case 7: return "\(subject) \(not())IN \(names.prefix(one(names.documents)))\(one(["l", "o.y", "l", "a"]))"
    case 8: return "\(subject) \(not())BETWEEN \(constant()) AND \(constant())"
    case 9: return "\(subject) \(not())BETWEEN \(value(names, 1)) AND \(path(names))"
    case 10, 11:
      return
        "\(subject) \(not())LIKE \(one(["'a%'", "'%b'", "'_'", "'A%'", "'ab%'", "'%'", "'ab'", "'%B%'", "'\(Self.composed)%'", "'x\\%%'", "'_\(Self.decomposed)'"]))"
    case 12: return "\(subject) IS \(chance(50) ? "" : "NOT ")\(one(["NULL", "MISSING", "VALUED"]))"
    case 13: return "\(subject) IS \(chance(50) ? "" : "NOT ")\(value(names, 1))"
    case 14, 15:
      let collection =
        chance(80)
        ? names.prefix(one(names.documents)) + one(["l", "l", "o.y", "o", "a"]) : value(names, 1)
      let inner = one(["v", "v", "v.x", "v[0]"])
      let test =
        chance(75)
        ? "\(inner) \(one(["=", "=", ">", "<"])) \(constant())"
        : one([
          "\(inner) IS MISSING", "\(inner) LIKE 'a%'", "\(inner) = \(path(names))",
          "ANY w IN v SATISFIES w = \(constant()) END", "\(inner) BETWEEN \(constant()) AND \(constant())",
        ])
      return "\(one(["ANY", "EVERY", "ANY AND EVERY"])) v IN \(collection) SATISFIES \(test) END"
    case 16, 17:
      let source = names.inMeta(one(names.documents))
      return "META(\(source)).id \(one(["=", "<", ">=", "!="])) \(Self.literal(.string(one(ids))))"
    case 18:
      return
        "META(\(names.inMeta(one(names.documents)))).id \(not())IN ('d1', \(Self.literal(.string(one(ids)))), 'd3')"
    case 19: return "((\(subject) \(comparison) \(Self.literal(.string(one(Self.texts))))) COLLATE NOCASE)"
    case 22:
      let text = Self.literal(.string(one(["a", "A", "AB", "bC", "B"])))
      return one([
        "((\(subject) \(not())IN (\(text), 'q')) COLLATE NOCASE)",
        "((\(subject) \(not())BETWEEN \(text) AND 'c') COLLATE NOCASE)",
        "((\(subject) \(comparison) \(path(names))) COLLATE NOCASE)",
        "((ANY v IN \(names.prefix(one(names.documents)))l SATISFIES v = \(text) END) COLLATE NOCASE)",
        "((\(subject) LIKE 'A%') COLLATE NOUNICODE)", "((\(subject) LIKE 'A%') COLLATE NOCASE)",
        "((CASE \(subject) WHEN \(text) THEN 1 ELSE 0 END = 1) COLLATE NOCASE)",
        "(\(subject) COLLATE NOCASE) = \(text)", "\(subject) \(comparison) (\(text) COLLATE NOCASE)",
        "\(subject) BETWEEN (\(text) COLLATE NOCASE) AND 'c'",
        "ANY v IN \(names.prefix(one(names.documents)))l SATISFIES v = (\(text) COLLATE NOCASE) END",
        "\(subject) IN (\(text), ('A' COLLATE NOCASE))", "\(subject) LIKE ('A%' COLLATE NOUNICODE)",
        "((\(subject) \(comparison) \(text)) COLLATE UNICODE)",
        "((ARRAY_CONTAINS(\(names.prefix(one(names.documents)))l, \(text))) COLLATE NOCASE)",
        "((NULLIF(\(subject), \(text)) IS NULL) COLLATE NOCASE)",
      ])
    case 20:
      if chance(50) { return "EXISTS (SELECT 1 FROM _ AS q WHERE q.a \(comparison) \(constant()))" }
      return "META(\(names.inMeta(one(names.documents)))).sequence \(comparison) \(number(0...40))"
    default:
      return chance(30)
        ? "META(\(names.inMeta(one(names.documents)))).deleted = \(chance(70) ? "TRUE" : "FALSE")"
        : "\(value(names, 2))"
    }
  }

  private mutating func not() -> String { chance(80) ? "" : "NOT " }

  // MARK: FROM

  private mutating func from(_ names: inout Names) -> String {
    // The naive evaluator looks at all pairs.
    let allowsJoins = ids.count <= 40
    if chance(15) {
      names.isBare = true
      guard chance(25) else { return "FROM _" }
      names.items.append("u")
      return "FROM _ \(chance(75) ? "" : "LEFT ")UNNEST \(one(["l", "o.y", "a", "TOARRAY(a)"])) AS u"
    }
    var from = "FROM _ AS d"
    func join(_ generator: inout CaseGenerator, _ name: String) -> String {
      let on = generator.one([
        "META(\(name)).id = d.r", "\(name).a = d.a", "\(name).s = d.s AND \(name).b > d.b",
        "\(name).r = META(d).id",
        "META(\(name)).id IN d.l", "\(name).b BETWEEN d.b AND d.b + 1", "\(name).a IN [d.a, d.b]",
        "\(name).`\(Self.composed)` = d.`\(Self.decomposed)`", "\(name).s = d.s",
        "\(name).o.x = d.a AND \(name).a = 1",
        "META(\(name)).sequence = META(d).sequence", "d.b = 2 AND \(name).b = d.b",
        "\(name).b = d.b AND \(name).a = d.a",
        "LOWER(\(name).s) = LOWER(d.s)", "\(name).l = d.l",
        "META(\(name)).id >= META(d).id AND \(name).b = 1",
        "ANY v IN \(name).l SATISFIES v = d.a END", "\(name).b + 1 = d.b",
        "((\(name).s = d.s) COLLATE NOCASE)", "(\(name).s COLLATE NOCASE) = d.s",
        "\(name).s = (d.s COLLATE NOCASE)",
        "\(name).big = d.big AND d.b = 1",
      ])
      if generator.chance(20) { return "ON \(on) AND \(generator.condition(names, 1))" }
      if generator.chance(8) { return "ON \(generator.condition(names, 1))" }
      return "ON \(on)"
    }
    switch number(allowsJoins ? 0...13 : 4...13) {
    case 0...2:
      names.documents.append("e")
      from += " \(one(["JOIN", "JOIN", "LEFT JOIN"])) _ AS e \(join(&self, "e"))"
      if chance(20), ids.count <= 12 {
        names.documents.append("f")
        from += " \(one(["JOIN", "LEFT JOIN"])) _ AS f \(join(&self, "f"))"
      }
    case 3:
      guard ids.count <= 14 else { break }
      names.documents.append("e")
      from += " CROSS JOIN _ AS e"
    case 4...6:
      let array =
        chance(75)
        ? one(["d.l", "d.l", "d.o.y", "d.o", "d.a", "d.s", "d.o.z.x"])
        : one(["[d.a, d.b]", "SPLIT(d.s, '')", "TOARRAY(d.a)", "d", "[1, 2]", value(names, 2)])
      from += " \(chance(75) ? "" : "LEFT ")UNNEST \(array) AS u"
      names.items.append("u")
      if chance(25) {
        from += " \(chance(75) ? "" : "LEFT ")UNNEST \(one(["u", "u.l", "d.l", "u.x"])) AS w"
        names.items.append("w")
      }
      if chance(20), allowsJoins {
        names.documents.append("e")
        from += " JOIN _ AS e ON \(one(["e.a = u", "META(e).id = u", "e.b = u.x", "e.s = d.s"]))"
      }
    default: break
    }
    return from
  }

  // MARK: Queries

  /// The text of a query, and the values of its parameters.
  mutating func query() -> (text: String, parameters: JSONObject) {
    if chance(8), ids.count <= 40 { return (covered(), JSONObject()) }
    if chance(6), ids.count <= 40 { return (outerJoin(), JSONObject()) }
    if chance(20), ids.count <= 40 { return (nested(), JSONObject()) }
    if chance(12), ids.count <= 40 { return (formed(), JSONObject()) }
    var names = Names()
    let from = from(&names)
    var filter: [String] = chance(75) ? [condition(names, chance(50) ? 2 : 1)] : []
    var parameters = JSONObject()
    var match: (index: String, source: String)?
    if !fullText.isEmpty, chance(25) {
      let index = one(fullText)
      let source = one(names.documents)
      let name = names.prefix(source) + index.name
      match = (name, source)
      var text = Self.literal(.string(matchText(index.columns)))
      if chance(15) {
        parameters["m"] = .string(matchText(index.columns))
        text = "$m"
      }
      let term = "MATCH(\(name), \(text))"
      if chance(70) {
        filter.append(term)
      } else {
        filter = ["(\(filter.first ?? "FALSE") OR \(chance(20) ? "NOT " : "")\(term))"]
      }
    }
    if chance(14) {
      parameters["p"] = chance(80) ? scalar() : .array([scalar(), scalar()])
      let subject = path(names)
      switch number(0...5) {
      case 0: filter.append("\(subject) IN $p")
      case 1: filter.append("\(subject) IN ($p, \(constant()))")
      case 2: filter.append("\(subject) BETWEEN $p AND \(constant())")
      case 3: filter.append("\(subject) LIKE $p")
      default: filter.append("\(subject) \(one(["=", "<", ">="])) $p")
      }
    }
    let condition = filter.isEmpty ? "" : " WHERE " + filter.joined(separator: " AND ")
    var text = chance(22) ? grouped(names, from, condition) : plain(names, from, condition, match)
    if chance(4), !text.contains(" LIMIT "), !text.contains(" OFFSET "), !text.contains(" FETCH ") {
      parameters["n"] = JSONValue(number(0...5))
      text += " LIMIT $n"
    }
    return (text, parameters)
  }

  private mutating func matchText(_ columns: [String]) -> String {
    func item(_ generator: inout CaseGenerator) -> String {
      let word = generator.one(Self.words)
      switch generator.number(0...7) {
      case 0: return String(word.prefix(2)) + "*"
      case 1: return "\"\(word) \(generator.one(Self.words))\""
      case 2: return "\(generator.one(columns)):\(word)"
      case 3: return "^\(word)"
      default: return word
      }
    }
    switch number(0...7) {
    case 0: return "\(item(&self)) OR \(item(&self))"
    case 1: return "\(item(&self)) \(item(&self))"
    case 2: return "\(item(&self)) NOT \(item(&self))"
    case 3: return "\(one(Self.words)) NEAR/2 \(one(Self.words))"
    default: return item(&self)
    }
  }

  private mutating func grouped(_ names: Names, _ from: String, _ condition: String) -> String {
    var keys =
      chance(80) ? (0..<(chance(70) ? 1 : 2)).map { _ in chance(85) ? path(names) : value(names, 1) } : []
    if chance(8) {
      keys.append(one(["(1 + 1)", "TRUE", "NULL", "[1]", "META(\(names.inMeta(one(names.documents)))).id"]))
    }
    keys.removeAll { !$0.canOrder }
    let collated = keys.count == 1 && chance(15)
    let small = names.prefix(one(names.documents)) + "b"
    let aggregates = [
      "COUNT(*)", "COUNT(\(path(names)))", "SUM(\(small))", "AVG(\(small))", "MIN(\(path(names)))",
      "MAX(\(path(names)))", "COUNT(DISTINCT \(path(names)))", "SUM(DISTINCT \(small))",
      "MIN(\(value(names, 1)))", "MAX((\(path(names)) COLLATE NOCASE))",
      "COUNT(DISTINCT (\(path(names)) COLLATE NOCASE))", "COUNT(\(value(names, 1)))",
      "ARRAY_LENGTH(ARRAY_AGG(\(path(names))))", "ARRAY_SORT(ARRAY_AGG(DISTINCT \(path(names))))",
      "LENGTH(STRING_AGG(\(path(names)), '--'))", "LENGTH(GROUP_CONCAT(DISTINCT \(small)))",
      "STRING_AGG(\(path(names)), '') FILTER (WHERE \(self.condition(names, 0)))",
      "MIN(\(path(names))) FILTER (WHERE \(self.condition(names, 0)))",
      "ARRAY_LENGTH(ARRAY_AGG(\(path(names))) FILTER (WHERE \(self.condition(names, 0))))",
      "COUNTN(\(path(names)))", "MEDIAN(\(small))",
      "STDDEV(\(small))", "VARIANCE_SAMP(\(small))", "STDDEV_POP(DISTINCT \(small))",
      "COUNT(*) FILTER (WHERE \(self.condition(names, 0)))",
      "SUM(\(small)) FILTER (WHERE \(self.condition(names, 0)))",
    ]
    var columns = keys + ["COUNT(*)"]
    let sets = !keys.isEmpty && chance(20)
    if sets, chance(60) { columns.append("GROUPING(\(keys.joined(separator: ", ")))") }
    for aggregate in aggregates where chance(25) { columns.append(aggregate) }
    let list = named(columns)
    let by = keys.map { collated ? "\($0) COLLATE NOCASE" : $0 }
    let terms = by.joined(separator: ", ")
    let grouping =
      sets
      ? one([
        "ROLLUP(\(terms))", "CUBE(\(terms))", "GROUPING SETS ((\(by[0])), ())",
        "GROUPING SETS ((\(terms)), (\(by[0])), ROLLUP(\(terms)))", "\(by[0]), ROLLUP(\(by[by.count - 1]))",
      ]) : terms
    let group = keys.isEmpty ? "" : " GROUP BY \(grouping)"
    let having =
      !keys.isEmpty && chance(30)
      ? " HAVING \(one(["COUNT(*) > 1", "COUNT(*) = 1", "\(keys[0]) IS VALUED", "((\(keys[0]) >= 'A') COLLATE NOCASE)", "c0 > 0", "MAX(\(path(names))) > 1"]))"
      : ""
    var text = "SELECT \(list) \(from)\(condition)\(group)\(having)"
    if chance(50) {
      var order = keys.isEmpty ? ["COUNT(*)"] : by.filter { $0.canOrder }
      if order.isEmpty { order = ["COUNT(*)"] }
      if chance(30) { order.insert(one(["COUNT(*)", "c0"]), at: 0) }
      text += " ORDER BY " + order.map { $0 + (chance(30) ? " DESC" : "") }.joined(separator: ", ")
    }
    return text + page()
  }

  private mutating func plain(
    _ names: Names, _ from: String, _ condition: String, _ match: (index: String, source: String)?
  ) -> String {
    var columns: [String] = chance(80) ? names.documents.map { "META(\(names.inMeta($0))).id" } : []
    let isDistinct = chance(15)
    if isDistinct {
      columns = (0..<(chance(70) ? 1 : 2)).map { _ in path(names) }
    } else {
      for _ in 0..<number(1...3) { columns.append(value(names, 2)) }
      if chance(12) { columns.append("META(\(names.inMeta(one(names.documents))))") }
      if chance(12) {
        columns.append(names.isBare ? names.items.isEmpty ? "*" : "a" : "\(one(names.documents)).*")
      }
      if let match, chance(70) {
        columns.append(
          one([
            "RANK(\(match.index))", "SNIPPET(\(match.index))", "OFFSETS(\(match.index))",
            "SNIPPET(\(match.index), '[', ']', '..', 3)",
          ]))
      }
    }
    columns += names.items.filter { _ in chance(80) }
    if !isDistinct, chance(15) { for _ in 0..<number(1...2) { columns.append(windowed(names)) } }
    let list = named(columns)
    var text = "SELECT \(isDistinct ? "DISTINCT " : "")\(list) \(from)\(condition)"
    if chance(50) {
      var keys =
        isDistinct ? columns : (0..<number(1...2)).map { _ in chance(80) ? path(names) : value(names, 1) }
      if !isDistinct, chance(15) {
        keys[0] += one([" COLLATE NOCASE", " COLLATE UNICODE", " COLLATE NOCASE"])
      }
      keys.removeAll { !$0.canOrder }
      if !isDistinct, keys.isEmpty || chance(15) { keys.append("c0") }
      if let match, chance(30) { keys = ["RANK(\(match.index))"] + (chance(50) ? [] : keys) }
      text +=
        " ORDER BY "
        + keys.map {
          $0 + (chance(40) ? " DESC" : "") + (chance(12) ? " NULLS \(one(["FIRST", "LAST"]))" : "")
        }
        .joined(separator: ", ")
    }
    return text + page()
  }

  mutating func named(_ columns: [String]) -> String {
    // The first one has an alias, which other clauses name.
    columns.enumerated().map { $0 > 0 && chance(25) ? $1 : "\($1) AS c\($0)" }.joined(separator: ", ")
  }

  mutating func page() -> String {
    if chance(6) {
      let rows = chance(20) ? "" : "\(number(0...6)) "
      return
        "\(chance(40) ? " OFFSET \(number(0...4)) \(one(["ROW", "ROWS"]))" : "") FETCH \(one(["FIRST", "NEXT"])) "
        + "\(rows)\(one(["ROW", "ROWS"])) ONLY"
    }
    var text = chance(25) ? " LIMIT \(number(0...6))" : ""
    if chance(text.isEmpty ? 4 : 40) { text += " OFFSET \(number(0...4))" }
    return text
  }
}

extension String {
  /// Whether it is a term of ORDER BY and GROUP BY. Numbers and texts are refused there.
  var canOrder: Bool {
    (try? SelectStatement(parsing: "SELECT 1 FROM _ ORDER BY \(self)")) != nil
  }
}
