import TestSupport

@testable import Query

/// What is printed parses to the tree that was printed.
@Suite struct SyntaxRoundTripTests {
  @Test func randomStatementsPrintAndParseToThemselves() throws {
    let seeds = UInt64.random(in: 0...1_000_000_000)
    for seed in seeds..<(seeds + (isLong ? 200_000 : 4_000)) {
      var tree = RandomTree(seed: seed)
      let select = tree.query(depth: Int(seed % 4))
      let text = select.description
      do {
        let again = try SelectStatement(parsing: text)
        try #require(again == select, "became\n\(again)")
      } catch { throw ConformanceFailure("seed \(seed): \(text)\n\(error)") }
    }
  }

  @Test func explainIsPrinted() throws {
    for text in ["EXPLAIN SELECT 1", "EXPLAIN ANALYZE SELECT 1", "SELECT 1"] {
      try expect(QueryStatement(parsing: text.lowercased()).description, equals: text)
    }
  }

  /// Parentheses stand where the tree needs them and nowhere else.
  @Test(arguments: [
    ("((a))", "a"), ("(a + b) * c", "(a + b) * c"), ("(a * b) + c", "a * b + c"),
    ("a - (b - c)", "a - (b - c)"),
    ("(a - b) - c", "a - b - c"), ("not (a = b)", "NOT a = b"), ("(not a) = b", "(NOT a) = b"),
    ("(a and b) or c", "a AND b OR c"), ("a and (b or c)", "a AND (b OR c)"),
    ("a || (b * c)", "a || (b * c)"),
    ("- (17)", "- 17"), ("-17", "-17"), ("-a", "-a"), ("a == b", "a = b"), ("a <> b", "a != b"),
    ("x in [1, 2]", "x IN (1, 2)"), ("x IN ((a || b))", "x IN a || b"),
    ("x IN ((a OR b))", "x IN ((a OR b))"),
    ("x is (null)", "x IS (NULL)"), ("some r in a satisfies r = 1 end", "ANY r IN a SATISFIES r = 1 END"),
    ("is_array(a)", "ISARRAY(a)"), ("`mr.grieves`.`hey`[-1]", "`mr.grieves`.hey[-1]"),
    ("a.`order`", "a.`order`"),
    ("a.order", "a.`order`"), ("'it''s'", "'it''s'"), ("\"it's\"", "'it''s'"), (".5", "0.5"), ("5.", "5.0"),
    ("1e3", "1000.0"), ("9223372036854775808", "9223372036854775808"),
    ("18446744073709551616", "1.8446744073709552e+19"), ("a not null", "a IS NOT NULL"),
    ("a = b collate (nocase unicode:sv)", "a = b COLLATE (UNICODE:sv NOCASE)"),
    ("a collate unicode:de-AT", "a COLLATE UNICODE:`de-AT`"), ("(meta()).id", "(META()).id"),
    ("meta(r).revisionID", "META(r).revisionID"), ("a within (*)", "a WITHIN (*)"),
    ("a within (- 1)", "a WITHIN (- 1)"), ("a within right(b, 1)", "a WITHIN RIGHT(b, 1)"),
    ("array v collate (case unicode) for v in a end", "ARRAY v COLLATE UNICODE FOR v IN a END"),
    ("a[(b collate unicode):2]", "a[(b COLLATE UNICODE):2]"),
    ("array (array w for w in v end) for v in a end", "ARRAY ARRAY w FOR w IN v END FOR v IN a END"),
    ("array (some w in v satisfies w end) for v in a end", "ARRAY ANY w IN v SATISFIES w END FOR v IN a END"),
    (
      "array b and every w in v satisfies w end for v in a end",
      "ARRAY b AND EVERY w IN v SATISFIES w END FOR v IN a END"
    ),
    (
      "array every w in v, x within v satisfies w end for v in a end",
      "ARRAY EVERY w IN v, x WITHIN v SATISFIES w END FOR v IN a END"
    ),
    ("array v is distinct from 1 for v in a end", "ARRAY v IS NOT 1 FOR v IN a END"),
    ("array (- 1) for v in a end", "ARRAY (- 1) FOR v IN a END"),
    ("array -v for v in a end", "ARRAY -v FOR v IN a END"),
  ])
  func expressionsArePrintedPlainly(text: String, printed: String) throws {
    try expect(QueryExpression(parsing: text).description, equals: printed)
  }
}
