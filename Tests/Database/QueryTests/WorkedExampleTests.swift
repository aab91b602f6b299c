import TestSupport

@testable import Query

/// The worked examples of the specification's section 9, by their numbers, as N1QL's rules change them.
@Suite struct WorkedExampleTests {
  static let document = """
    {"nums":[1,2,3],"x":2,"value":null,"nul":null,"big":9223372036854775807}
    """

  @Test(
    arguments: [
      ("1", "5/2", "2"), ("2", "-5/2", "-2"), ("3", "5/2.0", "2.5"), ("4", "5/0", "missing"),
      ("4", "5.0/0", "missing"), ("4", "5%0", "missing"), ("5", "5%3", "2"), ("5", "-5%3", "-2"),
      ("6", "7.5%2", "1.0"), ("7", "DIV(5,2)", "2.5"), ("8", "IDIV(7.9,2)", "3"), ("9", "DIV(1,0)", "null"),
      ("9", "IDIV(1,0)", "null"), ("10", "5.0/15.0", "0.3333333333333333"), ("10", "5/15", "0"),
      // 11 and 12 show coercions of SQLite: arithmetic on what is no number is NULL.
      ("11", "'10'+5", "null"), ("12", "null+1", "null"), ("13", "missingProp+1", "missing"),
      ("14", "9223372036854775807+1", "9.223372036854776e+18"), ("14", "big+1", "9.223372036854776e+18"),
      ("15", "5=5.0", "true"), ("16", "5='5'", "false"),
      // 17: a boolean is no number.
      ("17", "true=1", "false"), ("18", "5<'a'", "true"), ("19", "'B'<'a'", "true"),
      ("20", "('a'='A') COLLATE NOCASE", "true"), ("21", "nums[-1]", "3"), ("22", "nums[3]", "missing"),
      ("23", "{'x':17}.x", "17"), ("24", "'foo' LIKE 'f%'", "true"), ("25", "'Abc' LIKE 'a%'", "true"),
      ("26", "'100%' LIKE '100\\%'", "true"), ("27", "'abc' LIKE 'a_c'", "true"),
      ("28", "1 IN (missing,2)", "missing"), ("29", "17 NOT IN (1,2)", "true"),
      ("30", "2 BETWEEN 1 AND 4", "true"), ("31", "absent IS NULL", "missing"),
      ("32", "absent IS NOT VALUED", "true"), ("32", "nul IS NOT VALUED", "true"),
      ("33", "ANY v IN [] SATISFIES true END", "false"), ("34", "EVERY v IN [] SATISFIES false END", "true"),
      ("35", "ANY AND EVERY v IN [] SATISFIES true END", "false"),
      ("36", "CASE x WHEN 1 THEN 'one' END", "null"),
      ("37", "CONCAT(99,' ',123.45,' ',true)", "\"99 123.45 true\""),
      ("38", "CONCAT('goodbye ',null)", "\"goodbye null\""), ("39", "CONCAT('a', missing)", "missing"),
      // 40: only numbers are summed.
      ("40", "ARRAY_SUM([1,2,true,'foo'])", "3.0"), ("40", "ARRAY_AVG([1,2,true,'foo'])", "1.5"),
      ("41", "ARRAY_CONTAINS('bar','bar')", "null"), ("42", "ARRAY_CONTAINS(missing,1)", "missing"),
      ("43", "ARRAY_IFNULL([null,null,2])", "2"), ("44", "ARRAY_MAX([1,4,3,-50,10,4,'bar'])", "10.0"),
      ("45", "ARRAY_MIN([1,4,3,-50,10,4,'bar'])", "-50.0"), ("46", "ARRAY_LENGTH([1,null])", "2"),
      ("47", "ARRAY_COUNT([1,null])", "1"), ("49", "MISSINGIF(5,5.0)", "missing"),
      ("50", "MISSINGIF('5',5)", "\"5\""), ("51", "MISSINGIF(null,1)", "null"),
      ("52", "NULLIF('5','5')", "null"),
      ("53", "NULLIF(1,missing)", "missing"), ("54", "IFMISSING(bogus, MISSING, value)", "null"),
      ("55", "IFNULL(null, 1, 2)", "1"), ("56", "IFMISSINGORNULL(missing,null)", "null"),
      ("57", "ROUND(2.5)", "3.0"), ("57", "ROUND(-2.5)", "-3.0"), ("58", "ROUND_EVEN(2.5)", "2.0"),
      ("59", "TRUNC(2.59,1)", "2.5"), ("60", "CEIL(2.5)", "3.0"), ("61", "SQRT(-1)", "null"),
      ("61", "LN(0)", "null"), ("62", "LOG(4.0)", "0.6020599913279624"), ("63", "SIGN(-2.5)", "-1"),
      ("64", "TONUMBER('602214076000000000000000')", "6.02214076e+23"), ("65", "TONUMBER('cool')", "null"),
      ("66", "TONUMBER(true)", "1"), ("67", "TOSTRING(4.5)", "\"4.5\""),
      ("67", "TOSTRING(false)", "\"false\""),
      ("67", "TOSTRING([1])", "null"), ("68", "TOBOOLEAN('')", "false"), ("68", "TOBOOLEAN([])", "false"),
      ("68", "TOBOOLEAN('x')", "true"), ("69", "TOATOM([1])", "1"), ("69", "TOATOM({'s':'FTW'})", "\"FTW\""),
      ("69", "TOATOM([])", "null"), ("70", "TOARRAY('s')", "[\"s\"]"), ("70", "TOARRAY(null)", "null"),
      ("71", "TOOBJECT([1])", "{}"), ("72", "TYPE(missing)", "\"missing\""),
      ("73", "STR_TO_MILLIS('1970-01-01T00:00:00Z')", "0"),
      ("74", "STR_TO_MILLIS('2018-10-23T18:33:01.123Z')", "1540319581123"),
      ("75", "STR_TO_MILLIS('1944-06-06T06:30:00+01:00')", "-806956200000"),
      ("76", "STR_TO_MILLIS('2018-02-29T00:00:00Z')", "null"), ("76", "STR_TO_MILLIS('')", "null"),
      ("76", "STR_TO_MILLIS('2018-13-01T00:00:00Z')", "null"),
      ("76", "STR_TO_MILLIS('2018-04-31T00:00:00Z')", "null"),
      ("77", "STR_TO_UTC('2018-10-23T11:33:01-0700')", "\"2018-10-23T18:33:01Z\""),
      ("78", "STR_TO_UTC(99)", "null"),
      ("79", "MILLIS_TO_UTC(1540319581123)", "\"2018-10-23T18:33:01.123Z\""),
      ("80", "MILLIS_TO_UTC('0')", "null"),
      ("81", "REGEXP_LIKE('awesome value','.*? value')", "true"),
      ("81", "REGEXP_CONTAINS('awesome value','.*? value')", "true"),
      ("82", "REGEXP_POSITION('awesome value','[ ]+value')", "7"),
      ("83", "REGEXP_REPLACE('cool value','.*?value','nothing')", "\"nothing\""),
      ("83", "REGEXP_REPLACE('cool','x','nothing')", "\"cool\""), ("84", "LENGTH('cafés')", "5"),
      ("84", "LENGTH('😀')", "1"), ("84", "LENGTH(5)", "null"), ("85", "UPPER('cafés17')", "\"CAFÉS17\""),
      ("86", "TRIM('\u{2028}x\u{3000}')", "\"x\""),
      ("87", "MILLIS_TO_TZ(1704897074000, -300)", "\"2024-01-10T09:31:14-0500\""),
      ("88", "DATE_DIFF_STR('2018-02-01T00:01:59Z','2018-01-31T23:59:01Z','month')", "1"),
      ("89", "DATE_DIFF_STR('2017-02-01T01:00Z','2017-01-01T00:00Z','week')", "4"),
      ("94", "GREATEST(1,'a')", "\"a\""), ("94", "LEAST(2, missing)", "missing"),
    ] as [(String, String, String)])
  func example(_ number: String, _ text: String, _ expected: String) throws {
    try expect(
      EvaluationHarness(Self.document).evaluate(text), equals: expected, "example \(number): \(text)")
  }

  /// Aggregates of examples 48 and 90: SUM and AVG skip what is no number, COUNT also skips null.
  @Test(
    arguments: [
      ("ARRAY_AGG", ["17", "8.125", "'there'", "null", "missing"], "[17,8.125,\"there\",null]"),
      ("SUM", ["1", "2", "missing", "'abc'"], "3"), ("AVG", ["1", "2", "missing", "'abc'"], "1.5"),
      ("COUNT", ["1", "2", "missing", "'abc'"], "3"), ("COUNT", ["1", "null"], "1"), ("SUM", [], "missing"),
      ("AVG", [], "missing"), ("MIN", [], "missing"), ("MAX", ["null"], "missing"), ("ARRAY_AGG", [], "[]"),
      ("COUNT", [], "0"), ("SUM", ["1", "0.5"], "1.5"), ("MIN", ["'a'", "2", "[1]", "null", "true"], "true"),
      ("MAX", ["'a'", "2", "[1]", "[0,5]"], "[1]"),
      ("SUM", ["9223372036854775807", "1"], "9.223372036854776e+18"),
    ] as [(String, [String], String)])
  func aggregate(_ name: String, _ values: [String], _ expected: String) throws {
    try expect(Self.aggregate(name, values, isDistinct: false), equals: expected)
  }

  @Test(
    arguments: [
      ("COUNT", ["1", "1.0", "'1'", "null", "2"], "3"),
      ("ARRAY_AGG", ["1", "1.0", "'a'", "'a'"], "[1,\"a\"]"),
      ("SUM", ["1", "1", "2"], "3"), ("AVG", ["1", "1", "2"], "1.5"),
    ] as [(String, [String], String)])
  func distinctAggregate(_ name: String, _ values: [String], _ expected: String) throws {
    try expect(Self.aggregate(name, values, isDistinct: true), equals: expected)
  }

  private static func aggregate(_ name: String, _ values: [String], isDistinct: Bool) throws -> String {
    guard let kind = AggregateKind(rawValue: name) else { return "unknown" }
    let program = EvaluationProgram()
    let nodes = try values.map { try program.compile(try QueryExpression(parsing: $0), in: EmptyScope()) }
    let context = try EvaluationContext(program)
    context.begin(.empty)
    let arena = EvaluationArena()
    let aggregator = Aggregator(kind, isDistinct: isDistinct, nil, collation: nil)
    var state = AggregateState()
    for node in nodes {
      aggregator.add(node.evaluate(context), to: &state, context, arena)
      context.arena.reset()
    }
    let result = aggregator.result(of: state, context, arena)
    if result.isMissing { return "missing" }
    var json: [UInt8] = []
    try result.writeJSON(.empty, into: &json)
    return String(decoding: json, as: UTF8.self)
  }
}
