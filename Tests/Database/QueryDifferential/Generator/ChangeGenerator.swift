import Query

// The texts of random statements that change documents.

extension CaseGenerator {
  /// Changes of documents, among them a statement.
  mutating func changesByStatements() -> [DatabaseStep] {
    var steps = changes()
    for _ in 0..<number(0...2) {
      steps.insert(.change(statement()), at: number(0...steps.count))
    }
    return steps
  }

  /// UPDATE, DELETE, INSERT, UPSERT or MERGE.
  mutating func statement() -> String {
    let names = Names()
    let filter = chance(85) ? " WHERE \(chance(80) ? condition(names, 1) : nestedCondition(names))" : ""
    switch number(0...11) {
    case 0...2:
      var terms = (0..<number(1...2)).map { _ in "\(place()) = \(value(names, 1))" }
      if chance(25) { terms.append("o = {\"x\": \(path(names)), \"y\": [d.b]}") }
      let unset = chance(30) ? " UNSET \(place())" : ""
      return "UPDATE _ AS d SET \(terms.joined(separator: ", "))\(unset)\(filter)\(returning())"
    case 3: return "UPDATE _ AS d UNSET \(place()), \(place())\(filter)\(returning())"
    case 4:
      let when = one(["", " WHEN v.x IS VALUED", " WHEN v.x = 'a'", " WHEN d.b > 0", " WHEN v.x"])
      return
        "UPDATE _ AS d SET v.x = \(one(["1", "v.x", "d.b", "b", "[v.x, b]", "MISSING", "[v.x]"])) FOR v IN d.\(one(["l", "o.y"]))\(when) END\(filter)\(returning())"
    case 5:
      return
        "UPDATE _ AS d \(one(["SET w.x = 7", "UNSET w.x", "SET w.x = v.x", "SET w.x = b"])) FOR w IN v.l FOR v IN d.l\(one(["", " WHEN v.x IS VALUED"])) END\(returning())"
    case 6:
      return
        "DELETE FROM _ AS d WHERE \(condition(names, 1)) AND d.b \(one(["> 1", "= 0", "IS MISSING"]))\(returning())"
    case 7:
      let pairs = (0..<number(1...2)).map { _ in
        "(\(chance(85) ? "'u\(number(0...6))'" : Self.literal(.string(one(ids)))), {\"a\": \(constant()), \"b\": \(number(0...3))})"
      }
      return
        "\(one(["INSERT", "UPSERT", "UPSERT"])) INTO _ AS d (KEY, VALUE) VALUES \(pairs.joined(separator: ", "))\(returning())"
    case 8:
      return
        "\(one(["INSERT", "UPSERT", "UPSERT"])) INTO _ AS d (KEY 'c' || i\(chance(70) ? ", VALUE {\"a\": v, \"of\": i}" : "")) SELECT META(d).id AS i, \(value(names, 1)) AS v FROM _ AS d WHERE d.b = \(number(0...3)) AND \(condition(names, 0))\(returning())"
    default: return merge(names)
    }
  }

  private mutating func merge(_ names: Names) -> String {
    let source = one([
      "[{\"k\": 'd1', \"n\": 1}, {\"k\": 'u\(number(0...6))', \"n\": 2.5}, {\"k\": 'd3', \"n\": NULL}]",
      "(SELECT META(q).id AS k, q.b AS n FROM _ AS q WHERE q.b = \(number(0...3)))",
      "(SELECT DISTINCT RAW {\"k\": q.r, \"n\": 1} FROM _ AS q WHERE q.r LIKE 'd%')",
      "(SELECT 'm' || META(q).id AS k, q.a AS n FROM _ AS q WHERE q.b = \(number(0...3)))",
    ])
    let on = one(["KEY s.k", "KEY s.k", "META(d).id = s.k", "d.b = s.n AND d.a = 1"])
    var text = "MERGE INTO _ AS d USING \(source) AS s ON \(on)"
    let condition =
      chance(40) ? " WHERE \(one(["d.b > 0", "s.n IS VALUED", "d.a", "d.b = s.n", condition(names, 0)]))" : ""
    if chance(75) { text += " WHEN MATCHED THEN UPDATE SET d.m = s.n, \(place()) = d.b\(condition)" }
    if chance(25) { text += " WHEN MATCHED THEN DELETE WHERE \(one(["d.b = 0", "s.n = 1", "d.s"]))" }
    if chance(60) || !text.contains("WHEN") {
      let body = "{\"a\": s.n, \"b\": 1}"
      text +=
        " WHEN NOT MATCHED THEN INSERT \(on.hasPrefix("KEY") ? body : "(KEY s.k, VALUE \(body))")"
        + one(["", " WHERE s.n IS VALUED", " WHERE s.k IS VALUED"])
    }
    return text + returning()
  }

  /// A path that is set.
  private mutating func place() -> String {
    one(["d.b", "d.a", "d.o.x", "d.l[0]", "d.new", "d.o.z.q", "s", "d.l[-1]", "o.y[0].x", "r", "d.gone.x"])
  }

  private mutating func returning() -> String {
    guard chance(60) else { return "" }
    // What a change makes of a sequence and a revision isn't known before.
    var text = value(Names(), 1)
    while text.contains("META(") { text = value(Names(), 1) }
    return " RETURNING "
      + one([
        "META(d).id, d.a, \(text) AS c", "RAW META(d).id", "VALUE \(text)", "d.*", "META(d).id, d.o.x, d.l",
      ])
  }
}
