// Queries that indexes answer alone.

extension CaseGenerator {
  /// A query that reads nothing of its last source but what one of the indexes may hold: such are answered from entries alone.
  mutating func covered() -> String {
    let indexed = one([
      ["a"], ["s", "b"], ["b", "a"], ["r"], ["a", "b", "s"], ["o.x", "a"], ["big", "a"], ["l[0]", "s"],
    ])
    let isJoin = chance(75)
    let name = isJoin ? "e" : "d"
    let columns = indexed.map { "\(name).\($0)" }
    var from = "FROM _ AS d"
    if isJoin {
      let other = one(["d.\(indexed[0])", "d.a", "d.b", "d.s", "d.r", "META(d).id", "d.l[0]"])
      from += " \(one(["JOIN", "LEFT JOIN", "LEFT OUTER JOIN"])) _ AS e ON \(columns[0]) = \(other)"
      if chance(20) { from += " AND \(one(columns)) \(one(["<", ">=", "!=", "="])) \(constant())" }
    }
    var filter = ""
    if chance(isJoin ? 25 : 75) {
      filter =
        " WHERE \(chance(75) ? columns[0] : one(columns)) "
        + one([
          "= \(constant())", "> \(constant())", "IN (\(constant()), \(constant()))", "IS MISSING",
          "IS NOT MISSING",
          "IS VALUED", "IS NULL", "BETWEEN \(constant()) AND \(constant())",
        ])
    }
    if chance(15), columns[0].canOrder {
      return
        "SELECT \(columns[0]) AS c0, COUNT(*), COUNT(\(one(columns))) \(from)\(filter) GROUP BY \(columns[0])"
    }
    var selected = chance(50) ? [columns[0]] : columns.filter { _ in chance(60) }
    if selected.isEmpty || chance(20) { selected.append("META(\(name)).id") }
    if isJoin, chance(30) { selected.append(one(["META(d).id", "d.a", "d.s"])) }
    if !isJoin, chance(25) {
      // Numbers in the order of the index, which are counted as rows come.
      let isDescending = chance(30)
      let order = columns.map { $0 + (isDescending ? " DESC" : "") }.joined(separator: ", ")
      let call = one([
        "ROW_NUMBER()", "ROW_NUMBER()", "RANK()", "DENSE_RANK()", "COUNT(*)", "SUM(d.b)",
      ])
      let partition = chance(25) ? "PARTITION BY \(columns[0]) " : ""
      return
        "SELECT \(named(selected)), \(call) OVER (\(partition)ORDER BY \(order)) AS r \(from)\(filter) ORDER BY \(order)"
    }
    var text = "SELECT \(chance(15) ? "DISTINCT " : "")\(named(selected)) \(from)\(filter)"
    if chance(30) {
      let keys = chance(60) ? columns : [one(columns)]
      text += " ORDER BY " + keys.map { $0 + (chance(40) ? " DESC" : "") }.joined(separator: ", ")
    }
    return text + page()
  }

  /// An outer join that reads nothing of a source but the expressions of one index. They may have values
  /// for rows without a match.
  mutating func outerJoin() -> String {
    func expressions(_ generator: inout CaseGenerator, _ source: String) -> [String] {
      generator.one(Self.computed).map { $0.replacing("$.", with: "\(source).") }
    }
    let (inner, outer) = (expressions(&self, "e"), expressions(&self, "d"))
    func test(_ generator: inout CaseGenerator, _ all: [String]) -> String {
      let subject = generator.one(all)
      return generator.one([
        "\(subject) = \(generator.constant())", "\(subject) != \(generator.constant())",
        "\(subject) IS MISSING", "\(subject) IS NOT VALUED", "\(subject) IS VALUED", "\(subject)",
        "\(subject) IN ('missing', 'none', 0, 1)", "\(subject) > \(generator.constant())",
        "\(subject) != \(generator.one(inner + outer))", "NOT (\(subject) = 'number')",
      ])
    }
    var from = "FROM _ AS d LEFT JOIN _ AS e ON \(one(inner)) = "
    from += one(chance(70) ? outer : ["d.a", "d.b", "d.r", "META(d).id", "TYPE(d.a)"])
    if chance(30) { from += " AND \(test(&self, inner))" }
    if chance(15), ids.count <= 12 {
      let last = inner.map { $0.replacing("e.", with: "f.") }
      from += " LEFT JOIN _ AS f ON \(one(last)) = \(one(inner + outer))"
    }
    var filter: [String] = []
    if chance(50) { filter.append(test(&self, inner)) }
    if chance(25) { filter.append(test(&self, outer)) }
    if filter.count == 2, chance(40) { filter = ["(\(filter[0]) OR \(filter[1]))"] }
    let condition = filter.isEmpty ? "" : " WHERE " + filter.joined(separator: " AND ")
    let columns = inner + outer
    if chance(15), case let key = one(inner), key.canOrder {
      return "SELECT \(key) AS c0, COUNT(*), COUNT(\(one(inner))) \(from)\(condition) GROUP BY \(key)"
    }
    var selected = inner.filter { _ in chance(60) } + outer.filter { _ in chance(30) }
    if selected.isEmpty || chance(20) { selected.append("META(e).id") }
    if chance(20) { selected.append("META(d).id") }
    var text = "SELECT \(chance(15) ? "DISTINCT " : "")\(named(selected)) \(from)\(condition)"
    if chance(30) { text += " ORDER BY \(one(columns))\(chance(40) ? " DESC" : "")" }
    return text + page()
  }
}
