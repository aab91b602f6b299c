import TestSupport

@testable import Query

/// Functions of strings and dates at their edges, as docs/query-functions.md has them.
@Suite struct FunctionTests {
  /// A family of one code point each joined by joiners, an e with an accent of its own, a flag of two code points.
  static let family = "\u{1F468}\u{200D}\u{1F469}\u{200D}\u{1F466}"
  static let accented = "e\u{301}"
  static let flag = "\u{1F1E9}\u{1F1EA}"

  @Test(
    arguments: [
      // SUBSTR: from a start, counted from the end when it is negative; outside is null.
      ("SUBSTR('hotel', 0)", "\"hotel\""), ("SUBSTR('hotel', 1, 3)", "\"ote\""),
      ("SUBSTR('hotel', 4, 99)", "\"l\""),
      ("SUBSTR('hotel', 5)", "null"), ("SUBSTR('hotel', 6)", "null"), ("SUBSTR('hotel', -2)", "\"el\""),
      ("SUBSTR('hotel', -5, 1)", "\"h\""), ("SUBSTR('hotel', -6)", "null"), ("SUBSTR('hotel', 2, 0)", "\"\""),
      ("SUBSTR('hotel', 2, -1)", "null"), ("SUBSTR('', 0)", "\"\""), ("SUBSTR('', 1)", "null"),
      ("SUBSTR('hotel', 1.0, 2.0)", "\"ot\""), ("SUBSTR('hotel', 1.5)", "null"),
      ("SUBSTR('hotel', '1')", "null"),
      ("SUBSTR(5, 1)", "null"), ("SUBSTR(missing, 1)", "missing"), ("SUBSTR('a', missing)", "missing"),
      ("SUBSTR('a', 0, null)", "null"), ("SUBSTR('hotel', -9223372036854775807 - 1)", "null"),
      ("SUBSTR('hotel', 0, 9223372036854775807)", "\"hotel\""),
      ("SUBSTR('a😀b', 1, 1)", "\"😀\""), ("SUBSTR('a😀b', -1)", "\"b\""),
      ("SUBSTR('\(family)', 2, 1)", "\"\u{1F469}\""), ("SUBSTR('\(accented)', 1)", "\"\u{301}\""),
      // POSITION: in code points, -1 if nowhere.
      ("POSITION('hotel', 'o')", "1"), ("POSITION('hotel', 'x')", "-1"), ("POSITION('hotel', '')", "0"),
      ("POSITION('', '')", "0"), ("POSITION('', 'a')", "-1"), ("POSITION('a', 'ab')", "-1"),
      ("POSITION('😀é😀b', 'b')", "3"), ("POSITION('\(accented)', 'e')", "0"),
      ("POSITION('\(accented)', 'é')", "-1"), ("POSITION('abab', 'ab')", "0"), ("POSITION('aab', 'ab')", "1"),
      ("POSITION(null, 'a')", "null"), ("POSITION('a', missing)", "missing"), ("POSITION('a1', 1)", "null"),
      // REPLACE: all, or the first n.
      ("REPLACE('aaa', 'a', 'b')", "\"bbb\""), ("REPLACE('aaa', 'a', 'b', 2)", "\"bba\""),
      ("REPLACE('aaa', 'a', 'b', 0)", "\"aaa\""), ("REPLACE('aaa', 'a', 'b', -1)", "\"bbb\""),
      ("REPLACE('aaa', 'aa', 'b')", "\"ba\""), ("REPLACE('abc', '', 'x')", "\"abc\""),
      ("REPLACE('abc', 'abc', '')", "\"\""), ("REPLACE('abc', 'd', 'x')", "\"abc\""),
      ("REPLACE('a😀b😀', '😀', 'é')", "\"aébé\""), ("REPLACE('ab', 'a', 'aa')", "\"aab\""),
      ("REPLACE('a', 'a', null)", "null"), ("REPLACE('a', 'a', 'b', 'c')", "null"),
      ("REPLACE('a', 'a', 'b', missing)", "missing"),
      // REVERSE: code points, so an accent of its own goes before its letter.
      ("REVERSE('')", "\"\""), ("REVERSE('abc')", "\"cba\""), ("REVERSE('a😀é')", "\"é😀a\""),
      ("REVERSE('\(accented)')", "\"\u{301}e\""), ("REVERSE('\(flag)')", "\"\u{1F1EA}\u{1F1E9}\""),
      ("REVERSE(REVERSE('\(family)')) = '\(family)'", "true"), ("REVERSE(12)", "null"),
      // REPEAT
      ("REPEAT('ab', 3)", "\"ababab\""), ("REPEAT('ab', 0)", "\"\""), ("REPEAT('ab', -1)", "null"),
      ("REPEAT('', 1000000000000)", "\"\""), ("REPEAT('😀', 2)", "\"😀😀\""), ("REPEAT('a', 2.0)", "\"aa\""),
      ("REPEAT('a', 1.5)", "null"), ("REPEAT(1, 2)", "null"), ("REPEAT('a', missing)", "missing"),
      // SPLIT
      ("SPLIT('a,b,,c', ',')", "[\"a\",\"b\",\"\",\"c\"]"), ("SPLIT(',a,', ',')", "[\"\",\"a\",\"\"]"),
      ("SPLIT('', ',')", "[\"\"]"), ("SPLIT('')", "[]"), ("SPLIT('  a \t\u{3000}b\n')", "[\"a\",\"b\"]"),
      ("SPLIT('a--b-c', '--')", "[\"a\",\"b-c\"]"), ("SPLIT('aaa', 'aa')", "[\"\",\"a\"]"),
      ("SPLIT('abc', 'x')", "[\"abc\"]"), ("SPLIT('a😀', '')", "[\"a\",\"😀\"]"), ("SPLIT('', '')", "[]"),
      ("SPLIT('a😀b', '😀')", "[\"a\",\"b\"]"), ("SPLIT(1, ',')", "null"), ("SPLIT('a', null)", "null"),
      // INITCAP: words are letters and digits.
      ("INITCAP('the QUICK brown')", "\"The Quick Brown\""), ("INITCAP('')", "\"\""),
      ("INITCAP('o''neill-smith')", "\"O'Neill-Smith\""), ("INITCAP('3rd éCOLE')", "\"3rd École\""),
      ("INITCAP('ǆungla')", "\"ǅungla\""), ("INITCAP('😀abc ǅ')", "\"😀Abc ǅ\""),
      ("INITCAP('\(accented)COLE')", "\"E\u{301}cole\""), ("INITCAP(null)", "null"),
    ] as [(String, String)]) func strings(_ text: String, _ expected: String) throws
  {
    try expect(EvaluationHarness().evaluate(text), equals: expected, "\(text)")
  }

  @Test func aTextThatGrowsTooLongIsAMistake() throws {
    let harness = try EvaluationHarness()
    for text in [
      "REPEAT('ab', 9223372036854775807)", "REPLACE(REPEAT('a', 1000000), 'a', REPEAT('b', 1000))",
    ] {
      try expect(queryCode { _ = try harness.evaluate(text) }, equals: .evaluation, "\(text)")
    }
  }

  @Test(
    arguments: [
      // Days that are, and days that aren't.
      ("STR_TO_MILLIS('2024-02-29T00:00:00Z')", "1709164800000"),
      ("STR_TO_MILLIS('2023-02-29T00:00Z')", "null"),
      ("STR_TO_MILLIS('2000-02-29T00:00Z')", "951782400000"), ("STR_TO_MILLIS('1900-02-29T00:00Z')", "null"),
      ("STR_TO_MILLIS('2018-04-31T00:00Z')", "null"), ("STR_TO_MILLIS('2018-00-10T00:00Z')", "null"),
      ("STR_TO_MILLIS('2018-13-01T00:00Z')", "null"), ("STR_TO_MILLIS('2018-01-00T00:00Z')", "null"),
      ("STR_TO_MILLIS('1969-12-31T23:59:59.999Z')", "-1"), ("STR_TO_MILLIS('1970-01-01T00:00Z')", "0"),
      ("STR_TO_MILLIS('2018-01-01T24:00Z')", "null"), ("STR_TO_MILLIS('2018-01-01T23:60Z')", "null"),
      ("STR_TO_MILLIS('2018-01-01T23:59:60Z')", "null"), ("STR_TO_MILLIS('2018-1-1')", "null"),
      ("STR_TO_MILLIS('')", "null"), ("STR_TO_MILLIS('yesterday')", "null"),
      ("STR_TO_MILLIS('2018-01-01Z x')", "null"), ("STR_TO_MILLIS('2018-01-01T00:00Zulu')", "null"),
      ("STR_TO_MILLIS(5)", "null"), ("STR_TO_MILLIS(missing)", "missing"),
      // Fractions of a second: milliseconds are kept.
      ("STR_TO_MILLIS('1970-01-01T00:00:00.5Z')", "500"),
      ("STR_TO_MILLIS('1970-01-01T00:00:00.123456789Z')", "123"),
      // Zones.
      ("STR_TO_UTC('2018-01-01T00:30+01:00')", "\"2017-12-31T23:30:00Z\""),
      ("STR_TO_UTC('2018-01-01T00:30-0930')", "\"2018-01-01T10:00:00Z\""),
      ("STR_TO_UTC('2018-01-01T00:30+24:00')", "null"), ("STR_TO_UTC('2018-01-01T00:30+01')", "null"),
      ("STR_TO_TZ('2024-02-29T23:59Z', 1)", "\"2024-03-01T00:00:00+0001\""),
      ("STR_TO_TZ('2024-03-01T00:00Z', -60)", "\"2024-02-29T23:00:00-0100\""),
      ("STR_TO_TZ('2024-03-01T00:00Z', 1440)", "null"), ("STR_TO_TZ('2024-03-01T00:00Z', '60')", "null"),
      ("MILLIS_TO_TZ(0, 345)", "\"1970-01-01T05:45:00+0545\""),
      ("MILLIS_TO_UTC(-1)", "\"1969-12-31T23:59:59.999Z\""), ("MILLIS_TO_UTC(1e300)", "null"),
      ("MILLIS_TO_UTC(253402300799999)", "\"9999-12-31T23:59:59.999Z\""),
      ("MILLIS_TO_UTC(253402300800000)", "null"), ("MILLIS_TO_UTC(-9223372036854775807 - 1)", "null"),
      ("MILLIS_TO_UTC(951782400000, '1111-11-11')", "\"2000-02-29\""),
      ("MILLIS_TO_UTC(951782400000, '%d/%m/%y %H:%M')", "\"29/02/00 00:00\""),
      ("MILLIS_TO_UTC(951782400000, '%q')", "\"2000-02-29T00:00:00Z\""),
      ("MILLIS_TO_TZ(0, -90, '%Ez %z')", "\"-01:30 -0130\""),
      // Differences are boundaries in UTC, positive when the first is later.
      ("DATE_DIFF_STR('2024-03-01T00:00Z', '2024-02-28T00:00Z', 'day')", "2"),
      ("DATE_DIFF_STR('2023-03-01T00:00Z', '2023-02-28T00:00Z', 'day')", "1"),
      ("DATE_DIFF_STR('2018-01-01T00:00Z', '2017-12-31T23:59:59Z', 'year')", "1"),
      ("DATE_DIFF_STR('2017-12-31T23:59:59Z', '2018-01-01T00:00Z', 'millennium')", "0"),
      ("DATE_DIFF_STR('1999-12-31T23:00Z', '2000-01-01T01:00Z', 'CENTURY')", "-1"),
      ("DATE_DIFF_STR('2018-01-01T00:30+01:00', '2018-01-01T00:00Z', 'day')", "-1"),
      ("DATE_DIFF_MILLIS(-1, 0, 'day')", "-1"), ("DATE_DIFF_MILLIS(0, 0, 'fortnight')", "null"),
      ("DATE_DIFF_MILLIS(0, 0, null)", "null"), ("DATE_DIFF_MILLIS(0, missing, 'day')", "missing"),
      // Sums: a day that the month hasn't becomes its last.
      ("DATE_ADD_STR('2024-01-31', 1, 'month')", "\"2024-02-29\""),
      ("DATE_ADD_STR('2023-01-31', 1, 'month')", "\"2023-02-28\""),
      ("DATE_ADD_STR('2024-02-29', 1, 'year')", "\"2025-02-28\""),
      ("DATE_ADD_STR('2024-02-29', -4, 'year')", "\"2020-02-29\""),
      ("DATE_ADD_STR('2024-02-29', 1, 'day')", "\"2024-03-01\""),
      ("DATE_ADD_STR('2024-03-31', -1, 'month')", "\"2024-02-29\""),
      ("DATE_ADD_STR('2024-01-31T10:00:00+02:00', 1, 'quarter')", "\"2024-04-30T10:00:00+02:00\""),
      ("DATE_ADD_STR('2024-12-31T23:59:59Z', 1, 'second')", "\"2025-01-01T00:00:00Z\""),
      ("DATE_ADD_STR('2024-12-31', 7980, 'year')", "null"), ("DATE_ADD_STR('no', 1, 'day')", "null"),
      ("DATE_ADD_STR('2024-12-31', 9223372036854775807, 'day')", "null"),
      ("DATE_ADD_STR('2024-12-31', -9223372036854775807 - 1, 'month')", "null"),
      ("DATE_ADD_STR('2024-12-31', -9223372036854775807 - 1, 'millisecond')", "null"),
      ("DATE_ADD_MILLIS(0, -1, 'millisecond')", "-1"),
      ("DATE_ADD_MILLIS(0, 999999, 'millennium')", "null"),
      ("DATE_ADD_MILLIS(0, -999999, 'millennium')", "null"),
      ("DATE_ADD_STR('2024-12-31', 300000, 'millennium')", "null"),
      ("DATE_ADD_MILLIS(951782400000, 1, 'year')", "983318400000"),
      ("DATE_ADD_MILLIS(0, 1, 'era')", "null"), ("DATE_ADD_MILLIS('0', 1, 'day')", "null"),
    ] as [(String, String)]) func dates(_ text: String, _ expected: String) throws
  {
    try expect(EvaluationHarness().evaluate(text), equals: expected, "\(text)")
  }

  /// Every day of some centuries against Foundation's Gregorian calendar.
  @Test func daysAreThoseOfTheCalendar() throws {
    var calendar = Calendar(identifier: .gregorian)
    calendar.timeZone = try #require(TimeZone(secondsFromGMT: 0))
    let start = try #require(DateTime.days(year: 1883, month: 1, day: 1))
    for days in stride(from: start, to: start + 120_000, by: 7) {
      let found = DateTime.date(days)
      let date = Date(timeIntervalSince1970: Double(days) * 86_400)
      let parts = calendar.dateComponents([.year, .month, .day], from: date)
      expect(found.year == parts.year && found.month == parts.month && found.day == parts.day)
      expect(DateTime.days(year: found.year, month: found.month, day: found.day), equals: days)
    }
  }
}
