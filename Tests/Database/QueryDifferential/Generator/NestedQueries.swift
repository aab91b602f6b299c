import Query

// The texts of random queries with queries inside: subqueries, sets, WITH, LET, NEST, outer joins.

extension CaseGenerator {
  /// A condition on a document of `d` that asks another query.
  mutating func nestedCondition(_ names: Names) -> String {
    let outer = "\(names.prefix(one(names.documents)))\(one(["a", "b", "s", "r"]))"
    let link = one([
      "q.a = \(outer)", "q.b > \(outer)", "META(q).id = \(outer)", "q.s = \(outer) AND q.b = 1",
      "q.r = \(outer)",
      "q.a IN [\(outer), 1]", "q.b = 2",
    ])
    switch number(0...7) {
    case 0, 1: return "\(chance(80) ? "" : "NOT ")EXISTS (SELECT 1 FROM _ AS q WHERE \(link))"
    case 2:
      return
        "\(outer) \(chance(70) ? "" : "NOT ")IN (SELECT RAW q.\(one(["a", "b", "s"])) FROM _ AS q WHERE q.b \(one(["=", "<", ">"])) 2)"
    case 3: return "\(outer) IN (SELECT RAW q.b FROM _ AS q WHERE \(link))"
    case 4: return "ARRAY_LENGTH((SELECT q.a FROM _ AS q WHERE \(link))) > \(number(0...2))"
    case 5:
      return "(SELECT RAW COUNT(*) FROM _ AS q WHERE \(link))[0] \(one(["=", ">", "<="])) \(number(0...2))"
    case 6: return "ANY v IN (SELECT VALUE q.b FROM _ AS q WHERE \(link)) SATISFIES v >= 1 END"
    default: return "\(outer) = (SELECT RAW MAX(q.b) FROM _ AS q WHERE \(link))[0]"
    }
  }

  /// A whole query of one of the forms.
  mutating func nested() -> String {
    switch number(0...9) {
    case 0, 1:
      let names = Names()
      let extra = chance(40) ? " AND " + condition(names, 1) : ""
      return "SELECT META(d).id, d.a FROM _ AS d WHERE \(nestedCondition(names))\(extra)"
    case 2:
      let names = Names()
      let value = one([
        "(SELECT RAW COUNT(*) FROM _ AS q WHERE q.a = d.a)[0]",
        "(SELECT RAW SUM(q.b) FROM _ AS q WHERE q.b = d.b)[0]",
        "ARRAY_LENGTH((SELECT q.s FROM _ AS q WHERE q.s = d.s))",
        "(SELECT q.b, META(q).id AS id FROM _ AS q WHERE q.a = d.a ORDER BY META(q).id LIMIT 2)",
        "(SELECT RAW META(q).id FROM _ AS q WHERE q.b = d.b ORDER BY META(q).id DESC)",
        "EXISTS (SELECT 1 FROM _ AS q WHERE q.r = META(d).id)",
        "(SELECT RAW (SELECT RAW COUNT(*) FROM _ AS w WHERE w.a = q.a AND w.b = d.b)[0] FROM _ AS q WHERE q.r = d.r ORDER BY META(q).id)",
      ])
      return "SELECT META(d).id, \(value) AS v FROM _ AS d WHERE \(condition(names, 1))"
    case 3: return sets()
    case 4:
      let names = Names()
      let inner = one([
        "SELECT d.a, d.b, d.s FROM _ AS d WHERE \(condition(names, 1))",
        "SELECT d.b, COUNT(*) AS a FROM _ AS d GROUP BY d.b", "SELECT DISTINCT d.a, d.b FROM _ AS d",
        "SELECT d.a, d.b FROM _ AS d ORDER BY META(d).id LIMIT 3", "SELECT VALUE d FROM _ AS d WHERE d.a = 1",
      ])
      let rest = one([
        "WHERE t.b > 0", "", "WHERE a IS VALUED", "JOIN _ AS e ON e.a = t.a",
        "LEFT JOIN _ AS e ON META(e).id = t.s",
        "UNNEST [1, 2] AS u",
      ])
      return "SELECT t.a, t.b FROM (\(inner)) AS t \(rest)"
    case 5:
      let names = Names()
      return
        "WITH w AS (SELECT d.a, d.b FROM _ AS d WHERE \(condition(names, 1))), n AS (ARRAY_LENGTH(w)) "
        + one([
          "SELECT w.a, n FROM w", "SELECT x.a, y.b FROM w AS x JOIN w AS y ON x.a = y.b",
          "SELECT META(d).id FROM _ AS d WHERE d.a IN (SELECT RAW w.a FROM w)",
          "SELECT n, COUNT(*) AS c FROM w GROUP BY w.a",
          "SELECT w.b FROM w UNION SELECT d.b FROM _ AS d WHERE d.b > n",
          "SELECT META(d).id FROM _ AS d JOIN w ON w.a = d.a",
        ])
    case 6:
      let names = Names()
      let order = chance(50) ? " ORDER BY k, META(d).id" : ""
      return
        "SELECT META(d).id, k, m FROM _ AS d LET k = \(value(names, 1)), m = [k, d.b] WHERE "
        + one(["k IS VALUED", "k = d.a", condition(names, 1), "m[0] = m[1]", "k > 1"]) + order
    case 7:
      guard ids.count <= 40 else { return sets() }
      let on = one([
        "e.a = d.a", "META(e).id = d.r", "e.s = d.s AND e.b > d.b", "e.b = d.b AND d.a = 1",
        "e.r = META(d).id",
        "e.a = 1",
      ])
      let filter = one([
        "", "", " WHERE d.a IS MISSING", " WHERE e.b = 1", " WHERE d.b = e.b", " WHERE d.b > 0 OR e.a = 2",
      ])
      return
        "SELECT META(d).id AS x, META(e).id AS y, e.a FROM _ AS d \(one(["RIGHT", "FULL", "FULL OUTER", "RIGHT OUTER"])) JOIN _ AS e ON \(on)\(filter)"
    case 8:
      guard ids.count <= 40 else { return sets() }
      let on = one(["e.a = d.a", "META(e).id = d.r", "e.b = d.b AND e.a = 1", "e.r = META(d).id"])
      return
        "SELECT META(d).id, ARRAY_LENGTH(e) AS n FROM _ AS d \(one(["NEST", "LEFT NEST"])) _ AS e ON \(on)\(chance(40) ? " WHERE d.a IS VALUED" : "")"
    default:
      let keys = one(["'d1'", "['d1', 'd2', 'zz']", "[d.r]", "[]"])
      guard keys == "[d.r]" else {
        return "SELECT META().id, a FROM _ USE KEYS \(keys) WHERE b IS NOT MISSING"
      }
      return "SELECT META(d).id AS x, META(e).id AS y FROM _ AS d JOIN _ AS e ON KEYS d.\(one(["r", "l"]))"
    }
  }

  /// Queries combined by sets.
  private mutating func sets() -> String {
    let isRaw = chance(40)
    func operand(_ generator: inout CaseGenerator) -> String {
      let path = generator.one(["a", "b", "s"])
      return
        "SELECT \(isRaw ? "RAW d.\(path)" : "d.\(path) AS v, d.b AS w") FROM _ AS d WHERE \(generator.condition(Names(), 1))"
    }
    func sign(_ generator: inout CaseGenerator) -> String {
      generator.one(["UNION", "INTERSECT", "EXCEPT"]) + (generator.chance(50) ? " ALL" : "")
    }
    var text = "\(operand(&self)) \(sign(&self)) \(operand(&self))"
    if chance(30) { text += " \(sign(&self)) \(operand(&self))" }
    if chance(20) { text = "\(operand(&self)) \(sign(&self)) (\(text))" }
    if chance(15) { return "SELECT COUNT(*) AS n FROM (\(text)) AS t" }
    if !isRaw, chance(40) { text += " ORDER BY v, w" }
    return text
  }
}
