import Query

// What the SQL++ reference adds to expressions: loops, subscripts, functions and windows.

extension CaseGenerator {
  /// A loop, a subscript or a function over values.
  mutating func collected(_ names: Names, _ inner: String, _ depth: Int) -> String {
    let collection = names.prefix(one(names.documents)) + one(["l", "l", "o.y", "o", "a"])
    let other = names.prefix(one(names.documents)) + one(["l", "o.y", "o"])
    let when = chance(50) ? " WHEN \(one(["v > 0", "v IS VALUED", "v LIKE 'a%'", "v.x = 1"]))" : ""
    let result = one(["v", "v", "v.x", "[v]", "v + 1", inner])
    switch number(0...11) {
    case 0: return "ARRAY \(result) FOR v IN \(collection)\(when) END"
    case 1: return "FIRST \(result) FOR v \(one(["IN", "WITHIN"])) \(collection)\(when) END"
    case 2: return "ARRAY [v, w] FOR v IN \(collection), w IN \(other)\(when) END"
    case 3: return "ARRAY [p, v] FOR p : v \(one(["IN", "WITHIN"])) \(collection)\(when) END"
    case 4: return "OBJECT TOSTRING(p) : v FOR p : v IN \(collection)\(when) END"
    case 5:
      return
        "\(collection)[\(one(["0 + 1", "d0", "'x' || ''", "LENGTH('a')", inner]).replacing("d0", with: "-1 + 0"))]"
    case 6: return "\(collection)[\(one(["0", "1", "-2", "", "'a'"])):\(one(["1", "2", "-1", "", "NULL"]))]"
    case 7: return "\(collection).[\(one(["'x'", "'x' || ''", inner]))]"
    case 8: return "{\(one(["TOSTRING(\(inner))", "'k' || ''", inner])): \(inner), 'x': 1}"
    case 9: return "\(collection)[*].x"
    case 10:
      return one([
        "ARRAY_DISTINCT(\(collection))", "ARRAY_SORT(\(collection))", "ARRAY_REVERSE(\(collection))",
        "ARRAY_UNION(\(collection), \(other))", "ARRAY_EXCEPT(\(collection), \(other))",
        "ARRAY_FLATTEN(\(collection), 1)", "ARRAY_POSITION(\(collection), \(inner))",
        "ARRAY_PREPEND(\(inner), \(collection))", "OBJECT_NAMES(\(collection))",
        "OBJECT_PATHS(\(collection))",
        "OBJECT_PUT(\(collection), 'x', \(inner))", "PAIRS(\(collection))", "TOKENS(\(inner))",
      ])
    default:
      return one([
        "NVL(\(inner), 1)", "NVL2(\(inner), 1, 2)", "DECODE(\(inner), 1, 'a', 'b')",
        "LPAD(\(inner), 3, 'xy')",
        "RIGHT(\(inner), 1)", "SUFFIXES(\(inner))", "ENCODE_JSON(\(inner))", "LEN(\(inner))",
        "BASE64_ENCODE(\(inner))", "BITXOR(\(inner), 5)", "REGEXP_MATCHES(\(inner), '[ab]')",
        "MASK(\(inner))",
        "ENCODED_SIZE(\(inner))", "CONCAT2('-', \(inner), 'b')",
      ])
    }
  }

  /// A condition over collections.
  mutating func collectionTest(_ names: Names, _ subject: String) -> String {
    let collection = names.prefix(one(names.documents)) + one(["l", "l", "o.y", "o", "a"])
    let other = names.prefix(one(names.documents)) + one(["l", "o.y"])
    let quantifier = one(["ANY", "EVERY", "ANY AND EVERY"])
    switch number(0...5) {
    case 0: return "\(subject) \(chance(80) ? "" : "NOT ")WITHIN \(collection)"
    case 1: return "\(quantifier) v WITHIN \(collection) SATISFIES v = \(subject) END"
    case 2: return "\(quantifier) v IN \(collection), w IN \(other) SATISFIES v = w END"
    case 3: return "\(quantifier) p : v IN \(collection) SATISFIES p > 0 OR v = 1 END"
    case 4: return "\(subject) IS \(chance(50) ? "" : "NOT ")DISTINCT FROM \(other)"
    default: return "\(subject) LIKE 'a!%' ESCAPE '!'"
    }
  }

  /// A conversion, or a function that came with other dialects.
  mutating func converted(_ inner: String, _ path: String) -> String {
    let type = one([
      "STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "ATOM", "text", "int", "double", "bool",
    ])
    let metric = one(["L2", "l2_squared", "COSINE", "DOT", "EUCLIDEAN"])
    switch number(0...6) {
    case 0, 1: return "CAST(\(inner) AS \(type))"
    case 2: return "(\(inner))::\(type)"
    case 3: return "\(path)::\(type)::string"
    case 4: return "VECTOR_DISTANCE([1, \(inner)], [\(path), 2.5], '\(metric)')"
    case 5:
      return
        "\(one(["EUCLIDEAN_DISTANCE", "SQUARED_EUCLIDEAN_DISTANCE", "COSINE_DISTANCE"]))(\(inner), [1, \(path)])"
    default:
      return
        "BASE64_ENCODE(HASHBYTES(\(inner)\(one(["", ", 'md5'", ", 'sha512'", ", {'algorithm': 'crc32'}"]))))"
    }
  }

  /// ILIKE and REGEXP.
  mutating func patternTest(_ names: Names, _ subject: String) -> String {
    let not = chance(75) ? "" : "NOT "
    if chance(50) { return "\(subject) \(not)ILIKE \(one(["'a%'", "'%B'", "'_'", "'ab'", path(names)]))" }
    return "\(subject) \(not)REGEXP \(one(["'a'", "'[aA]b?'", "'^[^b]$'", "'a*'", "''"]))"
  }

  /// A function over a window.
  mutating func windowed(_ names: Names) -> String {
    let source = names.documents[0]
    let prefix = names.prefix(source)
    let partition = chance(60) ? "PARTITION BY \(prefix)\(one(["a", "b", "s"])) " : ""
    let term =
      prefix + one(["a", "b", "s", "big"]) + (chance(30) ? " DESC" : "") + (chance(15) ? " NULLS LAST" : "")
    // The IDs of all sources make an order complete, but where rows also come from arrays.
    let total = ([term] + names.documents.map { "META(\(names.inMeta($0))).id" }).joined(separator: ", ")
    let order = "ORDER BY \(chance(60) ? total : term)"
    let value = prefix + one(["a", "b", "b", "s"])
    let varying = "LENGTH(TYPE(\(prefix)\(one(["a", "s", "l"]))))"
    let nulls = chance(30) ? " IGNORE NULLS" : ""
    switch number(0...7) {
    case 0:
      return
        "\(one(["ROW_NUMBER()", "RANK()", "DENSE_RANK()", "NTILE(3)"])) OVER (\(partition)ORDER BY \(total))"
    case 1:
      return "\(one(["PERCENT_RANK()", "CUME_DIST()", "RANK()", "DENSE_RANK()"])) OVER (\(partition)\(order))"
    case 2:
      let call = "\(one(["LAG", "LEAD"]))(\(value)\(one(["", ", 2", ", 1, 'none'"])))"
      return "\(call)\(nulls) OVER (\(partition)ORDER BY \(total))"
    case 3:
      let call = one([
        "FIRST_VALUE(\(value))", "LAST_VALUE(\(value))", "NTH_VALUE(\(value), 2)",
        "NTH_VALUE(\(value), 2) FROM LAST",
      ])
      return "\(call)\(nulls) OVER (\(partition)ORDER BY \(total)\(frame(varying)))"
    case 4:
      let bounds = one([
        "1 PRECEDING AND 1 FOLLOWING", "UNBOUNDED PRECEDING AND 1 PRECEDING",
        "1 FOLLOWING AND UNBOUNDED FOLLOWING",
        "0.5 FOLLOWING AND 3 FOLLOWING", "CURRENT ROW AND 2 FOLLOWING", "2 PRECEDING AND 1 PRECEDING",
        "1.5 PRECEDING AND UNBOUNDED FOLLOWING", "UNBOUNDED PRECEDING AND 1 FOLLOWING",
        "0 PRECEDING AND CURRENT ROW",
        "\(varying) PRECEDING AND 1 FOLLOWING", "2 FOLLOWING AND \(varying) FOLLOWING",
      ])
      return
        "\(aggregated(prefix, value)) OVER (\(partition)ORDER BY \(prefix)b\(chance(30) ? " DESC" : "") RANGE BETWEEN \(bounds)\(exclusion()))"
    case 5: return "\(aggregated(prefix, value)) OVER (\(partition))"
    default:
      let (frame, call) = (frame(varying), aggregated(prefix, value))
      return "\(call) OVER (\(partition)\(frame.hasPrefix(" ROWS") ? "ORDER BY " + total : order)\(frame))"
    }
  }

  private mutating func aggregated(_ prefix: String, _ value: String) -> String {
    one([
      "COUNT(*)", "COUNT(\(value))", "SUM(\(prefix)b)", "AVG(\(prefix)b)", "MIN(\(prefix)b)",
      "MAX(\(prefix)b)",
      "COUNT(DISTINCT \(value))", "SUM(\(prefix)b) FILTER (WHERE \(value) IS VALUED)",
      "RATIO_TO_REPORT(\(prefix)b)",
      "COUNTN(\(value))", "MEDIAN(\(prefix)b)", "MIN(\(value))", "MAX(\(value))", "AVG(\(value))",
      "SUM(\(value))",
      "MAX(\(value)) FILTER (WHERE \(prefix)b > 0)", "COUNT(*) FILTER (WHERE \(prefix)a IS VALUED)",
      "SUM(DISTINCT \(prefix)b)", "VARIANCE(\(prefix)b)",
    ])
  }

  /// A frame of any kind. `varying` is a distance that differs from row to row.
  private mutating func frame(_ varying: String) -> String {
    if chance(20) { return "" }
    // By their order: the end isn't before the start.
    let distance = chance(80) ? "\(number(0...3))" : varying
    func bound(_ rank: Int) -> String {
      [
        "UNBOUNDED PRECEDING", "\(distance) PRECEDING", "CURRENT ROW", "\(distance) FOLLOWING",
        "UNBOUNDED FOLLOWING",
      ][rank]
    }
    let unit = one(["ROWS", "ROWS", "GROUPS", "RANGE"])
    // Distances of RANGE need one term, and have a case of their own.
    let start = unit == "RANGE" ? one([0, 2]) : number(0...3)
    if start <= 2, chance(15) { return " \(unit) \(bound(start))" + exclusion() }
    let ends = (unit == "RANGE" ? [2, 4] : [1, 2, 3, 4]).filter { $0 >= start }
    return " \(unit) BETWEEN \(bound(start)) AND \(bound(one(ends)))" + exclusion()
  }

  private mutating func exclusion() -> String {
    one(["", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"])
  }
}
