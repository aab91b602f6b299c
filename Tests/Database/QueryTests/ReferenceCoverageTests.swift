import TestSupport

@testable import Query
@testable import Touchstone

/// Expressions and statements of SQL++, as a list to compare with: each is accepted, or refused with a reason. docs/query.md has
/// the reasons.
@Suite struct ReferenceCoverageTests {
  private let databases = TestDatabases()

  private func open() throws -> Database {
    let database = try databases.open(.lmdb)
    for number in 0..<3 {
      let body =
        #"{"a":\#(number),"s":"abc","arr":[1,2,3],"o":{"x":1},"d":"2020-01-31T10:00:00Z","v":[0.1,0.2]}"#
      try database.fill([("d\(number)", body)])
    }
    _ = try database.query("PREPARE p AS SELECT 1").run()
    return database
  }

  @Test("expressions that are accepted have a value")
  func expressions() throws {
    let database = try open()
    for text in Self.accepted {
      do {
        let query = try database.query("SELECT \(text) FROM _")
        let names = query.parameterNames
        let rows = try query.run(Dictionary(uniqueKeysWithValues: names.map { ($0, JSONValue.int(1)) }))
        expect(rows.count > 0, "\(text)")
      } catch { Issue.record("\(text): \(error)") }
    }
    expect(Self.accepted.count, equals: Self.acceptedCount)
  }

  @Test("statements that are accepted run")
  func statements() throws {
    let database = try open()
    for text in Self.statements {
      let text = text.replacing("FROM gap", with: "FROM `\(database.name)`")
      do {
        if try database.changes(text) {
          try database.execute(text, isDryRun: text.hasPrefix("MERGE") || text.hasPrefix("UPDATE"))
        } else {
          let query = try database.query(text)
          let names = query.parameterNames
          _ = try query.run(Dictionary(uniqueKeysWithValues: names.map { ($0, JSONValue.int(1)) }))
        }
      } catch { Issue.record("\(text): \(error)") }
    }
    expect(Self.statements.count, equals: Self.statementCount)
  }

  @Test(
    "what is refused has a reason",
    arguments: [
      ("SELECT META().cas FROM _", "sequence"),
      ("SELECT VECTOR_MATCH(v,[0.1,0.2]) FROM _", "no vector index"),
      (#"SELECT PREDICTION(m,{"a":1}) FROM _"#, "runs no models"), ("SELECT CURL('x') FROM _", "outside"),
      ("SELECT a FROM scope.collection", "scopes and collections"),
      ("SELECT a FROM _default.other", "scopes and"),
      ("SELECT x.a FROM _ AS x NATURAL JOIN _ AS y", "USING"),
      ("SELECT a FROM _ WHERE SEARCH(_, 'abc')", "MATCH"),
      ("BEGIN TRANSACTION", "transactions have their own call"), ("SELECT a FROM _ ORDER BY 1", "position"),
      ("SELECT a FROM _ WHERE a = 1; SELECT 2", "one call runs one statement"),
    ])
  func refused(_ text: String, _ reason: String) throws {
    let database = try open()
    do { _ = try database.query(text) } catch {
      return expect("\(error)".contains(reason), "\(error)")
    }
    Issue.record("\(text) was accepted")
  }

  private static let acceptedCount = 290
  private static let statementCount = 76

  private static let accepted = [
    #"ABS(a)"#, #"ACOS(0.5)"#, #"ASIN(0.5)"#, #"ATAN(1)"#, #"ATAN2(1,2)"#, #"CEIL(1.2)"#, #"COS(1)"#,
    #"DEGREES(1)"#, #"E()"#, #"EXP(1)"#, #"FLOOR(1.2)"#, #"LN(2)"#, #"LOG(2)"#, #"PI()"#, #"POWER(2,3)"#,
    #"RADIANS(1)"#, #"ROUND(1.5)"#, #"SIGN(1)"#, #"SIN(1)"#, #"SQRT(2)"#, #"TAN(1)"#, #"TRUNC(1.5)"#,
    #"DIV(3,2)"#, #"IDIV(3,2)"#, #"CONCAT('a','b')"#, #"CONTAINS(s,'b')"#, #"INITCAP(s)"#, #"LENGTH(s)"#,
    #"LOWER(s)"#, #"LTRIM(s)"#, #"POSITION(s,'b')"#, #"REGEXP_CONTAINS(s,'b')"#, #"REGEXP_LIKE(s,'b')"#,
    #"REGEXP_POSITION(s,'b')"#, #"REGEXP_REPLACE(s,'b','c')"#, #"REPEAT(s,2)"#, #"REPLACE(s,'a','b')"#,
    #"REVERSE(s)"#, #"RTRIM(s)"#, #"SPLIT(s,'b')"#, #"SUBSTR(s,1)"#, #"TRIM(s)"#, #"UPPER(s)"#,
    #"META(_).id"#, #"META().revisionID"#, #"META().deleted"#, #"META().expiration"#, #"META().sequence"#,
    #"MIN_BY"#, #"ARRAY_AVG(arr)"#, #"ARRAY_CONTAINS(arr,1)"#, #"ARRAY_COUNT(arr)"#, #"ARRAY_IFNULL(arr)"#,
    #"ARRAY_LENGTH(arr)"#, #"ARRAY_MAX(arr)"#, #"ARRAY_MIN(arr)"#, #"ARRAY_SUM(arr)"#, #"ARRAY_OF(1,2)"#,
    #"ARRAY_AGG(a)"#, #"GREATEST(1,2)"#, #"LEAST(1,2)"#, #"IFMISSING(a,1)"#, #"IFMISSINGORNULL(a,1)"#,
    #"IFNULL(a,1)"#, #"MISSINGIF(1,1)"#, #"NULLIF(1,1)"#, #"ISARRAY(a)"#, #"ISATOM(a)"#, #"ISBOOLEAN(a)"#,
    #"ISNUMBER(a)"#, #"ISOBJECT(a)"#, #"ISSTRING(a)"#, #"TYPE(a)"#, #"TOARRAY(a)"#, #"TOATOM(a)"#,
    #"TOBOOLEAN(a)"#, #"TONUMBER(s)"#, #"TOOBJECT(a)"#, #"TOSTRING(a)"#, #"IS_ARRAY(a)"#, #"TYPENAME(a)"#,
    #"DATE_ADD_MILLIS(1,1,'day')"#, #"DATE_ADD_STR(d,1,'day')"#, #"DATE_DIFF_MILLIS(1,2,'day')"#,
    #"DATE_DIFF_STR(d,d,'day')"#, #"MILLIS_TO_STR(1)"#, #"MILLIS_TO_TZ(1,60)"#, #"MILLIS_TO_UTC(1)"#,
    #"STR_TO_MILLIS(d)"#, #"STR_TO_UTC(d)"#, #"STR_TO_TZ(d,60)"#, #"COUNT(*)"#, #"COUNT(a)"#,
    #"COUNT(DISTINCT a)"#, #"SUM(a)"#, #"AVG(a)"#, #"MIN(a)"#, #"MAX(a)"#, #"CASE WHEN a = 1 THEN 2 END"#,
    #"CASE a WHEN 1 THEN 2 ELSE 3 END"#, #"ANY x IN arr SATISFIES x = 1 END"#, #"a BETWEEN 1 AND 2"#, #"s"#,
    #"'x'"#, #"arr[0]"#, #"arr[-1]"#, #"o.`x`"#, #"-a"#, #"a % 2"#, #"a == 1"#, #"a <> 1"#, #"a != 1"#,
    #"a IS KNOWN"#, #"a IS UNKNOWN"#, #"a IS VALUED"#, #"a IS NOT VALUED"#, #"EXISTS (SELECT 1 FROM _)"#,
    #"a IN [1,2]"#, #"a IN (1,2)"#, #"a NOT IN [1]"#, #"1 + 2"#, #""dq""#, #"{"a":a}"#, #"$1"#, #"$p"#,
    #"TRUE"#, #"1e3"#, #"MISSING"#, #"NOT a"#, #"ANY AND EVERY x IN arr SATISFIES x > 0 END"#,
    #"SOME x IN arr SATISFIES x > 0 END"#, #"a COLLATE NOCASE"#, #"SELF"#, #"RANDOM()"#, #"ISNAN(1)"#,
    #"NANIF(1,1)"#, #"NEGINFIF(1,1)"#, #"POSINFIF(1,1)"#, #"CONCAT2('-','a','b')"#, #"LPAD(s,5)"#,
    #"RPAD(s,5)"#, #"MASK(s)"#, #"POSITION0(s,'b')"#, #"POSITION1(s,'b')"#, #"REGEXP_MATCHES(s,'b')"#,
    #"REGEXP_SPLIT(s,'b')"#, #"SUBSTR0(s,1)"#, #"SUBSTR1(s,1)"#, #"TITLE(s)"#, #"TOKENS(s)"#,
    #"URL_ENCODE(s)"#, #"URL_DECODE(s)"#, #"SUFFIXES(s)"#, #"CONTAINS_TOKEN(s,'abc')"#,
    #"CONTAINS_TOKEN_LIKE(s,'a%')"#, #"CONTAINS_TOKEN_REGEXP(s,'a')"#, #"MB_LENGTH(s)"#, #"LIKE_PREFIX(s)"#,
    #"UNICODE(s)"#, #"LEFT(s,1)"#, #"RIGHT(s,1)"#, #"ENCODE_JSON(o)"#, #"DECODE_JSON('1')"#,
    #"ENCODED_SIZE(o)"#, #"PAIRS(o)"#, #"POLY_LENGTH(o)"#, #"BASE64(s)"#, #"BASE64_ENCODE(s)"#,
    #"BASE64_DECODE('YWJj')"#, #"UUID()"#, #"VERSION()"#, #"HASHBYTES(s)"#,
    #"LEVENSHTEIN_DISTANCE(s,'abd')"#, #"ARRAY_APPEND(arr,4)"#, #"ARRAY_BINARY_SEARCH(arr,1)"#,
    #"ARRAY_CONCAT(arr,arr)"#, #"ARRAY_DISTINCT(arr)"#, #"ARRAY_EXCEPT(arr,[1])"#,
    #"ARRAY_FLATTEN([arr],1)"#, #"ARRAY_INSERT(arr,0,1)"#, #"ARRAY_INTERSECT(arr,arr)"#,
    #"ARRAY_MOVE(arr,0,1)"#, #"ARRAY_POSITION(arr,2)"#, #"ARRAY_PREPEND(0,arr)"#, #"ARRAY_PUT(arr,4)"#,
    #"ARRAY_RANGE(0,3)"#, #"ARRAY_REMOVE(arr,1)"#, #"ARRAY_REPEAT(1,2)"#, #"ARRAY_REPLACE(arr,1,2)"#,
    #"ARRAY_REVERSE(arr)"#, #"ARRAY_SORT(arr)"#, #"ARRAY_STAR([o])"#, #"ARRAY_SWAP(arr,0,1)"#,
    #"ARRAY_SYMDIFF(arr,arr)"#, #"ARRAY_UNION(arr,arr)"#, #"COALESCE(a,1)"#, #"NVL(a,1)"#, #"NVL2(a,1,2)"#,
    #"DECODE(a,1,2)"#, #"IFINF(1,1)"#, #"IFNAN(1,1)"#, #"IFNANORINF(1,1)"#, #"ISBINARY(a)"#,
    #"OBJECT_ADD(o,'y',1)"#, #"OBJECT_CONCAT(o,o)"#, #"OBJECT_INNER_PAIRS(o)"#, #"OBJECT_INNER_VALUES(o)"#,
    #"OBJECT_LENGTH(o)"#, #"OBJECT_NAMES(o)"#, #"OBJECT_PAIRS(o)"#, #"OBJECT_PUT(o,'x',1)"#,
    #"OBJECT_REMOVE(o,'x')"#, #"OBJECT_RENAME(o,'x','y')"#, #"OBJECT_REPLACE(o,1,2)"#, #"OBJECT_UNWRAP(o)"#,
    #"OBJECT_VALUES(o)"#, #"OBJECT_PATHS(o)"#, #"OBJECT_FIELD(o,'x')"#, #"CLOCK_LOCAL()"#,
    #"CLOCK_MILLIS()"#, #"CLOCK_STR()"#, #"CLOCK_UTC()"#, #"CLOCK_TZ('UTC')"#,
    #"DATE_FORMAT_STR(d,'1111-11-11')"#, #"DATE_PART_MILLIS(1,'year')"#, #"DATE_PART_STR(d,'year')"#,
    #"DATE_RANGE_STR(d,d,'day')"#, #"DATE_TRUNC_MILLIS(1,'day')"#, #"DATE_TRUNC_STR(d,'day')"#,
    #"DURATION_TO_STR(1000)"#, #"STR_TO_DURATION('1s')"#, #"MILLIS(d)"#, #"MILLIS_TO_LOCAL(1)"#,
    #"MILLIS_TO_ZONE_NAME(1,'UTC')"#, #"NOW_LOCAL()"#, #"NOW_MILLIS()"#, #"NOW_STR()"#, #"NOW_UTC()"#,
    #"STR_TO_ZONE_NAME(d,'UTC')"#, #"WEEKDAY_MILLIS(1)"#, #"WEEKDAY_STR(d)"#, #"COUNTN(a)"#, #"MEAN(a)"#,
    #"MEDIAN(a)"#, #"STDDEV(a)"#, #"STDDEV_POP(a)"#, #"STDDEV_SAMP(a)"#, #"VARIANCE(a)"#, #"VAR_POP(a)"#,
    #"VAR_SAMP(a)"#, #"ROW_NUMBER() OVER (ORDER BY a)"#, #"SUM(a) OVER (PARTITION BY s)"#,
    #"GROUP_CONCAT(s)"#, #"STRING_AGG(s,',')"#, #"SUM(a) FILTER (WHERE a > 0)"#, #"BITAND(1,2)"#,
    #"BITOR(1,2)"#, #"BITXOR(1,2)"#, #"BITNOT(1)"#, #"BITSHIFT(1,2)"#,
    #"APPROX_VECTOR_DISTANCE(v,[0.1,0.2],'L2')"#, #"EUCLIDEAN_DISTANCE(v,[0.1,0.2])"#,
    #"VECTOR_DISTANCE(v,[0.1,0.2],'L2')"#, #"COSINE_DISTANCE(v,[0.1,0.2])"#, #"ARRAY x FOR x IN arr END"#,
    #"ARRAY x*2 FOR x IN arr WHEN x > 1 END"#, #"FIRST x FOR x IN arr END"#,
    #"OBJECT "k":v FOR v IN arr END"#, #"ANY x IN arr, y IN arr SATISFIES x = y END"#,
    #"ANY x WITHIN arr SATISFIES x = 1 END"#, #"a WITHIN arr"#, #"s LIKE 'a%' ESCAPE '!'"#,
    #"a IS DISTINCT FROM 1"#, #"a IS NOT DISTINCT FROM 1"#, #"arr[0:2]"#, #"arr[1:]"#, #"arr[a]"#,
    #"o.["x"]"#, #"o[s]"#, #"arr[*].x"#, #"o.*"#, #"(SELECT RAW 1)"#, #"{a}"#, #"{s: a}"#, #"?"#, #"@p"#,
    #"CAST(a AS STRING)"#, #"a::string"#, #"s REGEXP 'a'"#, #"s ILIKE 'A%'"#,
  ]

  private static let statements = [
    #"SELECT RAW a FROM _"#, #"SELECT ELEMENT a FROM _"#, #"SELECT VALUE a FROM _"#,
    #"SELECT * EXCLUDE a FROM _"#, #"SELECT *, META().id FROM _"#, #"SELECT DISTINCT a FROM _"#,
    #"SELECT a FROM _ ORDER BY a NULLS LAST"#, #"SELECT a FROM _ ORDER BY a DESC NULLS FIRST"#,
    #"SELECT a FROM _ LIMIT 1 OFFSET 1"#, #"SELECT a FROM _ USE KEYS 'd1'"#,
    #"SELECT a FROM _ USE KEYS ['d1','d2']"#, #"SELECT a FROM _ USE INDEX (i)"#,
    #"SELECT a FROM _ WHERE META().id = 'd1'"#, #"SELECT a FROM _default._default"#, #"SELECT a FROM gap"#,
    #"SELECT a FROM `_default`"#, #"SELECT x.a FROM _ x"#,
    #"SELECT x.a FROM _ AS x JOIN _ AS y ON x.a = y.a"#, #"SELECT x.a FROM _ AS x, _ AS y WHERE x.a = y.a"#,
    #"SELECT x.a FROM _ AS x RIGHT JOIN _ AS y ON x.a = y.a"#,
    #"SELECT x.a FROM _ AS x FULL OUTER JOIN _ AS y ON x.a = y.a"#,
    #"SELECT x.a FROM _ AS x JOIN _ AS y ON KEYS x.s"#,
    #"SELECT x.a FROM _ AS x JOIN _ AS y ON KEY y.s FOR x"#,
    #"SELECT x.a FROM _ AS x NEST _ AS y ON x.a = y.a"#, #"SELECT x.a, u FROM _ AS x UNNEST x.arr AS u"#,
    #"SELECT x.a, u FROM _ AS x, x.arr AS u"#, #"SELECT x.a FROM _ AS x CROSS JOIN _ AS y"#,
    #"SELECT x.a FROM _ AS x JOIN _ AS y USING (a)"#, #"SELECT t.a FROM (SELECT a FROM _) AS t"#,
    #"SELECT a FROM _ WHERE a IN (SELECT RAW a FROM _)"#,
    #"SELECT a, (SELECT COUNT(*) FROM _) AS n FROM _"#,
    #"SELECT a FROM _ WHERE a = (SELECT MAX(a) FROM _)"#,
    #"SELECT a FROM _ AS x WHERE EXISTS (SELECT 1 FROM _ AS y WHERE y.a = x.a)"#,
    #"SELECT a FROM _ WHERE EXISTS (SELECT 1 FROM _ WHERE a = 1)"#,
    #"SELECT a FROM _ UNION SELECT a FROM _"#, #"SELECT a FROM _ UNION ALL SELECT a FROM _"#,
    #"SELECT a FROM _ INTERSECT SELECT a FROM _"#, #"SELECT a FROM _ EXCEPT SELECT a FROM _"#,
    #"WITH t AS (SELECT a FROM _) SELECT * FROM t"#, #"WITH x AS (1) SELECT x"#,
    #"SELECT b FROM _ LET b = a + 1"#, #"SELECT b FROM _ LET b = a + 1 WHERE b > 1"#,
    #"SELECT s, n FROM _ GROUP BY s LETTING n = COUNT(*) HAVING n > 1"#,
    #"SELECT s, COUNT(*) FROM _ GROUP BY s HAVING COUNT(*) > 1"#,
    #"SELECT k, COUNT(*) FROM _ GROUP BY s AS k"#, #"SELECT s FROM _ GROUP BY ROLLUP(s)"#, #"SELECT 1"#,
    #"SELECT 1+1 AS x"#, #"INSERT INTO _ (KEY, VALUE) VALUES ('x', {"a":1})"#,
    #"UPSERT INTO _ (KEY, VALUE) VALUES ('x', {"a":1})"#, #"UPDATE _ SET a = 2 WHERE a = 1"#,
    #"DELETE FROM _ WHERE a = 1"#,
    #"MERGE INTO _ USING _ AS s ON s.a = 1 WHEN MATCHED THEN UPDATE SET a = 1"#,
    #"CREATE INDEX i ON _ (a)"#, #"DROP INDEX i ON _"#, #"PREPARE p AS SELECT 1"#, #"EXECUTE p"#,
    #"EXPLAIN SELECT a FROM _"#, #"EXPLAIN ANALYZE SELECT a FROM _"#, #"ADVISE SELECT a FROM _"#,
    #"INFER _"#, #"FROM _ SELECT a"#, #"FROM _ SELECT VALUE a"#,
    #"SELECT a FROM _ FETCH FIRST 1 ROWS ONLY"#, #"SELECT a FROM _ -- comment"#, #"SELECT META() FROM _"#,
    #"SELECT META(x).id FROM _ x"#, #"SELECT x.* FROM _ x"#, #"SELECT a AS b, b + 1 FROM _"#,
    #"SELECT a AS b FROM _ WHERE b = 1"#, #"SELECT a AS b FROM _ ORDER BY b"#,
    #"SELECT COUNT(*) c FROM _ GROUP BY s ORDER BY c"#, #"SELECT s, a FROM _ GROUP BY s"#,
    #"SELECT SUM(a)/COUNT(*) FROM _"#, #"SELECT a FROM _ WHERE a = ?"#, #"SELECT a FROM system:indexes"#,
  ]
}
