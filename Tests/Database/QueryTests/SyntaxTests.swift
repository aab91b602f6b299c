import TestSupport

@testable import Query

private func parse(_ text: String) throws -> QueryExpression { try QueryExpression(parsing: text) }
private func path(_ steps: PathStep...) -> QueryExpression { .property(PropertyReference(steps)) }
private let a = path(.name("a"))
private let b = path(.name("b"))
private let c = path(.name("c"))

/// The grammar: what text makes which tree.
@Suite struct SyntaxTests {
  @Test func notBindsAsInSQL() throws {
    try expect(parse("NOT a = b"), equals: .unary(.not, .binary(.equal, a, b)))
    try expect(parse("NOT a AND b"), equals: .binary(.and, .unary(.not, a), b))
    try expect(
      parse("NOT NOT a IS NULL"), equals: .unary(.not, .unary(.not, .test(a, .null, negated: false))))
    try expect(parse("a = NOT b = c"), equals: .binary(.equal, a, .unary(.not, .binary(.equal, b, c))))
    try expect(
      parse("NOT a LIKE b OR c"), equals: .binary(.or, .unary(.not, .like(a, pattern: b, negated: false)), c))
  }

  @Test func inTakesAListOrAnyExpression() throws {
    try expect(parse("a IN b"), equals: .contained(a, in: b, negated: false))
    try expect(parse("a IN (b)"), equals: .contained(a, in: .array([b]), negated: false))
    try expect(parse("a IN ((b))"), equals: .contained(a, in: b, negated: false))
    try expect(
      parse("a IN ((b) || c)"),
      equals: .contained(a, in: .array([.binary(.concatenate, b, c)]), negated: false))
    try expect(parse("a NOT IN ()"), equals: .contained(a, in: .array([]), negated: true))
    try expect(
      parse("a IN [b, c] AND b"), equals: .binary(.and, .contained(a, in: .array([b, c]), negated: false), b))
    try expect(
      parse("a IN $list AND b"),
      equals: .binary(.and, .contained(a, in: .parameter("list"), negated: false), b))
    try expect(
      parse("a IN SPLIT(b, ',')"),
      equals: .contained(a, in: .call(FunctionCall("SPLIT", [b, .literal(.string(","))])), negated: false))
  }

  @Test func chainsGroupToTheLeft() throws {
    try expect(parse("a = b = c"), equals: .binary(.equal, .binary(.equal, a, b), c))
    try expect(parse("a < b < c"), equals: .binary(.less, .binary(.less, a, b), c))
    try expect(parse("a - b - c"), equals: .binary(.subtract, .binary(.subtract, a, b), c))
    try expect(parse("a = b < c"), equals: .binary(.equal, a, .binary(.less, b, c)))
    try expect(parse("a = b IS NULL"), equals: .test(.binary(.equal, a, b), .null, negated: false))
  }

  @Test func operatorsBindInTheirOrder() throws {
    let everything = "a OR a AND NOT a = a < a + a * a || -a"
    try expect(
      parse(everything),
      equals: .binary(
        .or, a,
        .binary(
          .and, a,
          .unary(
            .not,
            .binary(
              .equal, a,
              .binary(
                .less, a,
                .binary(
                  .add, a,
                  .binary(.multiply, a, .binary(.concatenate, a, .unary(.minus, a))))))))))
  }

  @Test func collateBindsLoosest() throws {
    try expect(
      parse("a = b COLLATE NOCASE"), equals: .collate(.binary(.equal, a, b), Collation(ignoresCase: true)))
    try expect(
      parse("(a COLLATE (UNICODE:sv NODIAC)) = b"),
      equals: .binary(
        .equal, .collate(a, Collation(isUnicode: true, ignoresDiacritics: true, locale: "sv")), b))
  }

  @Test func testsOfValues() throws {
    for (text, test) in [("NULL", ValueTest.null), ("MISSING", .missing), ("VALUED", .valued)] {
      try expect(parse("a IS \(text)"), equals: .test(a, test, negated: false))
      try expect(parse("a IS NOT \(text)"), equals: .test(a, test, negated: true))
      try expect(parse("a NOT \(text)"), equals: .test(a, test, negated: true))
    }
    try expect(parse("a IS b"), equals: .binary(.identical, a, b))
    try expect(parse("a is not b"), equals: .binary(.notIdentical, a, b))
    try expect(
      parse("a NOT BETWEEN b AND c AND a"),
      equals: .binary(.and, .between(a, lower: b, upper: c, negated: true), a))
  }

  @Test func numbers() throws {
    try expect(parse("-17"), equals: .literal(.int(-17)))
    try expect(parse("- 17"), equals: .unary(.minus, .literal(.int(17))))
    try expect(parse("3 -4"), equals: .binary(.subtract, .literal(.int(3)), .literal(.int(4))))
    try expect(parse("3 - -4"), equals: .binary(.subtract, .literal(.int(3)), .literal(.int(-4))))
    try expect(parse("-9223372036854775808"), equals: .literal(.int(.min)))
    try expect(parse("602214076000000000000000"), equals: .literal(.double(6.02214076e23)))
    try expect(parse(".5e1"), equals: .literal(.double(5)))
    try expect(parse("5.e1"), equals: .literal(.double(50)))
  }

  @Test func pathsAndMeta() throws {
    try expect(
      parse("a.b[0].`c d`[-1]"), equals: path(.name("a"), .name("b"), .index(0), .name("c d"), .index(-1)))
    try expect(parse("a.select"), equals: path(.name("a"), .name("select")))
    try expect(parse("a.*"), equals: .star(source: SourceName("a")))
    try expect(parse("meta().id"), equals: .meta(source: nil, .id))
    try expect(parse("META(a)"), equals: .meta(source: SourceName("a"), nil))
    try expect(
      parse("{'x': 17}.x"), equals: .member(.object([ObjectMember("x", .literal(.int(17)))]), [.name("x")]))
    try expect(parse("SPLIT(a)[0]"), equals: .member(.call(FunctionCall("SPLIT", [a])), [.index(0)]))
    try expect(parse("-a.b"), equals: .unary(.minus, path(.name("a"), .name("b"))))
  }

  @Test func wordsThatAreNotReserved() throws {
    try expect(parse("some"), equals: path(.name("some")))
    try expect(parse("unicode.exists"), equals: path(.name("unicode"), .name("exists")))
    try expect(
      SelectStatement(parsing: "SELECT all FROM _").results, equals: [ResultColumn(path(.name("all")))])
    try expect(SelectStatement(parsing: "SELECT ALL a FROM _").results, equals: [ResultColumn(a)])
    try expect(
      parse("SOME AND EVERY a IN b SATISFIES c END"),
      equals: .quantified(.anyAndEvery, variable: "a", in: b, satisfies: c))
  }

  @Test func commentsAndBlanks() throws {
    let text = "SELECT a -- the name\n, /* not\n this */ b\tFROM\r\n_;"
    try expect(
      SelectStatement(parsing: text),
      equals: SelectStatement(results: [ResultColumn(a), ResultColumn(b)], source: DataSource("_")))
  }

  @Test func allClauses() throws {
    let text = """
      select distinct a as x, count(distinct b) n from travel t left outer join travel as u on meta(u).id = t.a
      cross join _ c unnest t.list left unnest u.list as i where $p = 1 group by a, b having count(*) > 2
      order by a desc, b asc, c limit 10 offset $o
      """
    func step(_ first: String, _ second: String) -> QueryExpression { path(.name(first), .name(second)) }
    let expected = SelectStatement(
      isDistinct: true,
      results: [
        ResultColumn(a, as: "x"), ResultColumn(.call(FunctionCall("COUNT", [b], isDistinct: true)), as: "n"),
      ],
      source: DataSource("travel", as: "t"),
      joins: [
        .join(
          .leftOuter, DataSource("travel", as: "u"),
          on: .binary(.equal, .meta(source: SourceName("u"), .id), step("t", "a"))),
        .join(.cross, DataSource("_", as: "c"), on: nil),
        .unnest(step("t", "list"), as: "list", isLeftOuter: false),
        .unnest(step("u", "list"), as: "i", isLeftOuter: true),
      ],
      condition: .binary(.equal, .parameter("p"), .literal(.int(1))), groupBy: [a, b],
      having: .binary(.greater, .call(FunctionCall("COUNT", [.star(source: nil)])), .literal(.int(2))),
      orderBy: [Ordering(a, isDescending: true), Ordering(b), Ordering(c)], limit: .literal(.int(10)),
      offset: .parameter("o"))
    try expect(SelectStatement(parsing: text), equals: expected)
    let swapped = try SelectStatement(parsing: "SELECT a FROM _ OFFSET 1 LIMIT 2")
    expect(swapped.limit, equals: .literal(.int(2)))
    expect(swapped.offset, equals: .literal(.int(1)))
  }

  @Test func matchRankExistsAndCase() throws {
    try expect(
      parse("MATCH(t.i, 'x')"), equals: .match(IndexReference("i", source: "t"), .literal(.string("x"))))
    try expect(parse("rank(i)"), equals: .rank(IndexReference("i")))
    try expect(
      parse("EXISTS (SELECT a FROM _)"),
      equals: .exists(SelectStatement(results: [ResultColumn(a)], source: DataSource("_"))))
    try expect(
      parse("CASE a WHEN b THEN c END"),
      equals: .conditional(operand: a, branches: [ConditionalBranch(when: b, then: c)], otherwise: nil))
  }

  @Test func positionsAreThoseOfTheText() throws {
    let select = try SelectStatement(parsing: "SELECT a, COUNT(b) x FROM _ t")
    expect(select.results[1].position.offset, equals: 19)
    expect(select.source?.position.offset, equals: 26)
    guard case .call(let call) = select.results[1].expression, case .property(let b) = call.arguments[0]
    else {
      Issue.record("no call of a property")
      return
    }
    expect(call.position.offset, equals: 10)
    expect(b.position.offset, equals: 16)
  }

  @Test(arguments: [
    ("SELECT [1], name, foo.bar AS b FROM _", ["$1", "name", "b"]), ("SELECT * FROM _default AS s", ["s"]),
    ("SELECT * Star FROM travel", ["Star"]), ("SELECT * FROM travel", ["travel"]),
    ("SELECT t.* FROM _ t", ["t"]),
    (
      "SELECT META().id, id, r.id, a[0], 1, 2 AS z, 3 FROM _", ["id", "id #2", "id #3", "a", "$1", "z", "$2"]
    ),
    ("SELECT a.x, 1 AS x FROM _", ["x #2", "x"]),
  ])
  func columnsHaveNames(text: String, names: [String]) throws {
    try expect(SelectStatement(parsing: text).columnNames(in: text), equals: names)
  }
}
