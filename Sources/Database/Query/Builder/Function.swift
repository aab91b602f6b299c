// The functions that have a builder method. All others are called by `Function.named`.

/// Functions over values, and aggregates. docs/query-functions.md describes each of them.
public enum Function {
  /// Calls a function by its name in any case, such as `STR_TO_TZ`. An unknown name is reported when the
  /// query is prepared.
  public static func named(_ name: String, _ arguments: QueryExpression..., distinct: Bool = false)
    -> QueryExpression
  {
    call(name.uppercased(), arguments, distinct)
  }

  static func call(_ name: String, _ arguments: [QueryExpression], _ isDistinct: Bool = false)
    -> QueryExpression
  {
    .call(FunctionCall(QueryFunction.named(name)?.name ?? name, arguments, isDistinct: isDistinct))
  }

  /// COUNT(DISTINCT e): the number of different values in a group, without null and missing.
  public static func countDistinct(_ e: QueryExpression) -> QueryExpression { call("COUNT", [e], true) }

  // MARK: Aggregates

  /// AVG: the average of the numbers in a group.
  public static func avg(_ e: QueryExpression) -> QueryExpression { call("AVG", [e]) }
  /// COUNT: the number of values in a group, without null and missing. `count(.all())` counts rows.
  public static func count(_ e: QueryExpression) -> QueryExpression { call("COUNT", [e]) }
  /// MIN: the least value in a group.
  public static func min(_ e: QueryExpression) -> QueryExpression { call("MIN", [e]) }
  /// MAX: the greatest value in a group.
  public static func max(_ e: QueryExpression) -> QueryExpression { call("MAX", [e]) }
  /// SUM: the sum of the numbers in a group.
  public static func sum(_ e: QueryExpression) -> QueryExpression { call("SUM", [e]) }

  // MARK: Numbers

  /// ABS: the absolute value.
  public static func abs(_ e: QueryExpression) -> QueryExpression { call("ABS", [e]) }
  /// ACOS: the arc cosine, in radians.
  public static func acos(_ e: QueryExpression) -> QueryExpression { call("ACOS", [e]) }
  /// ASIN: the arc sine, in radians.
  public static func asin(_ e: QueryExpression) -> QueryExpression { call("ASIN", [e]) }
  /// ATAN: the arc tangent, in radians.
  public static func atan(_ e: QueryExpression) -> QueryExpression { call("ATAN", [e]) }
  /// CEIL: rounds up to a whole number.
  public static func ceil(_ e: QueryExpression) -> QueryExpression { call("CEIL", [e]) }
  /// COS: the cosine of an angle in radians.
  public static func cos(_ e: QueryExpression) -> QueryExpression { call("COS", [e]) }
  /// DEGREES: converts radians to degrees.
  public static func degrees(_ e: QueryExpression) -> QueryExpression { call("DEGREES", [e]) }
  /// EXP: e to the power of a number.
  public static func exp(_ e: QueryExpression) -> QueryExpression { call("EXP", [e]) }
  /// FLOOR: rounds down to a whole number.
  public static func floor(_ e: QueryExpression) -> QueryExpression { call("FLOOR", [e]) }
  /// LN: the natural logarithm.
  public static func ln(_ e: QueryExpression) -> QueryExpression { call("LN", [e]) }
  /// LOG: the logarithm to base 10.
  public static func log(_ e: QueryExpression) -> QueryExpression { call("LOG", [e]) }
  /// RADIANS: converts degrees to radians.
  public static func radians(_ e: QueryExpression) -> QueryExpression { call("RADIANS", [e]) }
  /// SIGN: -1, 0 or 1.
  public static func sign(_ e: QueryExpression) -> QueryExpression { call("SIGN", [e]) }
  /// SIN: the sine of an angle in radians.
  public static func sin(_ e: QueryExpression) -> QueryExpression { call("SIN", [e]) }
  /// SQRT: the square root.
  public static func sqrt(_ e: QueryExpression) -> QueryExpression { call("SQRT", [e]) }
  /// TAN: the tangent of an angle in radians.
  public static func tan(_ e: QueryExpression) -> QueryExpression { call("TAN", [e]) }
  /// ROUND: rounds to the nearest whole number, halves away from zero.
  public static func round(_ e: QueryExpression) -> QueryExpression { call("ROUND", [e]) }
  /// TRUNC: cuts off the fraction.
  public static func trunc(_ e: QueryExpression) -> QueryExpression { call("TRUNC", [e]) }

  // MARK: Strings

  /// LENGTH: the number of code points.
  public static func length(_ e: QueryExpression) -> QueryExpression { call("LENGTH", [e]) }
  /// LOWER: converts to lower case.
  public static func lower(_ e: QueryExpression) -> QueryExpression { call("LOWER", [e]) }
  /// UPPER: converts to upper case.
  public static func upper(_ e: QueryExpression) -> QueryExpression { call("UPPER", [e]) }
  /// TRIM: removes white space from both ends.
  public static func trim(_ e: QueryExpression) -> QueryExpression { call("TRIM", [e]) }
  /// LTRIM: removes white space from the start.
  public static func ltrim(_ e: QueryExpression) -> QueryExpression { call("LTRIM", [e]) }
  /// RTRIM: removes white space from the end.
  public static func rtrim(_ e: QueryExpression) -> QueryExpression { call("RTRIM", [e]) }
  /// REVERSE: reverses the code points.
  public static func reverse(_ e: QueryExpression) -> QueryExpression { call("REVERSE", [e]) }
  /// INITCAP: the first letter of each word in title case, the others in lower case.
  public static func initCap(_ e: QueryExpression) -> QueryExpression { call("INITCAP", [e]) }

  // MARK: Types

  /// TYPE: the name of the value's type.
  public static func type(_ e: QueryExpression) -> QueryExpression { call("TYPE", [e]) }
  /// ISARRAY: whether the value is an array.
  public static func isArray(_ e: QueryExpression) -> QueryExpression { call("ISARRAY", [e]) }
  /// ISATOM: whether the value is a boolean, a number or a string.
  public static func isAtom(_ e: QueryExpression) -> QueryExpression { call("ISATOM", [e]) }
  /// ISBOOLEAN: whether the value is a boolean.
  public static func isBoolean(_ e: QueryExpression) -> QueryExpression { call("ISBOOLEAN", [e]) }
  /// ISNUMBER: whether the value is a number.
  public static func isNumber(_ e: QueryExpression) -> QueryExpression { call("ISNUMBER", [e]) }
  /// ISOBJECT: whether the value is an object.
  public static func isObject(_ e: QueryExpression) -> QueryExpression { call("ISOBJECT", [e]) }
  /// ISSTRING: whether the value is a string.
  public static func isString(_ e: QueryExpression) -> QueryExpression { call("ISSTRING", [e]) }
  /// TOARRAY: an array as it is, any other value as the only item of an array.
  public static func toArray(_ e: QueryExpression) -> QueryExpression { call("TOARRAY", [e]) }
  /// TOATOM: the boolean, number or string inside arrays of one item and objects of one member.
  public static func toAtom(_ e: QueryExpression) -> QueryExpression { call("TOATOM", [e]) }
  /// TOBOOLEAN: converts to a boolean. Zero and empty values are false.
  public static func toBoolean(_ e: QueryExpression) -> QueryExpression { call("TOBOOLEAN", [e]) }
  /// TONUMBER: converts booleans and strings to a number.
  public static func toNumber(_ e: QueryExpression) -> QueryExpression { call("TONUMBER", [e]) }
  /// TOOBJECT: an object as it is, any other value as an empty object.
  public static func toObject(_ e: QueryExpression) -> QueryExpression { call("TOOBJECT", [e]) }
  /// TOSTRING: converts booleans and numbers to a string.
  public static func toString(_ e: QueryExpression) -> QueryExpression { call("TOSTRING", [e]) }

  // MARK: Dates

  /// STR_TO_MILLIS: converts a date string to milliseconds since 1970.
  public static func stringToMillis(_ e: QueryExpression) -> QueryExpression { call("STR_TO_MILLIS", [e]) }
  /// STR_TO_UTC: converts a date string to UTC.
  public static func stringToUTC(_ e: QueryExpression) -> QueryExpression { call("STR_TO_UTC", [e]) }
  /// MILLIS_TO_STR: converts milliseconds since 1970 to a date string in local time.
  public static func millisToString(_ e: QueryExpression) -> QueryExpression { call("MILLIS_TO_STR", [e]) }
  /// MILLIS_TO_UTC: converts milliseconds since 1970 to a date string in UTC.
  public static func millisToUTC(_ e: QueryExpression) -> QueryExpression { call("MILLIS_TO_UTC", [e]) }

  // MARK: Several arguments

  /// E: the base of the natural logarithm.
  public static func e() -> QueryExpression { call("E", []) }
  /// PI: the number π.
  public static func pi() -> QueryExpression { call("PI", []) }
  /// ATAN2: the angle of the point (x, y), in radians.
  public static func atan2(y: QueryExpression, x: QueryExpression) -> QueryExpression {
    call("ATAN2", [y, x])
  }
  /// POWER: a base to the power of an exponent.
  public static func power(base: QueryExpression, exponent: QueryExpression) -> QueryExpression {
    call("POWER", [base, exponent])
  }
  /// ROUND: rounds to a number of digits after the decimal point.
  public static func round(_ e: QueryExpression, digits: QueryExpression) -> QueryExpression {
    call("ROUND", [e, digits])
  }
  /// TRUNC: cuts off after a number of digits behind the decimal point.
  public static func trunc(_ e: QueryExpression, digits: QueryExpression) -> QueryExpression {
    call("TRUNC", [e, digits])
  }
  /// CONTAINS: whether a string contains another.
  public static func contains(_ e: QueryExpression, substring: QueryExpression) -> QueryExpression {
    call("CONTAINS", [e, substring])
  }
  /// CONCAT: joins values into one string.
  public static func concat(_ e: QueryExpression...) -> QueryExpression { call("CONCAT", e) }
  /// IFNULL: the first value that isn't null. It may be missing.
  public static func ifNull(_ e: QueryExpression...) -> QueryExpression { call("IFNULL", e) }
  /// IFMISSING: the first value that isn't missing.
  public static func ifMissing(_ e: QueryExpression...) -> QueryExpression { call("IFMISSING", e) }
  /// IFMISSINGORNULL: the first value that is neither null nor missing.
  public static func ifMissingOrNull(_ e: QueryExpression...) -> QueryExpression {
    call("IFMISSINGORNULL", e)
  }
  /// GREATEST: the greatest value, in the order of all values.
  public static func greatest(_ e: QueryExpression...) -> QueryExpression { call("GREATEST", e) }
  /// LEAST: the least value, in the order of all values.
  public static func least(_ e: QueryExpression...) -> QueryExpression { call("LEAST", e) }
}
