import TestSupport

@testable import Query

@Suite struct EvaluationTests {
  /// The tables of AND and OR: FALSE, MISSING, NULL, TRUE for the one; TRUE, NULL, MISSING, FALSE for the other.
  @Test func logicIsN1QLs() throws {
    let harness = try EvaluationHarness()
    let values = ["false", "missing", "null", "true"]
    for (a, left) in values.enumerated() {
      for (b, right) in values.enumerated() {
        try expect(harness.evaluate("\(left) AND \(right)"), equals: values[min(a, b)])
        try expect(harness.evaluate("\(left) OR \(right)"), equals: values[max(a, b)])
      }
    }
    for (value, negated) in [("true", "false"), ("false", "true"), ("null", "null"), ("missing", "missing")] {
      try expect(harness.evaluate("NOT \(value)"), equals: negated)
    }
  }

  /// Every pair of values of every type, constant and in a document, compares as N1QL's order says.
  @Test func comparisonsFollowTheOrderOfTypes() throws {
    let ordered = [
      "false", "true", "-1e300", "-5", "0", "0.5", "1", "9007199254740992.0", "9007199254740993", "1e300",
      "''",
      "'A'", "'B'", "'a'", "'a '", "'é'", "[]", "[1]", "[1,2]", "[2]", "['a']", "{}", "{'a':1}", "{'a':2}",
      "{'b':0}",
    ]
    let members = ordered.enumerated().map { "\"v\($0)\":\($1.replacingQuotes)" }
    let harness = try EvaluationHarness("{\(members.joined(separator: ","))}")
    for (a, left) in ordered.enumerated() {
      for (b, right) in ordered.enumerated() {
        for text in ["v\(a) < v\(b)", "v\(a) < \(right)", "\(left) < v\(b)"] {
          try expect(
            harness.evaluate(text), equals: (a < b ? "true" : "false"), "\(text): \(left) < \(right)")
        }
        for text in ["v\(a) = v\(b)", "v\(a) = \(right)", "\(left) = v\(b)"] {
          try expect(
            harness.evaluate(text), equals: (a == b ? "true" : "false"), "\(text): \(left) = \(right)")
        }
        try expect(harness.evaluate("v\(a) >= \(right)"), equals: (a >= b ? "true" : "false"))
      }
    }
  }

  /// The order of index keys is the order of comparison, also under collations.
  @Test func keysAreInTheOrderOfComparison() throws {
    let texts = [
      "null", "false", "true", "-1.5", "0", "2", "18446744073709551615", "\"\"", "\"a\"", "\"A\"", "\"b\"",
      "\"äpple\"", "\"Zebra\"", "\"Ångström\"", "[]", "[1,\"a\"]", "[1,\"A\"]", "{}",
      "{\"b\":1,\"a\":[null]}",
      "{\"a\":[null],\"b\":1.0}", "{\"a\":1}",
    ]
    let collations: [Collation] = [
      .binary, Collation(ignoresCase: true), Collation(isUnicode: true),
      Collation(isUnicode: true, ignoresCase: true),
      Collation(isUnicode: true, ignoresDiacritics: true), Collation(isUnicode: true, locale: "sv"),
    ]
    let arena = EvaluationArena()
    let values = try texts.map { arena.value(of: try JSONValue(json: $0)) } + [.missing]
    for collation in collations {
      let collator = try Collator(collation)
      defer { withExtendedLifetime(collator) {} }
      let order = ValueOrder(.empty, collator)
      var keys: [[UInt8]] = []
      for value in values {
        var key = OrderedKeyEncoder()
        key.append(value, order)
        keys.append(key.bytes)
      }
      for (a, left) in values.enumerated() {
        for (b, right) in values.enumerated() {
          let compared = order.compare(left, right).signum()
          let byKeys = keys[a] == keys[b] ? 0 : keys[a].lexicographicallyPrecedes(keys[b]) ? -1 : 1
          expect(compared, equals: byKeys, "\(collation): \(a) and \(b)")
          if compared == 0 {
            expect(order.hash(left), equals: order.hash(right), "\(collation): \(a) and \(b)")
          }
        }
      }
    }
  }

  /// Keys without collations give their values back, 1.0 as 1.
  @Test func keysAreReadBack() throws {
    let text = #"[null,true,-7,0.5,18446744073709551615,"a\u0000\u0001b",[1,[]],{"a":{"b":2}}]"#
    let arena = EvaluationArena()
    var key = OrderedKeyEncoder()
    key.append(arena.value(of: try JSONValue(json: text)), ValueOrder(.empty))
    let back = try key.bytes.withUnsafeBytes { bytes -> String in
      var decoder = OrderedKeyDecoder(bytes)
      guard let value = try arena.value(from: &decoder) else { return "nothing" }
      var json: [UInt8] = []
      try value.writeJSON(.empty, into: &json)
      return String(decoding: json, as: UTF8.self)
    }
    expect(back, equals: text)
  }

  @Test(
    arguments: [
      ("'Ähre' LIKE 'ä%'", "true"), ("'STRASSE' LIKE 'straße'", "false"), ("'ΣΑΣ' LIKE 'σας'", "true"),
      ("'\u{212A}elvin' LIKE 'k%'", "true"), ("'abc' LIKE '%b%'", "true"), ("'abc' LIKE '%B%'", "true"),
      ("'abc' LIKE '%d%'", "false"), ("'aXbXc' LIKE 'a%b%c'", "true"), ("'a%c' LIKE 'a\\%c'", "true"),
      ("'abc' LIKE 'a\\%c'", "false"), ("'😀' LIKE '_'", "true"), ("'' LIKE '%'", "true"),
      ("'' LIKE '_'", "false"),
      ("'a\nb' LIKE 'a%b'", "true"), ("'abcabd' LIKE '%ab_'", "true"), ("5 LIKE '5'", "null"),
      ("missing LIKE 'a'", "missing"), ("('Abc' LIKE 'a%') COLLATE UNICODE", "false"),
      ("('Éa' LIKE 'e%') COLLATE (UNICODE NOCASE NODIAC)", "true"), ("'abc' NOT LIKE 'b%'", "true"),
      ("CONTAINS('Naïve', 'ïv')", "true"), ("CONTAINS('Naïve', 'naive')", "false"),
      ("CONTAINS('Naïve', 'naive') COLLATE (UNICODE NOCASE NODIAC)", "true"),
      ("'test á' = 'test a'", "false"), ("('test á' = 'test a') COLLATE (UNICODE NODIAC)", "true"),
      ("('a' < 'A') COLLATE UNICODE", "true"), ("('ä' < 'z') COLLATE UNICODE:sv", "false"),
      ("('ä' < 'z') COLLATE UNICODE:de", "true"), ("(name COLLATE NOCASE) = 'APPLE'", "true"),
      ("1 IN [1,2]", "true"), ("1 IN nums", "true"), ("9 IN nums", "false"), ("1 IN name", "null"),
      ("1 IN absent", "missing"), ("absent IN (1)", "missing"), ("null IN (1)", "null"),
      ("null IN ()", "false"),
      ("3.0 IN (1,2,3)", "true"), ("name IN ('x','apple')", "true"), ("1 IN (null, 2)", "null"),
      ("1 IN (1, missing)", "true"), ("name IS name", "true"), ("absent IS absent2", "true"),
      ("1 IS 1.0", "true"),
      ("absent IS NOT 1", "true"), ("absent IS MISSING", "true"), ("name IS VALUED", "true"),
      ("ANY n IN nums SATISFIES n > 2 END", "true"), ("EVERY n IN nums SATISFIES n > 0 END", "true"),
      ("ANY r IN objs SATISFIES r.a.b = 2 END", "true"), ("ANY v IN objs[0] SATISFIES v.b = 1 END", "true"),
      ("ANY n IN absent SATISFIES true END", "false"), ("EVERY n IN name SATISFIES false END", "true"),
      ("ANY n IN nums SATISFIES (ANY m IN nums SATISFIES m = n + 2 END) END", "true"),
      ("[1, absent, null]", "[1,null,null]"),
      ("{'b': 1, 'a': absent, 'c': [nums[0]]}", "{\"b\":1,\"c\":[1]}"),
      ("{'x': nums}.x[-2]", "2"), ("SPLIT('a b  c')[1]", "\"b\""), ("-nums[0]", "-1"), ("-'a'", "null"),
      ("-(-9223372036854775807 - 1)", "9223372036854775808"), ("1 + 2 * 3 - 4 / 2", "5"), ("7 % -3", "1"),
      ("1e308 * 10", "null"), ("NOT nums[0] = 1", "false"), ("5 BETWEEN 6 AND null", "false"),
      ("5 BETWEEN 4 AND null", "null"), ("5 NOT BETWEEN 1 AND 4", "true"), ("META().id", "\"hotel_1\""),
      ("META().sequence", "17"), ("META().deleted", "false"), ("META().expiration", "missing"),
      ("CASE WHEN absent THEN 1 WHEN nums[0] = 1 THEN 2 ELSE 3 END", "2"),
      ("CASE 2 WHEN 2.0 THEN 'x' END", "\"x\""),
      ("'a' || 1 || null", "\"a1null\""), ("'a' || absent", "missing"), ("* IS VALUED", "true"),
    ] as [(String, String)])
  func expression(_ text: String, _ expected: String) throws {
    let harness = try EvaluationHarness(
      #"{"name":"apple","nums":[1,2,3],"objs":[{"a":{"b":1}},{"a":{"b":2}}]}"#)
    try expect(harness.evaluate(text), equals: expected, "\(text)")
  }

  /// What is folded, or compiled to a node of its own, gives what the general nodes give.
  @Test func foldingChangesNothing() throws {
    let harness = try EvaluationHarness(#"{"s":"Hotel","n":4,"d":4.5,"b":true,"z":null,"a":[1]}"#)
    let constants = ["'Hotel'", "4", "4.0", "4.5", "true", "null", "missing", "[1]", "-1", "'a'"]
    let paths = ["s", "n", "d", "b", "z", "a", "gone", "a[0]", "s.x"]
    for path in paths {
      for constant in constants {
        for comparison in ["=", "!=", "<", "<=", ">", ">="] {
          // IFMISSINGORNULL of an unknown name keeps the compiler from seeing a constant.
          let plain = try harness.evaluate("\(path) \(comparison) \(constant)")
          let hidden = try harness.evaluate("\(path) \(comparison) $p", parameters: ["p": .null])
          if constant == "null" { expect(plain, equals: hidden) }
          let wrapped = try harness.evaluate(
            "NOT NOT (CASE WHEN true THEN \(path) END \(comparison) \(constant))")
          expect(plain, equals: wrapped, "\(path) \(comparison) \(constant)")
        }
      }
    }
  }

  @Test func unsetParametersAreNamed() throws {
    let harness = try EvaluationHarness()
    let error = #expect(throws: QueryError.self) { try harness.evaluate("$city = 'Paris'") }
    expect(error?.code, equals: .unsetParameter)
    expect(error?.message.contains("$city"), equals: true)
    try expect(harness.evaluate("$city || '!'", parameters: ["city": "Paris"]), equals: "\"Paris!\"")
    try expect(harness.evaluate("$list[1].a", parameters: ["list": [1, ["a": 2]]]), equals: "2")
  }

  @Test func mistakesAreReported() throws {
    let harness = try EvaluationHarness()
    #expect(throws: QueryError.self) { try harness.evaluate("REGEXP_LIKE('a', '(')") }
    #expect(throws: QueryError.self) { try harness.evaluate("REPEAT('abc', 100000000)") }
    #expect(throws: QueryError.self) { try harness.evaluate("COUNT(a) > 1") }
    let program = EvaluationProgram()
    let unknown = QueryExpression.call(FunctionCall("NOSUCH", []))
    #expect(throws: QueryError.self) { try program.compile(unknown, in: EmptyScope()) }
    let few = QueryExpression.call(FunctionCall("SUBSTR", [.literal(.string("a"))]))
    #expect(throws: QueryError.self) { try program.compile(few, in: EmptyScope()) }
  }

  @Test("constants are computed once, but for those that take long") func constantsAreFolded() throws {
    func constant(_ text: String) throws -> String? {
      let program = EvaluationProgram()
      let node = try program.compile(try QueryExpression(parsing: text), in: TestScope())
      guard let value = node.constant else { return nil }
      var json: [UInt8] = []
      try value.writeJSON(.empty, into: &json)
      return String(decoding: json, as: UTF8.self)
    }
    for (text, folded) in [
      ("1 + 2 * 3", "7"), ("UPPER('a') || 'b'", "\"Ab\""), ("1 = 2 OR 1 = 1", "true"), ("[1, 2][1]", "2"),
      ("LENGTH(REPEAT('ab', 30000))", "60000"), ("18446744073709551615 - 1", "18446744073709551614"),
      ("REGEXP_LIKE('abc', 'b')", "true"), ("name || 'a'", nil), ("name = $p", nil),
      ("STR_TO_MILLIS('2018-01-01')", nil), ("REPEAT('ab', 40000)", nil),
      ("SPLIT(REPEAT('ab', 5000), '')", nil),
      ("REGEXP_LIKE(REPEAT('a', 40), '^(a+)+#')", nil),
    ] as [(String, String?)] {
      try expect(constant(text), equals: folded, "\(text)")
    }
  }
}

extension String {
  fileprivate var replacingQuotes: String {
    String(map { $0 == "'" ? "\"" : $0 })
  }
}
