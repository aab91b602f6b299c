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
    #expect(try parse("NOT a = b") == .unary(.not, .binary(.equal, a, b)))
    #expect(try parse("NOT a AND b") == .binary(.and, .unary(.not, a), b))
    #expect(try parse("NOT NOT a IS NULL") == .unary(.not, .unary(.not, .test(a, .null, negated: false))))
    #expect(try parse("a = NOT b = c") == .binary(.equal, a, .unary(.not, .binary(.equal, b, c))))
    #expect(
      try parse("NOT a LIKE b OR c") == .binary(.or, .unary(.not, .like(a, pattern: b, negated: false)), c))
  }

  @Test func inTakesAListOrAnyExpression() throws {
    #expect(try parse("a IN b") == .contained(a, in: b, negated: false))
    #expect(try parse("a IN (b)") == .contained(a, in: .array([b]), negated: false))
    #expect(try parse("a IN ((b))") == .contained(a, in: b, negated: false))
    #expect(
      try parse("a IN ((b) || c)") == .contained(a, in: .array([.binary(.concatenate, b, c)]), negated: false)
    )
    #expect(try parse("a NOT IN ()") == .contained(a, in: .array([]), negated: true))
    #expect(
      try parse("a IN [b, c] AND b") == .binary(.and, .contained(a, in: .array([b, c]), negated: false), b))
    #expect(
      try parse("a IN $list AND b") == .binary(.and, .contained(a, in: .parameter("list"), negated: false), b)
    )
    #expect(
      try parse("a IN SPLIT(b, ',')")
        == .contained(a, in: .call(FunctionCall("SPLIT", [b, .literal(.string(","))])), negated: false))
  }

  @Test func chainsGroupToTheLeft() throws {
    #expect(try parse("a = b = c") == .binary(.equal, .binary(.equal, a, b), c))
    #expect(try parse("a < b < c") == .binary(.less, .binary(.less, a, b), c))
    #expect(try parse("a - b - c") == .binary(.subtract, .binary(.subtract, a, b), c))
    #expect(try parse("a = b < c") == .binary(.equal, a, .binary(.less, b, c)))
    #expect(try parse("a = b IS NULL") == .test(.binary(.equal, a, b), .null, negated: false))
  }

  @Test func operatorsBindInTheirOrder() throws {
    let everything = "a OR a AND NOT a = a < a + a * a || -a"
    #expect(
      try parse(everything)
        == .binary(
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
    #expect(
      try parse("a = b COLLATE NOCASE") == .collate(.binary(.equal, a, b), Collation(ignoresCase: true)))
    #expect(
      try parse("(a COLLATE (UNICODE:sv NODIAC)) = b")
        == .binary(
          .equal, .collate(a, Collation(isUnicode: true, ignoresDiacritics: true, locale: "sv")), b))
  }

  @Test func testsOfValues() throws {
    for (text, test) in [("NULL", ValueTest.null), ("MISSING", .missing), ("VALUED", .valued)] {
      #expect(try parse("a IS \(text)") == .test(a, test, negated: false))
      #expect(try parse("a IS NOT \(text)") == .test(a, test, negated: true))
      #expect(try parse("a NOT \(text)") == .test(a, test, negated: true))
    }
    #expect(try parse("a IS b") == .binary(.identical, a, b))
    #expect(try parse("a is not b") == .binary(.notIdentical, a, b))
    #expect(
      try parse("a NOT BETWEEN b AND c AND a")
        == .binary(.and, .between(a, lower: b, upper: c, negated: true), a))
  }

  @Test func numbers() throws {
    #expect(try parse("-17") == .literal(.int(-17)))
    #expect(try parse("- 17") == .unary(.minus, .literal(.int(17))))
    #expect(try parse("3 -4") == .binary(.subtract, .literal(.int(3)), .literal(.int(4))))
    #expect(try parse("3 - -4") == .binary(.subtract, .literal(.int(3)), .literal(.int(-4))))
    #expect(try parse("-9223372036854775808") == .literal(.int(.min)))
    #expect(try parse("602214076000000000000000") == .literal(.double(6.02214076e23)))
    #expect(try parse(".5e1") == .literal(.double(5)))
    #expect(try parse("5.e1") == .literal(.double(50)))
  }

  @Test func pathsAndMeta() throws {
    #expect(
      try parse("a.b[0].`c d`[-1]") == path(.name("a"), .name("b"), .index(0), .name("c d"), .index(-1)))
    #expect(try parse("a.select") == path(.name("a"), .name("select")))
    #expect(try parse("a.*") == .star(source: SourceName("a")))
    #expect(try parse("meta().id") == .meta(source: nil, .id))
    #expect(try parse("META(a)") == .meta(source: SourceName("a"), nil))
    #expect(
      try parse("{'x': 17}.x") == .member(.object([ObjectMember("x", .literal(.int(17)))]), [.name("x")]))
    #expect(try parse("SPLIT(a)[0]") == .member(.call(FunctionCall("SPLIT", [a])), [.index(0)]))
    #expect(try parse("-a.b") == .unary(.minus, path(.name("a"), .name("b"))))
  }

  @Test func wordsThatAreNotReserved() throws {
    #expect(try parse("some") == path(.name("some")))
    #expect(try parse("unicode.exists") == path(.name("unicode"), .name("exists")))
    #expect(try SelectStatement(parsing: "SELECT all FROM _").results == [ResultColumn(path(.name("all")))])
    #expect(try SelectStatement(parsing: "SELECT ALL a FROM _").results == [ResultColumn(a)])
    #expect(
      try parse("SOME AND EVERY a IN b SATISFIES c END")
        == .quantified(.anyAndEvery, variable: "a", in: b, satisfies: c))
  }

  @Test func commentsAndBlanks() throws {
    let text = "SELECT a -- the name\n, /* not\n this */ b\tFROM\r\n_;"
    #expect(
      try SelectStatement(parsing: text)
        == SelectStatement(results: [ResultColumn(a), ResultColumn(b)], source: DataSource("_")))
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
    #expect(try SelectStatement(parsing: text) == expected)
    let swapped = try SelectStatement(parsing: "SELECT a FROM _ OFFSET 1 LIMIT 2")
    #expect(swapped.limit == .literal(.int(2)))
    #expect(swapped.offset == .literal(.int(1)))
  }

  @Test func matchRankExistsAndCase() throws {
    #expect(try parse("MATCH(t.i, 'x')") == .match(IndexReference("i", source: "t"), .literal(.string("x"))))
    #expect(try parse("rank(i)") == .rank(IndexReference("i")))
    #expect(
      try parse("EXISTS (SELECT a FROM _)")
        == .exists(SelectStatement(results: [ResultColumn(a)], source: DataSource("_"))))
    #expect(
      try parse("CASE a WHEN b THEN c END")
        == .conditional(operand: a, branches: [ConditionalBranch(when: b, then: c)], otherwise: nil))
  }

  @Test func positionsAreThoseOfTheText() throws {
    let select = try SelectStatement(parsing: "SELECT a, COUNT(b) x FROM _ t")
    #expect(select.results[1].position.offset == 19)
    #expect(select.source?.position.offset == 26)
    guard case .call(let call) = select.results[1].expression, case .property(let b) = call.arguments[0]
    else {
      Issue.record("no call of a property")
      return
    }
    #expect(call.position.offset == 10)
    #expect(b.position.offset == 16)
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
    #expect(try SelectStatement(parsing: text).columnNames(in: text) == names)
  }
}
