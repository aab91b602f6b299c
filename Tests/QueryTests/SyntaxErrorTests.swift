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
    ("SELECT a FROM _ WHERE a NOT 1", 29, "expected IN, LIKE, BETWEEN, NULL, MISSING or VALUED after NOT"),
    ("SELECT a FROM _ WHERE a BETWEEN 1 OR 2", 35, "expected AND and the upper bound of BETWEEN"),
    ("SELECT a FROM _ HAVING a", 17, "HAVING needs GROUP BY before it"),
    ("SELECT a FROM _, b", 16, "add further sources with JOIN"),
    ("SELECT a FROM _ JOIN b", 23, "expected ON and the condition of the JOIN"),
    ("SELECT a FROM _ CROSS JOIN b ON 1", 30, "CROSS JOIN can't have ON"),
    ("SELECT a FROM _ RIGHT JOIN b ON 1", 17, "RIGHT JOIN isn't supported"),
    ("SELECT a FROM x.y", 15, "scopes and collections aren't supported"),
    ("SELECT a FROM _ UNNEST a || b", 30, "expected AS and a name for the unnested items"),
    ("SELECT SUBSTRING(a)", 8, "there is no function SUBSTRING (did you mean SUBSTR?)"),
    ("SELECT 1 + lenght(a)", 12, "there is no function LENGHT (did you mean LENGTH?)"),
    ("SELECT LENGTH(a, b)", 8, "LENGTH takes one argument, not 2"),
    ("SELECT NULLIF(a)", 8, "NULLIF takes 2 arguments, not 1"),
    ("SELECT ROUND()", 8, "ROUND takes 1 to 2 arguments, not 0"),
    ("SELECT GREATEST(1)", 8, "GREATEST takes at least 2 arguments, not 1"),
    ("SELECT PI(3)", 8, "PI takes no arguments, not 1"),
    ("SELECT LOWER(DISTINCT a)", 14, "LOWER can't have DISTINCT"),
    ("SELECT META().sequense", 15, "META() has no \"sequense\" (did you mean sequence?)"),
    ("SELECT a['x']", 10, "expected the index of an array's item, a number, found \"'x'\""),
    ("SELECT 'abc", 8, "the string has no end"),
    ("SELECT `abc", 8, "the name in backticks has no end"),
    ("SELECT a /* b", 10, "the comment has no end"),
    ("SELECT größe", 10, "unexpected \"ö\"; put names with letters other than ASCII in backticks"),
    ("SELECT “a”", 8, "put strings in ' or \""),
    ("SELECT 5x", 8, "\"5x\" is neither a number nor a name"),
    ("SELECT 1e999", 8, "the number is out of range"),
    ("SELECT a & b", 10, "bitwise operators aren't supported"),
    ("SELECT (SELECT 1)", 9, "a query inside a query is supported only"),
    ("SELECT a = b COLLATE NOCASE AND c", 29, "COLLATE must be the end of an expression"),
    ("SELECT a COLLATE FRENCH", 18, "expected UNICODE, NOUNICODE, CASE, NOCASE, DIAC or NODIAC"),
    ("SELECT CASE a END", 15, "expected WHEN"),
    ("SELECT $ FROM _", 8, "expected a parameter's name after \"$\""),
    ("SELECT 1; SELECT 2", 11, "the end, found \"SELECT\""),
  ])
  func mistakesAreFoundWhereTheyAre(text: String, column: Int, message: String) {
    let error = error(text)
    #expect(error?.line == 1)
    #expect(error?.column == column, "\(error as Any)")
    #expect(error?.message.contains(message) == true, "\(error as Any)")
  }

  @Test func theCaretIsUnderTheMistake() {
    #expect(
      error("SELECT a\nFROM _\n\tWHERE a = 'ü' AND ,")?.description == """
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
    #expect(error?.column == 300_008)
    #expect((error?.description.utf8.count ?? 0) < 400)
    #expect(error?.description.contains("a, a, FROM _ WHERE b b") == true)
  }

  @Test func depthIsBounded() {
    let many = 100_000
    for (opening, closing) in [
      ("(", ")"), ("[", "]"), ("ABS(", ")"), ("{'a':", "}"), ("a IN (", ")"), ("NOT ", ""), ("- ", ""),
    ] {
      let text =
        "SELECT " + String(repeating: opening, count: many) + "1" + String(repeating: closing, count: many)
      #expect(error(text)?.code == .tooDeep, "\(opening)")
    }
    for sign in ["+", "||", "=", "<", "IS"] {
      let text = "SELECT 1" + String(repeating: " \(sign) 1", count: many)
      #expect(error(text)?.code == .tooDeep, "\(sign)")
    }
    #expect(error("SELECT " + String(repeating: "CASE WHEN ", count: many))?.code == .tooDeep)
    #expect(error("SELECT " + String(repeating: "ANY a IN ", count: many))?.code == .tooDeep)
    #expect(error("SELECT " + String(repeating: "EXISTS (SELECT ", count: many))?.code == .tooDeep)
    #expect(error("SELECT 1" + String(repeating: " IS NULL", count: many))?.code == .tooDeep)
  }

  @Test func whatIsLongButFlatIsTaken() throws {
    let many = 100_000
    let long = String(repeating: "x", count: 20_000_000)
    let literal = try QueryExpression(parsing: "'\(long)'")
    #expect(literal == .literal(.string(long)))
    for sign in ["AND", "OR"] {
      let text = "1" + String(repeating: " \(sign) 1", count: many)
      let tree = try QueryExpression(parsing: text)
      #expect(try QueryExpression(parsing: tree.description) == tree)
    }
    let list = try QueryExpression(parsing: "a IN (1" + String(repeating: ", 1", count: many) + ")")
    guard case .contained(_, .array(let items), _) = list else {
      Issue.record("no list")
      return
    }
    #expect(items.count == many + 1)
  }

  /// Threads other than the main one have half a megabyte on some systems.
  @Test func theDeepestTreeFitsASmallStack() {
    let depth = Parser.depthLimit - 2
    let texts = [
      String(repeating: "1 OR 1 AND 1 = 1 < 1 + 1 * 1 || (", count: depth / 7) + "1"
        + String(repeating: ")", count: depth / 7),
      String(repeating: "(", count: depth) + "1" + String(repeating: ")", count: depth),
      String(repeating: "ABS(", count: depth) + "1" + String(repeating: ")", count: depth),
      String(repeating: "EXISTS (SELECT ", count: depth / 2) + "1" + String(repeating: ")", count: depth / 2),
      "1" + String(repeating: " + 1", count: depth),
    ]
    let isDone = CountingSemaphore()
    let thread = Thread {
      for text in texts {
        let tree = try? QueryExpression(parsing: text)
        #expect(tree != nil && (try? QueryExpression(parsing: tree?.description ?? "")) == tree)
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
    #expect(error?.code == .duplicateName)
    #expect(error?.column == 21)
  }

  @Test func reservedWordsAreInTheirOrder() {
    for (index, word) in ReservedWords.all.enumerated() {
      let kind = Array(word.lowercased().utf8).withUnsafeBufferPointer {
        ReservedWords.kind(of: $0, from: 0, to: $0.count)
      }
      #expect(kind.rawValue == TokenKind.and.rawValue + UInt8(index), "\(word)")
      #expect("\(kind)".uppercased() == (word == "END" ? "ENDWORD" : word))
    }
    #expect(TokenKind.where.rawValue == TokenKind.and.rawValue + UInt8(ReservedWords.all.count - 1))
  }
}
