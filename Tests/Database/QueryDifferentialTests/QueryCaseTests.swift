import QueryDifferential
import TestSupport

/// Cases that the generator has found, as it printed them, and others that it should get right.
@Suite struct QueryCaseTests {
  /// Text in both cases, in an index, in so many documents that joins go by hash.
  private static let caseless =
    (0..<20).map { "save {\"id\":\"d\($0)\",\"body\":{\"s\":\"\(["a", "A", "b", "B", "c"][$0 % 5])\"}}\n" }
    .joined()
    + "index {\"name\":\"i\",\"on\":[\"s\"]}\n"

  /// A row of a join on `k` without a match, and an index on expressions with values without a document.
  private static let unmatched =
    (0..<12).map { number in
      let k = number % 4 == 0 ? "" : "\"k\":\(number % 5),"
      return "save {\"id\":\"d\(number)\",\"body\":{\(k)\"n\":\(number % 3 == 0 ? "null" : "\(number)")}}\n"
    }.joined()
    + "index {\"name\":\"i\",\"on\":[\"k\",\"TYPE(n)\",\"IFMISSINGORNULL(n, 0)\",\"[n, 1]\"]}\n"

  static let cases: [String] = [
    // Quotients of integers above Int64.max.
    """
    save {"id":"d1","body":{"b":18446744073709551615}}
    query SELECT IDIV(d.b, 2) AS c0, IDIV(d.b, -1) AS c1, IDIV(d.b, d.b) AS c2, IDIV(-1, d.b) AS c3 FROM _ AS d
    """,
    // Of 1.0 and 1 one counts, whichever is stored first.
    """
    save {"id":"d7","body":{"b":1.0}}
    save {"id":"d12","body":{"b":-9223372036854775808}}
    save {"id":"d16","body":{"b":1}}
    query SELECT SUM(DISTINCT d.b) AS c0, AVG(DISTINCT d.b) AS c1 FROM _ AS d
    """,
    // A comparison with a COLLATE of its own isn't one for a hash join.
    caseless
      + "query SELECT META(e).id AS c0 FROM _ AS d LEFT OUTER JOIN _ AS e ON (e.s COLLATE NOCASE) = d.s",
    caseless + "query SELECT META(e).id AS c0 FROM _ AS d JOIN _ AS e ON e.s = (d.s COLLATE NOCASE)",
    // Nor is the other bound of a BETWEEN one for an index.
    caseless + "query SELECT d.s AS c0 FROM _ AS d WHERE d.s BETWEEN ('a' COLLATE NOCASE) AND 'B'",
    caseless + "query SELECT d.s AS c0 FROM _ AS d WHERE d.s BETWEEN 'A' AND ('b' COLLATE NOCASE)",
    // A row of an outer join that a covering index answers alone has a match.
    """
    index {"name":"i","on":["a","b","s"]}
    save {"id":"d1","body":{}}
    save {"id":"d2","body":{}}
    save {"id":"d3","body":{}}
    save {"id":"d4","body":{}}
    save {"id":"d5","body":{"a":"b"}}
    query SELECT e.a AS c0 FROM _ AS d LEFT OUTER JOIN _ AS e ON e.a = d.a
    """,
    // Expressions of a covering index have their values for a row without a match too.
    unmatched + """
      query SELECT META(d).id AS c0, TYPE(e.n) AS c1, IFMISSINGORNULL(e.n, 0) AS c2, [e.n, 1] AS c3 \
      FROM _ AS d LEFT OUTER JOIN _ AS e ON e.k = d.k
      """,
    unmatched + """
      query SELECT COUNT(*) AS c0 FROM _ AS d LEFT OUTER JOIN _ AS e ON e.k = d.k \
      WHERE TYPE(e.n) != 'number'
      """,
    unmatched + """
      query SELECT TYPE(e.n) AS c0, TYPE(f.n) AS c1 FROM _ AS d LEFT OUTER JOIN _ AS e ON e.k = d.k \
      LEFT OUTER JOIN _ AS f ON f.k = IFMISSINGORNULL(e.n, 0)
      """,
  ]

  @Test("cases that were wrong are right", arguments: cases) func found(_ text: String) throws {
    let failure = try DifferentialCase(text: text).failure(on: [.sqlite, .lmdb])
    expect(failure == nil, "\(failure.map { "\($0.engine), \($0.way): \($0.message)" } ?? "")")
  }

  @Test("a case is the same after its text was read") func text() throws {
    let text = """
      save {"id":"d1","body":{"a":[1,1.0,"e\u{301}"],"b":null}}
      delete {"id":"d1"}
      purge {"id":"\u{E9}"}
      expire {"id":"d2","at":4000000000000}
      index {"name":"i1","on":["a"],"where":"b > 0","unnest":"l"}
      fulltext {"name":"ft","on":["t"],"language":"english"}
      drop {"name":"i1"}
      live save {"id":"d1","body":{}}
      batch save {"id":"d1","body":{"a":1}}
      parameters {"p":1.5}
      query SELECT a FROM _ WHERE a = $p
      """
    try expect(DifferentialCase(text: text).text, equals: text)
  }

  @Test("a wrong answer is found and made small") func shrinks() throws {
    // What no engine says: the case compares with an answer that is wrong on purpose.
    var found = try DifferentialCase(
      text: """
        save {"id":"d1","body":{"a":1,"b":2}}
        save {"id":"d2","body":{"a":2}}
        query SELECT d.a AS c0, d.b AS c1 FROM _ AS d WHERE d.a = 1 AND d.b > 0 ORDER BY d.a LIMIT 3
        """)
    expect(found.failure(on: [.sqlite]) == nil)
    found.planted = { $0.contains("d.a = 1") ? "planted" : nil }
    let failure = try #require(found.failure(on: [.sqlite]))
    var shrinker = CaseShrinker(found, failure, [.sqlite])
    shrinker.shrink()
    expect(shrinker.best.steps.isEmpty)
    expect(shrinker.best.query.description, equals: "SELECT 1 AS c1 FROM _ AS d WHERE d.a = 1")
  }
}
