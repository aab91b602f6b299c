// The functions that have a builder method. All others are called by `Function.named`.

/// Functions over values, and aggregates. docs/query-functions.md describes each of them.
public enum Function {
  /// Calls a function by its name in any case, such as `STR_TO_TZ`. An unknown name is reported when the
  /// query is prepared.
  public static func named(_ name: String, _ arguments: Expression..., distinct: Bool = false) -> Expression {
    call(name.uppercased(), arguments, distinct)
  }

  static func call(_ name: String, _ arguments: [Expression], _ isDistinct: Bool = false) -> Expression {
    .call(FunctionCall(FunctionSignature.named(name)?.name ?? name, arguments, isDistinct: isDistinct))
  }

  /// COUNT(DISTINCT e): the number of different values in a group, without null and missing.
  public static func countDistinct(_ e: Expression) -> Expression { call("COUNT", [e], true) }

  // MARK: Aggregates

  /// AVG: the average of the numbers in a group.
  public static func avg(_ e: Expression) -> Expression { call("AVG", [e]) }
  /// COUNT: the number of values in a group, without null and missing. `count(.all())` counts rows.
  public static func count(_ e: Expression) -> Expression { call("COUNT", [e]) }
  /// MIN: the least value in a group.
  public static func min(_ e: Expression) -> Expression { call("MIN", [e]) }
  /// MAX: the greatest value in a group.
  public static func max(_ e: Expression) -> Expression { call("MAX", [e]) }
  /// SUM: the sum of the numbers in a group.
  public static func sum(_ e: Expression) -> Expression { call("SUM", [e]) }

  // MARK: Numbers

  /// ABS: the absolute value.
  public static func abs(_ e: Expression) -> Expression { call("ABS", [e]) }
  /// ACOS: the arc cosine, in radians.
  public static func acos(_ e: Expression) -> Expression { call("ACOS", [e]) }
  /// ASIN: the arc sine, in radians.
  public static func asin(_ e: Expression) -> Expression { call("ASIN", [e]) }
  /// ATAN: the arc tangent, in radians.
  public static func atan(_ e: Expression) -> Expression { call("ATAN", [e]) }
  /// CEIL: rounds up to a whole number.
  public static func ceil(_ e: Expression) -> Expression { call("CEIL", [e]) }
  /// COS: the cosine of an angle in radians.
  public static func cos(_ e: Expression) -> Expression { call("COS", [e]) }
  /// DEGREES: converts radians to degrees.
  public static func degrees(_ e: Expression) -> Expression { call("DEGREES", [e]) }
  /// EXP: e to the power of a number.
  public static func exp(_ e: Expression) -> Expression { call("EXP", [e]) }
  /// FLOOR: rounds down to a whole number.
  public static func floor(_ e: Expression) -> Expression { call("FLOOR", [e]) }
  /// LN: the natural logarithm.
  public static func ln(_ e: Expression) -> Expression { call("LN", [e]) }
  /// LOG: the logarithm to base 10.
  public static func log(_ e: Expression) -> Expression { call("LOG", [e]) }
  /// RADIANS: converts degrees to radians.
  public static func radians(_ e: Expression) -> Expression { call("RADIANS", [e]) }
  /// SIGN: -1, 0 or 1.
  public static func sign(_ e: Expression) -> Expression { call("SIGN", [e]) }
  /// SIN: the sine of an angle in radians.
  public static func sin(_ e: Expression) -> Expression { call("SIN", [e]) }
  /// SQRT: the square root.
  public static func sqrt(_ e: Expression) -> Expression { call("SQRT", [e]) }
  /// TAN: the tangent of an angle in radians.
  public static func tan(_ e: Expression) -> Expression { call("TAN", [e]) }
  /// ROUND: rounds to the nearest whole number, halves away from zero.
  public static func round(_ e: Expression) -> Expression { call("ROUND", [e]) }
  /// TRUNC: cuts off the fraction.
  public static func trunc(_ e: Expression) -> Expression { call("TRUNC", [e]) }

  // MARK: Strings

  /// LENGTH: the number of code points.
  public static func length(_ e: Expression) -> Expression { call("LENGTH", [e]) }
  /// LOWER: converts to lower case.
  public static func lower(_ e: Expression) -> Expression { call("LOWER", [e]) }
  /// UPPER: converts to upper case.
  public static func upper(_ e: Expression) -> Expression { call("UPPER", [e]) }
  /// TRIM: removes white space from both ends.
  public static func trim(_ e: Expression) -> Expression { call("TRIM", [e]) }
  /// LTRIM: removes white space from the start.
  public static func ltrim(_ e: Expression) -> Expression { call("LTRIM", [e]) }
  /// RTRIM: removes white space from the end.
  public static func rtrim(_ e: Expression) -> Expression { call("RTRIM", [e]) }
  /// REVERSE: reverses the code points.
  public static func reverse(_ e: Expression) -> Expression { call("REVERSE", [e]) }
  /// INITCAP: the first letter of each word in title case, the others in lower case.
  public static func initCap(_ e: Expression) -> Expression { call("INITCAP", [e]) }

  // MARK: Types

  /// TYPE: the name of the value's type.
  public static func type(_ e: Expression) -> Expression { call("TYPE", [e]) }
  /// ISARRAY: whether the value is an array.
  public static func isArray(_ e: Expression) -> Expression { call("ISARRAY", [e]) }
  /// ISATOM: whether the value is a boolean, a number or a string.
  public static func isAtom(_ e: Expression) -> Expression { call("ISATOM", [e]) }
  /// ISBOOLEAN: whether the value is a boolean.
  public static func isBoolean(_ e: Expression) -> Expression { call("ISBOOLEAN", [e]) }
  /// ISNUMBER: whether the value is a number.
  public static func isNumber(_ e: Expression) -> Expression { call("ISNUMBER", [e]) }
  /// ISOBJECT: whether the value is an object.
  public static func isObject(_ e: Expression) -> Expression { call("ISOBJECT", [e]) }
  /// ISSTRING: whether the value is a string.
  public static func isString(_ e: Expression) -> Expression { call("ISSTRING", [e]) }
  /// TOARRAY: an array as it is, any other value as the only item of an array.
  public static func toArray(_ e: Expression) -> Expression { call("TOARRAY", [e]) }
  /// TOATOM: the boolean, number or string inside arrays of one item and objects of one member.
  public static func toAtom(_ e: Expression) -> Expression { call("TOATOM", [e]) }
  /// TOBOOLEAN: converts to a boolean. Zero and empty values are false.
  public static func toBoolean(_ e: Expression) -> Expression { call("TOBOOLEAN", [e]) }
  /// TONUMBER: converts booleans and strings to a number.
  public static func toNumber(_ e: Expression) -> Expression { call("TONUMBER", [e]) }
  /// TOOBJECT: an object as it is, any other value as an empty object.
  public static func toObject(_ e: Expression) -> Expression { call("TOOBJECT", [e]) }
  /// TOSTRING: converts booleans and numbers to a string.
  public static func toString(_ e: Expression) -> Expression { call("TOSTRING", [e]) }

  // MARK: Dates

  /// STR_TO_MILLIS: converts a date string to milliseconds since 1970.
  public static func stringToMillis(_ e: Expression) -> Expression { call("STR_TO_MILLIS", [e]) }
  /// STR_TO_UTC: converts a date string to UTC.
  public static func stringToUTC(_ e: Expression) -> Expression { call("STR_TO_UTC", [e]) }
  /// MILLIS_TO_STR: converts milliseconds since 1970 to a date string in local time.
  public static func millisToString(_ e: Expression) -> Expression { call("MILLIS_TO_STR", [e]) }
  /// MILLIS_TO_UTC: converts milliseconds since 1970 to a date string in UTC.
  public static func millisToUTC(_ e: Expression) -> Expression { call("MILLIS_TO_UTC", [e]) }

  // MARK: Several arguments

  /// E: the base of the natural logarithm.
  public static func e() -> Expression { call("E", []) }
  /// PI: the number π.
  public static func pi() -> Expression { call("PI", []) }
  /// ATAN2: the angle of the point (x, y), in radians.
  public static func atan2(y: Expression, x: Expression) -> Expression { call("ATAN2", [y, x]) }
  /// POWER: a base to the power of an exponent.
  public static func power(base: Expression, exponent: Expression) -> Expression {
    call("POWER", [base, exponent])
  }
  /// ROUND: rounds to a number of digits after the decimal point.
  public static func round(_ e: Expression, digits: Expression) -> Expression { call("ROUND", [e, digits]) }
  /// TRUNC: cuts off after a number of digits behind the decimal point.
  public static func trunc(_ e: Expression, digits: Expression) -> Expression { call("TRUNC", [e, digits]) }
  /// CONTAINS: whether a string contains another.
  public static func contains(_ e: Expression, substring: Expression) -> Expression {
    call("CONTAINS", [e, substring])
  }
  /// CONCAT: joins values into one string.
  public static func concat(_ e: Expression...) -> Expression { call("CONCAT", e) }
  /// IFNULL: the first value that isn't null. It may be missing.
  public static func ifNull(_ e: Expression...) -> Expression { call("IFNULL", e) }
  /// IFMISSING: the first value that isn't missing.
  public static func ifMissing(_ e: Expression...) -> Expression { call("IFMISSING", e) }
  /// IFMISSINGORNULL: the first value that is neither null nor missing.
  public static func ifMissingOrNull(_ e: Expression...) -> Expression { call("IFMISSINGORNULL", e) }
  /// GREATEST: the greatest value, in the order of all values.
  public static func greatest(_ e: Expression...) -> Expression { call("GREATEST", e) }
  /// LEAST: the least value, in the order of all values.
  public static func least(_ e: Expression...) -> Expression { call("LEAST", e) }
}
