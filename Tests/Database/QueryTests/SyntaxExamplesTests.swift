import TestSupport

@testable import Query

/// Queries as others write them: those of spec/query.md and of the guide.
@Suite struct SyntaxExamplesTests {
  /// Section 9 of the specification; a semicolon between the examples of one row.
  static let examples = #"""
    5/2; -5/2; 5/2.0; 5/0; 5.0/0; 5%0; 5%3; -5%3; 7.5%2; DIV(5,2); IDIV(7.9,2); DIV(1,0); 5.0/15.0; '10'+5; null+1
    missingProp+1; 9223372036854775807+1; 5=5.0; 5='5'; true=1; 5<'a'; 'B'<'a'; ('a'='A') COLLATE NOCASE; nums[-1]
    nums[3]; {'x':17}.x; 'foo' LIKE 'f%'; 'Abc' LIKE 'a%'; '100%' LIKE '100\%'; 'abc' LIKE 'a_c'; 1 IN (missing,2)
    17 NOT IN (1,2); 2 BETWEEN 1 AND 4; x IS NULL; x IS NOT VALUED; ANY v IN [] SATISFIES true END
    EVERY v IN [] SATISFIES false END; ANY AND EVERY v IN [] SATISFIES true END; CASE x WHEN 1 THEN 'one' END
    CONCAT(99,' ',123.45,' ',true); CONCAT('goodbye ',null); CONCAT('a', missing); ARRAY_SUM([1,2,true,'foo'])
    ARRAY_CONTAINS('bar','bar'); ARRAY_IFNULL([null,null,2]); ARRAY_MAX([1,4,3,-50,10,4,'bar']); ARRAY_LENGTH([1,null])
    ARRAY_COUNT([1,null]); ARRAY_AGG(hey); MISSINGIF(5,5.0); NULLIF('5','5'); IFMISSING(bogus, MISSING, value)
    IFNULL(null, 1, 2); IFMISSINGORNULL(missing,null); ROUND(-2.5); ROUND_EVEN(2.5); TRUNC(2.59,1); SQRT(-1); LN(0)
    LOG(4.0); SIGN(-2.5); TONUMBER('602214076000000000000000'); TOSTRING([1]); TOBOOLEAN([]); TOATOM({'s':'FTW'})
    TOARRAY(null); TOOBJECT([1]); TYPE(missing); STR_TO_MILLIS('1970-01-01T00:00:00Z'); STR_TO_UTC(99)
    MILLIS_TO_UTC(1540319581123); REGEXP_LIKE('awesome value','.*? value'); REGEXP_POSITION('awesome value','[ ]+value')
    REGEXP_REPLACE('cool value','.*?value','nothing'); LENGTH('😀'); UPPER('cafés17'); MILLIS_TO_TZ(1704897074000, -300)
    DATE_DIFF_STR('2018-02-01T00:01:59Z','2018-01-31T23:59:01Z','month'); GREATEST(1,'a'); LEAST(2, missing); PI(); e()
    substr(name, 1, 3); POSITION(a, 'x'); REPLACE(a, 'b', 'c'); reverse(a); REPEAT('x', 3); SPLIT(a, ','); INITCAP(a)
    """#.split(whereSeparator: { $0 == ";" || $0 == "\n" }).map { $0.trimmingCharacters(in: .whitespaces) }

  static let queries = [
    "SELECT [1], name, foo.bar AS b FROM _", "SELECT * FROM _default AS s", "SELECT * Star FROM _default",
    "SELECT bogus, num FROM _", "SELECT x FROM _ ORDER BY x",
    "SELECT COUNT(*), SUM(x), AVG(x), COUNT(DISTINCT x) FROM _",
    "SELECT * FROM _ WHERE type = 'hotel' LIMIT 10",
    "SELECT title FROM _ WHERE type = 'hotel' ORDER BY title DESC",
    """
    SELECT country, tz, COUNT(*) AS n FROM _ WHERE type = 'airport' AND geo.alt >= 300 GROUP BY country, tz
    """,
    "SELECT META().id, name FROM _ WHERE type = 'hotel' AND ARRAY_CONTAINS(public_likes, 'Armani Langworth')",
    """
    SELECT airline.name, airline.callsign, route.destinationairport FROM `travel-sample` AS route
    JOIN `travel-sample` AS airline ON META(airline).id = route.airlineid
    WHERE route.type = 'route' AND route.sourceairport = 'SFO'
    """,
    "SELECT META().id, name FROM _ WHERE type = 'landmark' AND name LIKE 'eng%e%'",
    "SELECT name FROM _ WHERE type = 'airport' AND country = 'France'",
    "SELECT name FROM _ WHERE ANY review IN reviews SATISFIES review.ratings.Overall >= 4 END",
    "SELECT country, AVG(geo.lat) FROM _ GROUP BY country HAVING COUNT(*) > 10",
    "SELECT name FROM _ WHERE META().id = $id", "SELECT COUNT(*) FROM _ WHERE META().id LIKE 'airline%'",
    "SELECT name FROM _ WHERE name LIKE '%words%' ORDER BY name LIMIT 10",
    "SELECT META().id FROM _ WHERE MATCH(nameFTSIndex, 'buy') ORDER BY RANK(nameFTSIndex) DESC",
    "EXPLAIN ANALYZE SELECT 1;",
  ]

  @Test(arguments: examples)
  func expressionsParseAndPrint(text: String) throws {
    let tree = try QueryExpression(parsing: text)
    try expect(QueryExpression(parsing: tree.description), equals: tree)
  }

  @Test(arguments: queries)
  func queriesParseAndPrint(text: String) throws {
    let tree = try QueryStatement(parsing: text)
    try expect(QueryStatement(parsing: tree.description), equals: tree)
  }
}
