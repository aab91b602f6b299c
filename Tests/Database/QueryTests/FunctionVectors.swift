import Fleece

/// One call of a function, and what it gives (docs/query-functions.md).
struct FunctionVector: Sendable, CustomStringConvertible {
  let name: String
  /// Nil is MISSING.
  let arguments: [JSONValue?]
  /// Nil is MISSING. Doubles are compared to 12 digits.
  let result: JSONValue?

  init(_ name: String, _ arguments: JSONValue?..., gives result: JSONValue?) {
    self.name = name
    self.arguments = arguments
    self.result = result
  }

  var description: String {
    let shown = arguments.map { argument in argument.map { "\($0)" } ?? "MISSING" }
    return "\(name)(\(shown.joined(separator: ", ")))"
  }
}

private let missing = JSONValue?.none
private let null = JSONValue?.some(.null)

extension FunctionVector {
  /// Each scalar function once at least, with arguments that tell it from its neighbours.
  static let scalars: [FunctionVector] =
    strings + patterns + numbers + arrays + types + conditions + dates + reference

  private static let strings: [FunctionVector] = [
    .init("CONCAT", "a", 1, 2.5, true, null, [1], gives: "a12.5truenull[1]"),
    .init("CONCAT", "a", missing, gives: missing),
    .init("CONTAINS", "castle", "stl", gives: true), .init("CONTAINS", "castle", "STL", gives: false),
    .init("LENGTH", "a😀é", gives: 3), .init("LENGTH", 5, gives: null),
    .init("LOWER", "ÀB", gives: "àb"), .init("UPPER", "àb", gives: "ÀB"),
    .init("INITCAP", "the QUICK", gives: "The Quick"),
    .init("TRIM", " \u{3000}a b ", gives: "a b"), .init("LTRIM", "  a ", gives: "a "),
    .init("RTRIM", " a  ", gives: " a"), .init("LTRIM", "xxaxx", "x", gives: "axx"),
    .init("RTRIM", "xxaxx", "x", gives: "xxa"), .init("TRIM", 5, gives: 5),
    .init("SUBSTR", "hotel", 1, 3, gives: "ote"), .init("SUBSTR", "hotel", -2, gives: "el"),
    .init("POSITION", "é😀b", "b", gives: 2), .init("POSITION", "a", "b", gives: -1),
    .init("REPLACE", "aaa", "a", "b", 2, gives: "bba"), .init("REVERSE", "a😀", gives: "😀a"),
    .init("REPEAT", "ab", 3, gives: "ababab"), .init("REPEAT", "a", -1, gives: null),
    .init("SPLIT", "a,b", ",", gives: ["a", "b"]),
  ]

  private static let patterns: [FunctionVector] = [
    .init("REGEXP_CONTAINS", "castle", "s.l", gives: true),
    .init("REGEXP_CONTAINS", "castle", "^s", gives: false),
    .init("REGEXP_CONTAINS", "castle", "", gives: true), .init("REGEXP_LIKE", "", "", gives: true),
    .init("REGEXP_POSITION", "abc", "", gives: 0), .init("REGEXP_REPLACE", "abc", "", "-", gives: "-a-b-c-"),
    .init("REGEXP_LIKE", "castle", "^c.*e$", gives: true), .init("REGEXP_LIKE", "Castle", "^c", gives: false),
    // In bytes: é has two.
    .init("REGEXP_POSITION", "éa1", "[0-9]", gives: 3), .init("REGEXP_POSITION", "a", "[0-9]", gives: -1),
    .init("REGEXP_REPLACE", "a1b22", "([0-9]+)", "<$1>", gives: "a<1>b<22>"),
    .init("REGEXP_REPLACE", "a1b2", "[0-9]", "x", 1, gives: "axb2"),
  ]

  private static let numbers: [FunctionVector] = [
    .init("ABS", -5, gives: 5), .init("ABS", -2.5, gives: 2.5), .init("ABS", "a", gives: null),
    .init("ACOS", 0.5, gives: 1.0471975511966), .init("ACOS", 2, gives: null),
    .init("ASIN", 0.5, gives: 0.523598775598299), .init("ATAN", 2, gives: 1.10714871779409),
    .init("ATAN2", 1, 2, gives: 0.463647609000806), .init("ATAN2", 2, 1, gives: 1.10714871779409),
    .init("CEIL", 1.2, gives: 2.0), .init("CEIL", -1.2, gives: -1.0), .init("FLOOR", 1.8, gives: 1.0),
    .init("FLOOR", -1.2, gives: -2.0), .init("FLOOR", missing, gives: missing),
    .init("COS", 1, gives: 0.54030230586814), .init("SIN", 1, gives: 0.841470984807897),
    .init("TAN", 1, gives: 1.5574077246549), .init("DEGREES", 1, gives: 57.2957795130823),
    .init("RADIANS", 180, gives: 3.14159265358979), .init("E", gives: 2.71828182845905),
    .init("PI", gives: 3.14159265358979), .init("EXP", 2, gives: 7.38905609893065),
    .init("EXP", 1000, gives: null), .init("LN", 10, gives: 2.30258509299405), .init("LN", 0, gives: null),
    .init("LOG", 1000, gives: 3.0), .init("POWER", 2, 10, gives: 1024.0), .init("POWER", 2, -1, gives: 0.5),
    .init("POWER", "2", 1, gives: null), .init("SQRT", 2, gives: 1.4142135623731),
    .init("SQRT", -1, gives: null), .init("SIGN", -2.5, gives: -1), .init("SIGN", 0, gives: 0),
    .init("DIV", 5, 2, gives: 2.5), .init("DIV", 1, 0, gives: null), .init("IDIV", 7.9, 2, gives: 3),
    .init("ROUND", 2.5, gives: 3.0), .init("ROUND", -2.5, gives: -3.0), .init("ROUND", 2.567, 1, gives: 2.6),
    .init("ROUND_EVEN", 2.5, gives: 2.0), .init("TRUNC", -2.59, 1, gives: -2.5),
  ]

  private static let arrays: [FunctionVector] = [
    .init("ARRAY_AVG", [1, 2, "a", .null], gives: 1.5), .init("ARRAY_AVG", ["a"], gives: null),
    .init("ARRAY_SUM", [1, 2.5, true], gives: 3.5), .init("ARRAY_SUM", [], gives: 0.0),
    .init("ARRAY_CONTAINS", [1, "a", [2]], [2], gives: true),
    .init("ARRAY_CONTAINS", [1, "a"], "1", gives: false), .init("ARRAY_COUNT", [1, .null, "a"], gives: 2),
    .init("ARRAY_IFNULL", [.null, .null, 7], gives: 7), .init("ARRAY_LENGTH", [1, .null], gives: 2),
    .init("ARRAY_MAX", [-3, "z", -1.5], gives: -1.5), .init("ARRAY_MIN", [4, -2, .null], gives: -2.0),
    .init("ARRAY_OF", 1, missing, "a", gives: [1, .null, "a"]), .init("GREATEST", 1, "a", true, gives: "a"),
    .init("LEAST", 1, "a", true, gives: true),
  ]

  private static let types: [FunctionVector] = [
    .init("TYPE", missing, gives: "missing"), .init("TYPE", ["a": 1], gives: "object"),
    .init("ISARRAY", [1], gives: true), .init("ISARRAY", ["a": 1], gives: false),
    .init("ISATOM", 1, gives: true), .init("ISATOM", [1], gives: false),
    .init("ISBOOLEAN", false, gives: true), .init("ISBOOLEAN", 0, gives: false),
    .init("ISNUMBER", 1.5, gives: true), .init("ISNUMBER", "1", gives: false),
    .init("ISOBJECT", ["a": 1], gives: true), .init("ISOBJECT", [1], gives: false),
    .init("ISSTRING", "", gives: true), .init("ISSTRING", 1, gives: false),
    .init("TOARRAY", "a", gives: ["a"]), .init("TOARRAY", [1], gives: [1]),
    .init("TOATOM", [["a": [7]]], gives: 7), .init("TOATOM", [1, 2], gives: null),
    .init("TOBOOLEAN", "x", gives: true), .init("TOBOOLEAN", [], gives: false),
    .init("TONUMBER", " 12.5 ", gives: 12.5), .init("TONUMBER", true, gives: 1),
    .init("TONUMBER", "18446744073709551615", gives: .uint(.max)), .init("TOOBJECT", [1], gives: [:]),
    .init("TOOBJECT", ["a": 1], gives: ["a": 1]), .init("TOSTRING", 4.5, gives: "4.5"),
    .init("TOSTRING", [1], gives: null),
  ]

  private static let conditions: [FunctionVector] = [
    .init("IFMISSING", missing, null, 1, gives: null), .init("IFNULL", null, 1, 2, gives: 1),
    .init("IFNULL", null, missing, gives: missing), .init("IFMISSINGORNULL", missing, null, 3, gives: 3),
    .init("MISSINGIF", 5, 5.0, gives: missing), .init("MISSINGIF", "5", 5, gives: "5"),
    .init("NULLIF", "a", "a", gives: null), .init("NULLIF", 1, 2, gives: 1),
  ]

  private static let dates: [FunctionVector] = [
    .init("STR_TO_MILLIS", "2018-10-23T18:33:01.123Z", gives: 1_540_319_581_123),
    .init("STR_TO_UTC", "2018-10-23T11:33:01-0700", gives: "2018-10-23T18:33:01Z"),
    .init("STR_TO_TZ", "2018-10-23T18:33:01Z", 60, gives: "2018-10-23T19:33:01+0100"),
    .init("MILLIS_TO_STR", 0, "1111-11-11", gives: .string(localDay)),
    .init("MILLIS_TO_UTC", 1_540_319_581_123, gives: "2018-10-23T18:33:01.123Z"),
    .init("MILLIS_TO_TZ", 1_704_897_074_000, -300, gives: "2024-01-10T09:31:14-0500"),
    .init("DATE_DIFF_STR", "2018-02-01T00:01:59Z", "2018-01-31T23:59:01Z", "month", gives: 1),
    .init("DATE_DIFF_MILLIS", 172_800_000, 0, "day", gives: 2),
    .init("DATE_ADD_STR", "2024-01-31", 1, "month", gives: "2024-02-29"),
    .init("DATE_ADD_MILLIS", 0, 2, "hour", gives: 7_200_000),
  ]
}
