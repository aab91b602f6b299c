import TestSupport

/// The builder makes the tree that the parser makes of the same query's text.
@Suite struct BuilderTests {
  private func check(_ built: SelectStatement, _ text: String) throws {
    try expect(built, equals: SelectStatement(parsing: text), "\(built)")
  }

  @Test func queriesOfTheGuide() throws {
    try check(
      Query.select(.property("name")).from().where(
        .property("type") .== "user" && .property("admin") .== false),
      "SELECT name FROM _ WHERE type = 'user' AND admin = FALSE")
    try check(
      Query.select(.all()).from().where(.property("type") .== "hotel").limit(10),
      "SELECT * FROM _ WHERE type = 'hotel' LIMIT 10")
    try check(
      Query.select(.expression(Meta.id), .property("name"), .property("public_likes")).from()
        .where(
          QueryExpression.property("type").equalTo("hotel")
            .and(ArrayFunction.contains(.property("public_likes"), value: "Armani Langworth"))),
      "SELECT META().id, name, public_likes FROM _ WHERE type = 'hotel' AND ARRAY_CONTAINS(public_likes, 'Armani Langworth')"
    )
    try check(
      Query.select(.all()).from()
        .where(
          QueryExpression.string("Armani").in([.property("first"), .property("last"), .property("username")])),
      "SELECT * FROM _ WHERE 'Armani' IN (first, last, username)")
    try check(
      Query.select(.expression(Meta.id), .property("country"), .property("name")).from()
        .where(.property("type") .== "landmark" && QueryExpression.property("name").like("eng%e%")).limit(10),
      "SELECT META().id, country, name FROM _ WHERE type = 'landmark' AND name LIKE 'eng%e%' LIMIT 10")
    try check(
      Query.select(.expression(Meta.id), .property("name")).from()
        .where(.property("type") .== "landmark" && QueryExpression.property("name").regex(#"\bEng.*e\b"#))
        .limit(
          10),
      #"SELECT META().id, name FROM _ WHERE type = 'landmark' AND REGEXP_LIKE(name, '\bEng.*e\b') LIMIT 10"#)
    try check(
      Query.select(
        .property("name", from: "airline"), .property("callsign", from: "airline"),
        .property("destinationairport", from: "route")
      )
      .from(DataSource("_", as: "airline"))
      .join(
        Join.join(DataSource("_", as: "route")).on(
          Meta.id(from: "airline") .== .property("airlineid", from: "route"))
      )
      .where(
        .property("type", from: "route") .== "route" && .property("sourceairport", from: "route") .== "RIX"),
      """
      SELECT airline.name, airline.callsign, route.destinationairport FROM _ AS airline
      JOIN _ AS route ON META(airline).id = route.airlineid
      WHERE route.type = 'route' AND route.sourceairport = 'RIX'
      """)
    try check(
      Query.select(.expression(Function.count(.all())), .property("country"), .property("tz")).from()
        .where(.property("type") .== "airport" && .property("geo.alt") .>= 300)
        .groupBy(.property("country"), .property("tz")),
      "SELECT COUNT(*), country, tz FROM _ WHERE type = 'airport' AND geo.alt >= 300 GROUP BY country, tz")
    try check(
      Query.select(.expression(Meta.id), .property("title")).from().where(.property("type") .== "hotel")
        .orderBy(Ordering.property("title").descending()),
      "SELECT META().id, title FROM _ WHERE type = 'hotel' ORDER BY title DESC")
    try check(
      Query.select(.expression(Meta.id)).from().where(
        FullTextExpression.index("nameFTSIndex").match("'buy'")),
      "SELECT META().id FROM _ WHERE MATCH(nameFTSIndex, '''buy''')")
  }

  @Test func everythingElse() throws {
    let review = ArrayExpression.variable("review.ratings.Overall")
    try check(
      Query.selectDistinct(SelectResult.expression(Function.avg(.property("geo.lat"))).as("lat"))
        .from(DataSource("travel", as: "t"))
        .join(
          Join.leftJoin(DataSource("travel", as: "u")).on(true), Join.crossJoin(DataSource()),
          Join.unnest(.property("t.list"), as: "i")
        )
        .where(
          ArrayExpression.any("review").in(.property("reviews")).satisfies(review .>= 4)
            || !QueryExpression.property("a[0].b").between(1, and: .parameter("top"))
        )
        .groupBy(.property("country")).having(Function.countDistinct(.property("x")) .> 2)
        .orderBy(
          .expression(QueryExpression.property("name").collate(.unicode(ignoreCase: true, locale: "sv")))
        )
        .limit(.parameter("n"), offset: 5),
      """
      SELECT DISTINCT AVG(geo.lat) AS lat FROM travel AS t LEFT JOIN travel AS u ON TRUE CROSS JOIN _
      UNNEST t.list AS i
      WHERE ANY review IN reviews SATISFIES review.ratings.Overall >= 4 END OR NOT a[0].b BETWEEN 1 AND $top
      GROUP BY country HAVING COUNT(DISTINCT x) > 2 ORDER BY name COLLATE (UNICODE:sv NOCASE) LIMIT $n OFFSET 5
      """)
    try check(
      Query.select(
        .expression((.property("a") + 1) * 2.5 - .property("b") / 3 % 4),
        .expression(QueryExpression.property("a").concatenate("x")), .expression([1, .null, true]),
        .expression(QueryExpression.property("a").isNullOrMissing()),
        .expression(QueryExpression.property("a").is(.missing)),
        .expression(Function.named("str_to_tz", .property("d"), 60)), .expression(Meta.expiration)),
      """
      SELECT (a + 1) * 2.5 - b / 3 % 4, a || 'x', [1, NULL, TRUE], a IS NOT VALUED, a IS (MISSING),
      STR_TO_TZ(d, 60), META().expiration
      """)
  }

  @Test func propertiesByTheirPaths() throws {
    for (path, text) in [
      ("a.b[0].c", "a.b[0].c"), ("a[-1]", "a[-1]"), (#"mr\.grieves.hey"#, "`mr.grieves`.hey"),
      ("a[x]", "`a[x]`"),
      ("", "``"), ("order", "`order`"),
    ] {
      expect(QueryExpression.property(path).description, equals: text)
    }
  }

  /// What is wrong is told with its place in the text of what was built.
  @Test func mistakesHaveAPlace() throws {
    try withDatabase(.lmdb) { database in
      let cases: [(SelectStatement, QueryError.Code, String)] = [
        (
          Query.select(.property("name")).from(DataSource("elsewhere")).where(.property("a") .== 1),
          .unknownName, "elsewhere"
        ),
        (
          Query.select(.property("name", from: "b")).from(DataSource("_", as: "a"))
            .join(Join.crossJoin(DataSource("_", as: "c"))), .unknownName, "b.name"
        ),
        (
          Query.select(.property("name")).from().where(Function.count(.property("x")) .> 1), .invalidUse,
          "COUNT(x)"
        ),
        (
          Query.select(.expression(Function.named("nosuch", .property("x")))).from(), .unknownFunction,
          "NOSUCH"
        ),
      ]
      for (statement, code, place) in cases {
        let error = #expect(throws: QueryError.self, "\(statement)") { try database.query(statement) }
        expect(error?.code, equals: code, "\(statement)")
        let (bytes, wanted) = (Array(statement.description.utf8), Array(place.utf8))
        let offset = bytes.indices.first { bytes[$0...].starts(with: wanted) }
        expect(error?.location?.offset, equals: offset, "\(error?.description ?? "")")
      }
    }
  }

  @Test func aTreeIsAsDeepAsATextMayBe() throws {
    try withDatabase(.lmdb) { database in
      try database.fill([("d", #"{"n":1}"#)])
      func nested(_ count: Int) -> QueryExpression {
        (0..<count).reduce(QueryExpression.property("n")) { inner, _ in inner + 1 }
      }
      try expect(database.query(Query.select(.expression(nested(150))).from()).run()[0][0].int, equals: 151)
      let deep = Query.select(.property("n")).from().where(nested(2_000) .> 0)
      let error = #expect(throws: QueryError.self) { try database.query(deep) }
      expect(error?.code, equals: .tooDeep)
      expect(error?.message.contains("the WHERE"), equals: true)
      // Programs make long conditions: those are no deeper than in a text.
      var any: QueryExpression = false
      for number in 2..<3_000 { any = any || .property("n") .== QueryExpression.int(number) }
      try expect(database.query(Query.select(.property("n")).from().where(any)).run().count, equals: 0)
      let all = Query.select(.property("n")).from().where(any || .property("n") .== 1)
      try expect(database.query(all).run().count, equals: 1)
    }
  }
}
