import TestSupport

@testable import Query

/// Mistakes: where they are, and what is told.
@Suite struct SyntaxErrorTests {
  private func error(_ text: String) -> QueryError? {
    do { _ = try QueryStatement(parsing: text) } catch { return error }
    return nil
  }

  @Test(arguments: [
    ("", 1, "expected SELECT, found the end"),
    ("SELECT", 7, "expected an expression, found the end"),
    ("SELECT a, FROM _", 11, "expected an expression, found \"FROM\""),
    ("SELECT a FROM", 14, "expected a source's name (_ or the database's), found the end"),
    ("SELECT a FROM order", 15, "\"order\", a reserved word; put it in backticks to use it as a name"),
    ("SELECT a FROM _ WHER a = 1", 22, "expected an operator, JOIN, UNNEST, WHERE, GROUP BY"),
    ("SELECT a FROM _ WHER a = 1", 22, "(did you mean WHERE instead of WHER?)"),
    ("SELECT a FROM _ WHERE a = ", 27, "expected an expression, found the end"),
    ("SELECT a FROM _ WHERE (a = 1", 29, "expected an operator or \")\", found the end"),
    (
      "SELECT a FROM _ WHERE a NOT 1", 29,
      "expected IN, WITHIN, LIKE, BETWEEN, NULL, MISSING or VALUED after NOT"
    ),
    ("SELECT a FROM _ WHERE a BETWEEN 1 OR 2", 35, "expected AND and the upper bound of BETWEEN"),
    ("SELECT a FROM _ HAVING a", 17, "HAVING needs GROUP BY before it"),
    ("SELECT a FROM _ NATURAL JOIN b", 17, "NATURAL JOIN isn't supported"),
    ("SELECT ABS(SELECT 1)", 12, "needs parentheses of its own"),
    ("SELECT a FROM _ JOIN b", 23, "expected ON and the condition of the JOIN"),
    ("SELECT a FROM _ CROSS JOIN b ON 1", 30, "CROSS JOIN can't have ON"),
    ("SELECT a FROM _ UNNEST a || b", 30, "expected AS and a name for the unnested items"),
    ("SELECT SUBSTRING(a)", 8, "there is no function SUBSTRING (did you mean SUBSTR?)"),
    ("SELECT 1 + lenght(a)", 12, "there is no function LENGHT (did you mean LEN or LENGTH?)"),
    ("SELECT LENGTH(a, b)", 8, "LENGTH takes one argument, not 2"),
    ("SELECT NULLIF(a)", 8, "NULLIF takes 2 arguments, not 1"),
    ("SELECT ROUND()", 8, "ROUND takes 1 to 2 arguments, not 0"),
    ("SELECT GREATEST(1)", 8, "GREATEST takes at least 2 arguments, not 1"),
    ("SELECT PI(3)", 8, "PI takes no arguments, not 1"),
    ("SELECT LOWER(DISTINCT a)", 14, "LOWER can't have DISTINCT"),
    ("SELECT META().sequense", 15, "META() has no \"sequense\" (did you mean sequence?)"),
    ("SELECT 'abc", 8, "the string has no end"),
    ("SELECT `abc", 8, "the name in backticks has no end"),
    ("SELECT a /* b", 10, "the comment has no end"),
    ("SELECT größe", 10, "unexpected \"ö\"; put names with letters other than ASCII in backticks"),
    ("SELECT “a”", 8, "put strings in ' or \""),
    ("SELECT 5x", 8, "\"5x\" is neither a number nor a name"),
    ("SELECT 1e999", 8, "the number is out of range"),
    ("SELECT a & b", 10, "bitwise operators aren't supported"),
    ("SELECT a = b COLLATE NOCASE AND c", 29, "COLLATE must be the end of an expression"),
    ("SELECT a COLLATE FRENCH", 18, "expected UNICODE, NOUNICODE, CASE, NOCASE, DIAC or NODIAC"),
    ("SELECT CASE a END", 15, "expected WHEN"),
    ("SELECT $ FROM _", 8, "expected a parameter's name after \"$\""),
    ("SELECT 1 FROM _ 2", 17, "the end, found \"2\""),
    ("SELECT a[1", 11, "expected an operator or \"]\", found the end"),
    ("SELECT {a + 1}", 14, "expected \":\" and the member's value"),
    ("SELECT ROW_NUMBER() FROM _", 21, "expected OVER and a window after ROW_NUMBER(…)"),
    ("SELECT LAG(a) FROM LAST OVER (ORDER BY a)", 15, "only NTH_VALUE can have FROM"),
    ("SELECT RANK() IGNORE NULLS OVER (ORDER BY a)", 15, "RANK can't have RESPECT NULLS"),
    ("SELECT LOWER(a) FILTER (WHERE b)", 17, "LOWER can't have FILTER"),
    ("SELECT SUM(a) OVER (ORDER BY a ROWS 1 FOLLOWING)", 37, "a frame can't end before it begins"),
    (
      "SELECT SUM(a) OVER (ORDER BY a ROWS BETWEEN 1 AND 2)", 47,
      "expected an operator, PRECEDING or FOLLOWING"
    ),
    ("SELECT SUM(a) OVER (PARTITION a)", 31, "expected \")\""),
    ("SELECT ANY x SATISFIES x END", 14, "expected IN or WITHIN"),
    ("SELECT OBJECT a FOR a IN b END", 17, "expected an operator or \":\""),
    ("SELECT ARRAY a FOR a IN b", 26, "expected an operator, WHEN or END"),
    ("SELECT order FROM _", 8, "\"order\", a reserved word; put it in backticks to use it as a name"),
    ("SELECT a FROM _ WHERE limit = 1", 23, "\"limit\", a reserved word; put it in backticks"),
  ])
  func mistakesAreFoundWhereTheyAre(text: String, column: Int, message: String) {
    let error = error(text)
    expect(error?.line, equals: 1)
    expect(error?.column, equals: column, "\(error as Any)")
    expect(error?.message.contains(message), equals: true, "\(error as Any)")
  }

  @Test(
    "a word of SQL++ without a meaning here is an error that names it",
    arguments: [
      ("SELECT a FROM _ WHERE a IS NUL", 28, "found \"NUL\" (did you mean NULL?)"),
      ("SELECT a FROM _ WHERE a IS NOT MISING", 32, "(did you mean MISSING?)"),
      ("SELECT a FROM _ WHERE a IS value", 28, "(did you mean VALUED?); a property of this name"),
      ("SELECT a FROM _ WHERE a IS unknow", 28, "(did you mean UNKNOWN?)"),
      ("SELECT a FROM _ WHERE a IS NUMBER", 28, "(did you mean ISNUMBER(…)?)"),
      ("CREATE SCOPE s", 1, "CREATE isn't supported: a query only reads; CREATE INDEX"),
      ("DROP SCOPE s", 1, "DROP isn't supported"),
      ("SELECT a FROM _ ORDER BY a EXCEPT SELECT 1", 28, "found \"EXCEPT\""),
      ("EXPLAIN EXECUTE p", 9, "EXECUTE isn't supported: it begins a statement"),
      ("PREPARE p AS EXECUTE q", 14, "and not PREPARE or EXECUTE"),
      ("EXECUTE 5", 1, "EXECUTE isn't supported"),
      ("INFER _ WITH {\"a\": 1}", 14, "INFER has \"sample_size\" and \"num_sample_values\", and no \"a\""),
      ("INFER _ WITH {\"sample_size\": 0}", 14, "is a whole number above 0"),
      ("SELECT 1; SELECT 2", 11, "one call runs one statement"),
      ("EXPLAIN UPDATE _ SET a = 1", 9, "UPDATE isn't supported"),
      ("BEGIN TRANSACTION", 1, "BEGIN isn't supported: transactions have their own call"),
      ("SELECT a FROM _ FETCH FIRST 1 ROWS WITH TIES", 36, "WITH TIES isn't; use RANK()"),
      ("SELECT CURL('x')", 8, "there is no function CURL: a query reads nothing outside"),
      ("SELECT PREDICTION(m, 1)", 8, "a query runs no models"),
      ("SELECT VECTOR_MATCH(v, [1])", 8, "there is no vector index; ORDER BY VECTOR_DISTANCE"),
      ("SELECT a FROM _ WHERE SEARCH(_, 'a')", 23, "use MATCH(index, text)"),
      ("SELECT META().cas", 15, "META() has no \"cas\" (sequence is another number after each change)"),
      ("SELECT CAST(a AS money)", 18, "expected a type: STRING, NUMBER"),
      ("SELECT STRING_AGG(a)", 20, "STRING_AGG takes 2 arguments"),
      ("SELECT a FROM _ GROUP BY CUBE(a, b, c, d, e, f, g, h, i)", 26, "CUBE takes at most 8"),
      ("SELECT a FROM _ GROUP BY GROUPING SETS (())", 26, "the grouping sets have no expression"),
      (
        "SELECT a FROM _ GROUP BY a AS x, ROLLUP(b)", 26, "names of GROUP BY can't be used with grouping sets"
      ),
      ("SELECT a FROM _ GROUP BY ROLLUP(a, 'b')", 36, "GROUP BY of a text has no effect"),
      ("SELECT a FROM _ ORDER BY 1", 26, "isn't the position of a column"),
      ("SELECT a, b FROM _ ORDER BY a, 2 DESC", 32, "isn't the position of a column"),
      ("SELECT a FROM _ ORDER BY 'a' COLLATE NOCASE", 26, "for the property write `a`"),
      ("SELECT COUNT(*) FROM _ GROUP BY 1", 33, "a number in GROUP BY isn't the position of a column"),
      ("SELECT a FROM _ GROUP BY a, 1.5", 29, "a number in GROUP BY isn't the position"),
      ("SELECT COUNT(*) FROM _ GROUP BY 'a'", 33, "GROUP BY of a text has no effect; for the property"),
    ])
  func wordsOfOtherDialectsAreNamed(text: String, column: Int, message: String) {
    let error = error(text)
    expect(error?.column, equals: column, "\(error as Any)")
    expect(error?.message.contains(message), equals: true, "\(error as Any)")
  }

  @Test(
    "the same words are names where only a name can be meant",
    arguments: [
      "SELECT raw, value, element FROM _", "SELECT value AS v, value.x, value[0], value FROM _",
      "SELECT value - 1 FROM _", "SELECT raw + a FROM _", "SELECT value = 1 FROM _", "SELECT value",
      "SELECT value IS NULL, value IN (1) FROM _", "SELECT update, `union`, let, first, array FROM _",
      "SELECT u.a FROM _ AS let JOIN _ AS u ON u.a = let.a", "SELECT a union FROM _ nest",
      "SELECT a FROM _ WHERE a IS b AND c IS NOT d.null", "SELECT a FROM _ WHERE a IS `nul`",
      "SELECT a FROM _ WHERE known IS `known` AND a IS known.b", "SELECT a FROM _ ORDER BY a * 1",
      "SELECT a FROM _ WHERE filter = 1 AND first LIKE 'a' ORDER BY use, keys",
      "SELECT array, first, object, array[0], first.a, object - 1, array x, within, over, rows FROM _",
      "SELECT SUM(a) filter, SUM(b) over, COUNT(*) AS respect FROM _ AS window WHERE window.within IN window.nulls",
      "SELECT a within FROM _ ORDER BY nulls, for DESC", "SELECT first FROM _ WHERE array IN object",
      "SELECT COUNT(all), rank, lag, ntile FROM _ GROUP BY partition, escape",
      "SELECT array AS x, y for FROM _", "SELECT a ilike, b regexp, cast, fetch FROM _ AS fetch",
      "SELECT rollup, cube, grouping, sets FROM _ GROUP BY rollup, cube, `grouping`, sets",
      "SELECT infer, prepare, execute, system FROM _ fetch LIMIT 1", "SELECT system FROM _ system",
    ])
  func wordsOfOtherDialectsAreNames(text: String) throws {
    let select = try SelectStatement(parsing: text)
    try expect(SelectStatement(parsing: select.description), equals: select)
  }

  @Test("KNOWN and UNKNOWN are other words for VALUED and NOT VALUED")
  func known() throws {
    for (text, same) in [
      ("a IS KNOWN", "a IS VALUED"), ("a IS NOT KNOWN", "a IS NOT VALUED"),
      ("a is unknown", "a IS NOT VALUED"), ("a IS NOT UNKNOWN", "a IS VALUED"),
      ("a IS KNOWN AND b IS UNKNOWN", "a IS VALUED AND b IS NOT VALUED"),
    ] {
      try expect(QueryExpression(parsing: text), equals: QueryExpression(parsing: same), "\(text)")
    }
  }

  @Test func theCaretIsUnderTheMistake() {
    expect(
      error("SELECT a\nFROM _\n\tWHERE a = 'ü' AND ,")?.description,
      equals: """
        line 3, column 20: expected an expression, found ","
          \tWHERE a = 'ü' AND ,
          \t                  ^
        """)
  }

  @Test func longLinesAreCutAroundTheCaret() {
    let text =
      "SELECT " + String(repeating: "a, ", count: 100_000) + "FROM _ WHERE "
      + String(repeating: "b ", count: 100_000)
    let error = error(text)
    expect(error?.column, equals: 300_008)
    expect((error?.description.utf8.count ?? 0) < 400)
    expect(error?.description.contains("a, a, FROM _ WHERE b b"), equals: true)
  }

  @Test func depthIsBounded() {
    let many = 100_000
    for (opening, closing) in [
      ("(", ")"), ("[", "]"), ("ABS(", ")"), ("{'a':", "}"), ("a IN (", ")"), ("NOT ", ""), ("- ", ""),
    ] {
      let text =
        "SELECT " + String(repeating: opening, count: many) + "1" + String(repeating: closing, count: many)
      expect(error(text)?.code, equals: .tooDeep, "\(opening)")
    }
    for sign in ["+", "||", "=", "<", "IS"] {
      let text = "SELECT 1" + String(repeating: " \(sign) 1", count: many)
      expect(error(text)?.code, equals: .tooDeep, "\(sign)")
    }
    expect(error("SELECT " + String(repeating: "CASE WHEN ", count: many))?.code, equals: .tooDeep)
    expect(error("SELECT " + String(repeating: "ANY a IN ", count: many))?.code, equals: .tooDeep)
    expect(error("SELECT " + String(repeating: "EXISTS (SELECT ", count: many))?.code, equals: .tooDeep)
    expect(error("SELECT 1" + String(repeating: " IS NULL", count: many))?.code, equals: .tooDeep)
  }

  @Test func whatIsLongButFlatIsTaken() throws {
    let many = 100_000
    let long = String(repeating: "x", count: 20_000_000)
    let literal = try QueryExpression(parsing: "'\(long)'")
    expect(literal, equals: .literal(.string(long)))
    for sign in ["AND", "OR"] {
      let text = "1" + String(repeating: " \(sign) 1", count: many)
      let tree = try QueryExpression(parsing: text)
      try expect(QueryExpression(parsing: tree.description), equals: tree)
    }
    let list = try QueryExpression(parsing: "a IN (1" + String(repeating: ", 1", count: many) + ")")
    guard case .contained(_, .array(let items), _) = list else {
      Issue.record("no list")
      return
    }
    expect(items.count, equals: many + 1)
  }

  /// Threads other than the main one have half a megabyte on some systems.
  @Test func theDeepestTreeFitsASmallStack() {
    let depth = Parser.depthLimit - 2
    let texts = [
      String(repeating: "1 OR 1 AND 1 = 1 < 1 + 1 * 1 || (", count: depth / 7) + "1"
        + String(repeating: ")", count: depth / 7),
      String(repeating: "(", count: depth) + "1" + String(repeating: ")", count: depth),
      String(repeating: "ABS(", count: depth) + "1" + String(repeating: ")", count: depth),
      String(repeating: "EXISTS (SELECT ", count: depth / 5) + "1" + String(repeating: ")", count: depth / 5),
      "1" + String(repeating: " + 1", count: depth),
    ]
    let isDone = CountingSemaphore()
    let thread = Thread {
      for text in texts {
        let tree = try? QueryExpression(parsing: text)
        expect(tree != nil && (try? QueryExpression(parsing: tree?.description ?? "")) == tree)
      }
      isDone.signal()
    }
    thread.stackSize = isSanitized ? 8 << 20 : 512 << 10
    thread.start()
    isDone.wait()
  }

  @Test func namesTwice() throws {
    let text = "SELECT a AS x, b AS x FROM _"
    let select = try SelectStatement(parsing: text)
    let error = #expect(throws: QueryError.self) { try select.columnNames(in: text) }
    expect(error?.code, equals: .duplicateName)
    expect(error?.column, equals: 21)
  }

  @Test func reservedWordsAreInTheirOrder() {
    for (index, word) in ReservedWords.all.enumerated() {
      let kind = Array(word.lowercased().utf8).withUnsafeBufferPointer {
        ReservedWords.kind(of: $0, from: 0, to: $0.count)
      }
      expect(kind.rawValue, equals: TokenKind.and.rawValue + UInt8(index), "\(word)")
      expect("\(kind)".uppercased(), equals: (word == "END" ? "ENDWORD" : word))
    }
    expect(TokenKind.where.rawValue, equals: TokenKind.and.rawValue + UInt8(ReservedWords.all.count - 1))
  }
}
