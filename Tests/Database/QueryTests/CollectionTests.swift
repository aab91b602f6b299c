import TestSupport

@testable import Query

/// Loops over collections, subscripts, and objects with computed names.
@Suite struct CollectionTests {
  private static let document = #"""
    {"a": 1, "s": "x", "n": null, "arr": [1, 2, 3], "o": {"x": 10, "y": [20, {"z": 30}]}, "objects": [{"k": 1}, {"k": 2, "m": 3}],
     "words": ["b", "a", null], "e": []}
    """#

  @Test(
    arguments: [
      // ARRAY, FIRST and OBJECT.
      ("ARRAY x FOR x IN arr END", "[1,2,3]"), ("ARRAY x * 2 FOR x IN arr WHEN x > 1 END", "[4,6]"),
      ("ARRAY v.m FOR v IN objects END", "[3]"),
      ("ARRAY [x, y] FOR x IN arr, y IN words END", "[[1,\"b\"],[2,\"a\"],[3,null]]"),
      ("ARRAY [x, y] FOR x IN arr, y IN objects END", "[[1,{\"k\":1}],[2,{\"k\":2,\"m\":3}]]"),
      ("ARRAY [i, x] FOR i : x IN words END", "[[0,\"b\"],[1,\"a\"],[2,null]]"),
      ("ARRAY [p, v] FOR p : v IN o END", "[[\"x\",10],[\"y\",[20,{\"z\":30}]]]"),
      ("ARRAY v FOR v WITHIN o END", "[10,[20,{\"z\":30}],20,{\"z\":30},30]"),
      ("ARRAY p FOR p : v WITHIN o END", "[\"x\",\"y\",0,1,\"z\"]"),
      ("ARRAY x FOR x IN gone END", "missing"), ("ARRAY x FOR x IN a END", "null"),
      ("ARRAY x FOR x IN o END", "null"),
      ("ARRAY x FOR x IN n END", "null"), ("ARRAY x FOR x IN e END", "[]"),
      ("ARRAY a FOR x IN arr END", "[1,1,1]"),
      ("ARRAY ARRAY y * x FOR y IN arr END FOR x IN arr WHEN x < 3 END", "[[1,2,3],[2,4,6]]"),
      ("ARRAY x FOR x IN arr END[1]", "2"), ("ARRAY arr[i] FOR i : x IN arr END", "[1,2,3]"),
      ("FIRST x FOR x IN arr WHEN x > 1 END", "2"), ("FIRST x FOR x IN arr WHEN x > 9 END", "missing"),
      ("FIRST v.m FOR v IN objects END", "missing"), ("FIRST v FOR v WITHIN o WHEN v = 30 END", "30"),
      ("FIRST x FOR x IN gone END", "missing"), ("FIRST x FOR x IN s END", "null"),
      ("OBJECT TOSTRING(x) : x * x FOR x IN arr END", "{\"1\":1,\"2\":4,\"3\":9}"),
      ("OBJECT 'k' : x FOR x IN arr END", "{\"k\":3}"),
      ("OBJECT p : v FOR p : v IN o WHEN v = 10 END", "{\"x\":10}"),
      ("OBJECT x : 1 FOR x IN arr END", "null"), ("OBJECT v.gone : 1 FOR v IN objects END", "missing"),
      ("OBJECT TOSTRING(v.k) : v.m FOR v IN objects END", "{\"2\":3}"),
      // ANY and EVERY.
      ("ANY x IN arr, y IN arr SATISFIES x = y AND x = 3 END", "true"),
      ("ANY x IN arr, y IN words SATISFIES x > 3 END", "false"),
      ("EVERY x IN arr, y IN [2, 3] SATISFIES y = x + 1 END", "true"),
      ("ANY AND EVERY x IN arr, y IN e SATISFIES TRUE END", "false"),
      ("SOME i : x IN words SATISFIES i = 2 AND x IS NULL END", "true"),
      ("ANY v WITHIN o SATISFIES v = 30 END", "true"), ("SOME v WITHIN o SATISFIES v = 31 END", "false"),
      ("EVERY v WITHIN gone SATISFIES FALSE END", "true"),
      ("ANY x IN arr, y IN a SATISFIES TRUE END", "false"),
      ("ANY x IN arr SATISFIES (ANY y WITHIN o SATISFIES y = x * 10 END) END", "true"),
      // WITHIN
      ("30 WITHIN o", "true"), ("30 NOT WITHIN o", "false"), ("31 WITHIN o", "false"),
      ("{'z': 30} WITHIN o", "true"),
      ("1 WITHIN a", "null"), ("1 WITHIN gone", "missing"), ("gone WITHIN o", "missing"),
      ("n WITHIN o", "null"),
      ("9 WITHIN words", "null"), ("'a' WITHIN words", "true"),
      ("1 WITHIN arr AND 2 NOT WITHIN arr", "false"),
      // Subscripts.
      ("arr[a]", "2"), ("arr[-a]", "3"), ("arr[a + 9]", "missing"), ("arr[1.5]", "null"),
      ("arr['x']", "missing"),
      ("arr[s]", "null"), ("arr[gone]", "missing"), ("arr[n]", "null"), ("a[a]", "missing"),
      ("gone[a]", "missing"),
      ("o[s]", "10"), ("o['x']", "10"), ("o.['x']", "10"), ("o.[s]", "10"), ("o.['y'][1].z", "30"),
      ("o.[s || 'q']", "missing"),
      ("o.[a]", "null"), ("arr.[s]", "null"), ("arr[0:2]", "[1,2]"), ("arr[1:]", "[2,3]"),
      ("arr[:2]", "[1,2]"), ("arr[:]", "[1,2,3]"),
      ("arr[-2:]", "[2,3]"), ("arr[0:-1]", "[1,2]"), ("arr[1:1]", "[]"), ("arr[2:1]", "missing"),
      ("arr[0:4]", "missing"),
      ("arr[-4:]", "missing"), ("arr[s:]", "null"), ("arr[gone:]", "missing"), ("a[0:1]", "null"),
      ("arr[a:a + 1][0]", "2"),
      ("objects[*].k", "[1,2]"), ("objects[*].m", "[null,3]"), ("objects[*]", "{\"k\":[1,2],\"m\":[null,3]}"),
      ("OBJECT_INNER_VALUES(objects[*])", "[[1,2],3]"), ("OBJECT_VALUES(objects[*])", "[[1,2],[null,3]]"),
      (
        "OBJECT_INNER_PAIRS([{'a': 1}, {'b': 2}][*])",
        "[{\"name\":\"a\",\"val\":1},{\"name\":\"b\",\"val\":2}]"
      ),
      ("a[*]", "null"), ("SPLIT('a b')[a]", "\"b\""), ("(arr)[1 + 1]", "3"), ("{'k': arr}.k[a]", "2"),
      // Objects.
      ("{a, s}", "{\"a\":1,\"s\":\"x\"}"), ("{o.x, arr[0:1][0]: 1}", "null"),
      ("{o.x, 'y': 2}", "{\"x\":10,\"y\":2}"),
      ("{s: a, s || 'y': 2}", "{\"x\":1,\"xy\":2}"), ("{n: 1, gone: 2, s: 3}", "{\"x\":3}"),
      ("{a: 1}", "null"),
      ("{s: gone}", "{}"), ("{'k': 1, gone}", "{\"k\":1}"),
      // LIKE … ESCAPE and DISTINCT FROM.
      ("'a%' LIKE 'a!%' ESCAPE '!'", "true"), ("'ab' LIKE 'a!%' ESCAPE '!'", "false"),
      ("'a\\b' LIKE 'a\\b' ESCAPE '!'", "true"),
      ("'a!b' LIKE 'a!!%' ESCAPE '!'", "true"), ("'ab' LIKE 'a_' ESCAPE ''", "null"),
      ("'ab' NOT LIKE 'a!_' ESCAPE '!'", "true"),
      ("a IS DISTINCT FROM 1.0", "false"), ("a IS NOT DISTINCT FROM 2", "false"),
      ("n IS DISTINCT FROM NULL", "false"),
      ("n IS DISTINCT FROM gone", "true"), ("gone IS NOT DISTINCT FROM MISSING", "true"),
    ] as [(String, String)])
  func values(_ text: String, _ expected: String) throws {
    let harness = try EvaluationHarness(Self.document)
    try expect(harness.evaluate(text), equals: expected, "\(text)")
    let tree = try QueryExpression(parsing: text)
    try expect(QueryExpression(parsing: tree.description), equals: tree, "\(text)")
    try expect(harness.evaluate(tree), equals: expected, "\(text)")
  }

  @Test("a positional parameter is a name of its own, and @ is another sign for $")
  func parameters() throws {
    let harness = try EvaluationHarness(Self.document)
    try expect(
      harness.evaluate("[?, ?, $2, @p, $p]", parameters: ["1": "a", "2": 5, "p": true]),
      equals: "[\"a\",5,5,true,true]")
    try expect(QueryExpression(parsing: "? = ?").description, equals: "$1 = $2")
  }

  @Test("the builder makes the same trees as text")
  func builder() throws {
    let arr = QueryExpression.property("arr")
    let x = QueryExpression.property("x")
    for (text, tree) in [
      (
        "ARRAY x FOR x IN arr WHEN x > 1 END",
        QueryExpression.array(x, for: "x", in: arr, when: x.greaterThan(1))
      ),
      ("FIRST x FOR x IN arr END", .first(x, for: "x", in: arr)),
      ("OBJECT x : 1 FOR x IN arr END", .object(x, 1, for: "x", in: arr)),
      ("1 WITHIN arr", QueryExpression.int(1).within(arr)), ("arr[x]", arr[x]),
      ("arr[1:x]", arr.slice(from: 1, to: x)),
      ("arr.[x]", arr.member(named: x)), ("{x: 1}", .computedObject([ComputedMember(x, 1)])),
      (
        "SUM(x) FILTER (WHERE x > 1) OVER (PARTITION BY arr ORDER BY x DESC NULLS LAST ROWS UNBOUNDED PRECEDING)",
        Function.sum(x).filtered(x.greaterThan(1)).over(
          WindowDefinition(
            partitionBy: [arr], orderBy: [Ordering(x, isDescending: true, nulls: .last)],
            frame: WindowFrame(.rows, from: .unboundedPreceding)))
      ),
      (
        "ROW_NUMBER() OVER (ORDER BY x)",
        Function.named("row_number").over(WindowDefinition(orderBy: [Ordering(x)]))
      ),
    ] as [(String, QueryExpression)] {
      try expect(QueryExpression(parsing: text), equals: tree, "\(text)")
    }
  }

  @Test("a loop can be cancelled within a row")
  func cancellation() throws {
    let harness = try EvaluationHarness(Self.document)
    let text = "ARRAY (ANY y IN ARRAY_RANGE(0, $n) SATISFIES y < 0 END) FOR x IN ARRAY_RANGE(0, $n) END"
    let cancellation = QueryCancellation()
    cancellation.cancel()
    try expect(
      queryCode { _ = try harness.evaluate(text, parameters: ["n": 1_000_000], cancellation: cancellation) },
      equals: .cancelled)
  }

  @Test("text that only looks like a loop takes time in proportion to its length")
  func lookahead() throws {
    let nested = String(repeating: "array[", count: 190) + "0" + String(repeating: "]", count: 190)
    _ = try QueryExpression(parsing: nested)
    let long = (0..<20_000).map { "array [\($0)]" }.joined(separator: " OR ")
    _ = try QueryExpression(parsing: long)
  }
}
