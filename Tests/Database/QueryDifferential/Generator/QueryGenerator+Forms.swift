import Query

// Whole queries of the forms that have few places where they can stand: RAW, EXCLUDE, WITH RECURSIVE, sources about the
// database, names of groups and of windows, and others.

extension CaseGenerator {
  /// A query of one of the forms.
  mutating func formed() -> String {
    let names = Names()
    let filter = chance(60) ? " WHERE \(condition(names, 1))" : ""
    switch number(0...17) {
    case 0:
      let isDistinct = chance(25)
      let order = isDistinct ? "" : one(["", " ORDER BY META(d).id"])
      return
        "SELECT \(isDistinct ? "DISTINCT " : "")\(one(["RAW", "VALUE", "ELEMENT"])) \(value(names, 2)) FROM _ AS d\(filter)\(order)\(page())"
    case 1:
      let paths = (0..<number(1...2)).map { _ in one(["w", "d.a", "d.o.x", "o", "s", "d.o.z.w", "l", "gone"])
      }
      return
        "SELECT d.*, META(d).id AS id, \(value(names, 1)) AS w EXCLUDE \(paths.joined(separator: ", ")) FROM _ AS d\(filter)"
    case 2:
      let values = (0..<number(1...3)).map { "(\(constant())) AS c\($0)" }
      return "SELECT \(values.joined(separator: ", "))"
        + one([
          "", ", (SELECT RAW COUNT(*) FROM _ AS q)[0] AS n", ", COUNT(*) AS n", ", 7 / 2 AS n",
          ", EXISTS (SELECT 1 FROM _ AS q WHERE q.a = 1) AS n",
        ]) + one(["", " WHERE 1 = 1", " WHERE NULL", " LIMIT 1"])
    case 3: return itemSources(filter)
    case 4:
      let indexes = one(["i0", "i1, nope", "i2, i3, i4, i5, i6", "i9, i12, i20"])
      guard chance(40) else { return "SELECT META(d).id, d.b FROM _ AS d USE INDEX (\(indexes))\(filter)" }
      return
        "SELECT META(d).id AS x, META(e).id AS y FROM _ AS d \(one(["JOIN", "LEFT JOIN"])) _ AS e USE INDEX (\(indexes)) ON \(one(["e.a = d.a", "e.b = d.b AND e.a = 1", "e.s = d.s"]))\(filter)"
    case 5:
      return
        "SELECT META(d).id AS x, META(e).id AS y FROM _ AS d \(one(["JOIN", "LEFT JOIN", "NEST"])) _ AS e USING (\(one(["a", "b", "a, b", "s, a"])))"
        .replacingNest()
    case 6: return namedGroups(names, filter)
    case 7: return namedWindows(names, filter)
    case 8, 9: return recursive(names)
    case 10, 11: return inner(names)
    case 12, 13: return aboutDatabase()
    case 14:
      let on = one([
        "e.a = d.a", "META(e).id = d.r", "e.b = d.b AND e.a = 1", "e.r = META(d).id", "e.b > d.b",
      ])
      return
        "SELECT META(d).id, "
        + one([
          "ARRAY_SUM(ARRAY x.b FOR x IN e END) AS n", "ARRAY_LENGTH(e) AS n",
          "ARRAY_SORT(ARRAY x.s FOR x IN e WHEN x.b > 0 END) AS n", "ANY x IN e SATISFIES x.a = d.a END AS n",
        ])
        + " FROM _ AS d \(one(["NEST", "LEFT NEST", "INNER NEST", "LEFT OUTER NEST"])) _ AS e ON \(on)"
        + one([
          "", " WHERE ANY x IN e SATISFIES x.b > 1 END", " WHERE d.b > 0", " WHERE ARRAY_LENGTH(e) > 1",
          " UNNEST e AS u WHERE u.b = d.b",
        ])
    case 15:
      let window = windowed(names)
      return "SELECT META(d).id, \(window) AS w, \(windowed(names)) AS x FROM _ AS d\(filter)"
    case 16:
      // Windows over groups.
      let key = one(["a", "b", "s"])
      return
        "SELECT d.\(key) AS k, COUNT(*) AS c, \(one(["SUM(COUNT(*))", "MAX(COUNT(*))", "COUNT(*)", "AVG(COUNT(*))"])) OVER (ORDER BY d.\(key)\(one(["", " ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING", " GROUPS 2 PRECEDING", " ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING"]))) AS s FROM _ AS d\(filter) GROUP BY d.\(key)"
    default:
      return
        "SELECT META(d).id FROM _ AS d WHERE d.\(one(["a", "b"])) IN (SELECT RAW q.a FROM _ AS q \(one(["UNION", "EXCEPT", "INTERSECT", "UNION ALL"])) SELECT RAW w.b FROM _ AS w WHERE w.s = d.s)\(chance(50) ? "" : " AND " + condition(names, 1))"
    }
  }

  /// Sources that are arrays, also of the sources before them.
  private mutating func itemSources(_ filter: String) -> String {
    let items = "[1, 'a', {\"x\": 2}, NULL, 2.5, [1]]"
    return one([
      "SELECT n, n.x FROM \(items) AS n\(one(["", " WHERE n > 0", " WHERE n IS VALUED ORDER BY n"]))",
      "SELECT META(d).id, l FROM _ AS d, d.l AS l\(filter)",
      "SELECT META(d).id, l FROM _ AS d LEFT JOIN d.l AS l ON l = d.b\(filter)",
      "SELECT META(d).id, l.x FROM _ AS d JOIN (SELECT q.b AS x FROM _ AS q WHERE q.a = d.a) AS l ON l.x > 1",
      "SELECT n, META(d).id FROM \(items) AS n JOIN _ AS d ON d.a = n",
      "SELECT n, COUNT(*) AS c FROM \(items) AS n LEFT JOIN _ AS d ON d.b = n GROUP BY n",
      "SELECT META(d).id, n FROM _ AS d CROSS JOIN [1, 2] AS n\(filter)",
      "SELECT o.x, o.y FROM _ AS d, d.o AS o\(filter)",
    ])
  }

  private mutating func namedGroups(_ names: Names, _ filter: String) -> String {
    let letting = one([
      "", " LETTING m = SUM(d.b)", " LETTING m = COUNT(*), h = m * 2", " LETTING m = MAX(d.s)",
    ])
    var columns = ["k", "COUNT(*) AS c"]
    if !letting.isEmpty { columns.append("m") }
    let array = chance(40) ? " GROUP AS g" : ""
    if !array.isEmpty {
      columns.append(
        one([
          "ARRAY_LENGTH(g) AS n", "ARRAY_SUM(ARRAY x.d.b FOR x IN g END) AS n",
          "ARRAY_SORT(ARRAY x.d.s FOR x IN g WHEN x.d.b > 0 END) AS n",
        ]))
    }
    let having = !letting.isEmpty && chance(50) ? " HAVING m \(one(["> 1", "IS VALUED", "= 2"]))" : ""
    return
      "SELECT \(columns.joined(separator: ", ")) FROM _ AS d\(filter) GROUP BY \(one(["d.a", "d.b", "d.s", "d.o.x", "TYPE(d.a)"])) AS k\(array)\(letting)\(having)\(one(["", " ORDER BY k"]))"
  }

  private mutating func namedWindows(_ names: Names, _ filter: String) -> String {
    let call = one(["SUM(d.b)", "COUNT(*)", "MIN(d.a)", "MAX(d.s)", "AVG(d.b)", "COUNT(DISTINCT d.b)"])
    return
      "SELECT META(d).id, \(call) OVER w AS s, COUNT(d.a) OVER (w ROWS \(number(0...2)) PRECEDING) AS c, "
      + "\(one(["ROW_NUMBER()", "RANK()", "LAG(d.b)", "FIRST_VALUE(d.s)"])) OVER (p ORDER BY META(d).id) AS r, \(call) OVER p AS t "
      + "FROM _ AS d\(filter) WINDOW p AS (\(one(["PARTITION BY d.a", "PARTITION BY d.b, d.s", ""]))), "
      + "w AS (p ORDER BY d.b\(one(["", " DESC"])), META(d).id)"
  }

  private mutating func recursive(_ names: Names) -> String {
    let start = chance(50) ? condition(names, 0) : "d.b >= 1"
    let all = one(["UNION", "UNION ALL"])
    let levels = one(["", "", " OPTIONS {\"levels\": \(number(0...3))}", " OPTIONS {\"documents\": 100000}"])
    let chain =
      "WITH RECURSIVE r AS (SELECT META(d).id AS i, d.r AS n, 0 AS l FROM _ AS d WHERE \(start) \(all) "
      + "SELECT META(e).id AS i, e.r AS n, r.l + 1 AS l FROM r JOIN _ AS e ON META(e).id = r.n WHERE r.l < \(number(0...2)))\(levels) "
    let set =
      "WITH RECURSIVE r AS (SELECT RAW d.r FROM _ AS d WHERE \(start) UNION SELECT RAW e.r FROM r JOIN _ AS e ON META(e).id = r)\(levels) "
    let count =
      "WITH RECURSIVE n AS (SELECT RAW \(number(0...2)) \(all) SELECT RAW x + 1 FROM n AS x WHERE x < \(number(0...6)))\(levels) "
    return one([
      chain + "SELECT r.i, r.l FROM r", chain + "SELECT r.l, COUNT(*) AS c FROM r GROUP BY r.l",
      chain + "SELECT r.i, r.l FROM r ORDER BY r.l DESC, r.i",
      chain + "SELECT META(d).id FROM _ AS d WHERE META(d).id IN (SELECT RAW r.i FROM r WHERE r.l > 0)",
      set + "SELECT COUNT(*) AS c FROM r", set + "SELECT RAW r FROM r",
      set + "SELECT META(d).id, d.a FROM _ AS d JOIN r ON r = META(d).id",
      count + "SELECT RAW x FROM n AS x",
      count + "SELECT x, META(d).id FROM n AS x LEFT JOIN _ AS d ON d.b = x",
      count + "SELECT SUM(x) AS s, COUNT(*) AS c FROM n AS x",
      "SELECT META(d).id, (\(count)SELECT RAW x + d.b FROM n AS x ORDER BY x) AS v FROM _ AS d",
    ])
  }

  /// LET, WITH, windows and groups inside of inner queries.
  private mutating func inner(_ names: Names) -> String {
    let value = one([
      "(SELECT RAW k FROM _ AS q LET k = q.b + d.b WHERE k > 1 ORDER BY META(q).id)",
      "(SELECT k, m FROM _ AS q LET k = q.a, m = [k, d.a] WHERE m[0] = m[1] ORDER BY META(q).id)",
      "(SELECT RAW SUM(k) FROM _ AS q LET k = q.b * 2 WHERE q.a = d.a)[0]",
      "(WITH w AS (SELECT RAW q.b FROM _ AS q WHERE q.a = d.a ORDER BY q.b) SELECT RAW x FROM w AS x WHERE x >= 1 ORDER BY x)",
      "(SELECT q.a, COUNT(*) AS c FROM _ AS q WHERE q.b = d.b GROUP BY q.a ORDER BY q.a)",
      "(SELECT RAW COUNT(*) OVER (ORDER BY META(q).id ROWS 1 PRECEDING) FROM _ AS q WHERE q.b = d.b ORDER BY META(q).id)",
      "(SELECT RAW u FROM _ AS q UNNEST q.l AS u WHERE q.b = d.b ORDER BY META(q).id, u)",
      "(SELECT RAW q.b FROM _ AS q WHERE META(q).id > META(d).id ORDER BY META(q).id OFFSET 1 ROW FETCH NEXT 2 ROWS ONLY)",
      "ARRAY (SELECT RAW COUNT(*) FROM _ AS q WHERE q.a = v)[0] FOR v IN d.l END",
      "(SELECT RAW q.s FROM d.l AS q WHERE q.x IS VALUED)",
    ])
    let condition = chance(50) ? condition(names, 1) : nestedCondition(names)
    return one([
      "SELECT META(d).id, \(value) AS v FROM _ AS d WHERE \(condition)",
      "SELECT META(d).id, v FROM _ AS d LET v = \(value) WHERE \(condition)",
      "SELECT META(d).id FROM _ AS d LET v = \(value) WHERE v = d.a OR v IS NOT VALUED OR v != []",
    ])
  }

  /// Sources about the database.
  private mutating func aboutDatabase() -> String {
    one([
      "SELECT 1 AS one, s FROM system:dual AS s", "SELECT k.name, k.count FROM system:keyspaces AS k",
      "SELECT META(d).id FROM _ AS d WHERE d.b <= (SELECT RAW k.count FROM system:keyspaces AS k)[0]",
      "SELECT META(d).id, u.name FROM _ AS d JOIN system:keyspaces AS u ON u.count > d.b",
      "SELECT i.name, i.index_key, i.`using`, i.condition, i.state FROM system:indexes AS i WHERE i.unnest IS MISSING ORDER BY i.name",
      "SELECT i.`using`, COUNT(*) AS c FROM system:indexes AS i GROUP BY i.`using`",
      "SELECT META(d).id, i.name FROM _ AS d, system:indexes AS i WHERE i.name = 'i' || TOSTRING(d.b)",
      "SELECT s.`#docs` AS n, s.properties.b.`#docs` AS b, s.properties.a.type AS t, s.properties.o.`%docs` AS p FROM system:schema AS s",
      "SELECT META(d).id FROM _ AS d WHERE d.b * 10 > (SELECT RAW s.`#docs` FROM system:schema AS s)[0]",
      "SELECT RAW s.properties.\(one(["a", "b", "s", "l", "r", "t"])).`#docs` FROM system:schema AS s",
      "SELECT RAW k.count FROM system:keyspaces AS k UNION SELECT RAW d.b FROM _ AS d",
    ])
  }
}

extension String {
  /// NEST shows no documents of its second source.
  fileprivate func replacingNest() -> String {
    contains(" NEST ") ? replacing("META(e).id AS y", with: "ARRAY_LENGTH(e) AS y") : self
  }
}
