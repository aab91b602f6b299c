// The functions that the builder has methods for. Every other one is `Function.named`.

/// Functions over values, and aggregates. What each computes is in docs/query-functions.md.
public enum Function {
  /// A function by its name in any case, such as `STR_TO_TZ`. A name that there isn't is told when the query is prepared.
  public static func named(_ name: String, _ arguments: Expression..., distinct: Bool = false) -> Expression {
    call(name.uppercased(), arguments, distinct)
  }

  static func call(_ name: String, _ arguments: [Expression], _ isDistinct: Bool = false) -> Expression {
    .call(FunctionCall(FunctionSignature.named(name)?.name ?? name, arguments, isDistinct: isDistinct))
  }

  /// COUNT(DISTINCT e).
  public static func countDistinct(_ e: Expression) -> Expression { call("COUNT", [e], true) }

  // MARK: Aggregates

  /// AVG.
  public static func avg(_ e: Expression) -> Expression { call("AVG", [e]) }
  /// COUNT.
  public static func count(_ e: Expression) -> Expression { call("COUNT", [e]) }
  /// MIN.
  public static func min(_ e: Expression) -> Expression { call("MIN", [e]) }
  /// MAX.
  public static func max(_ e: Expression) -> Expression { call("MAX", [e]) }
  /// SUM.
  public static func sum(_ e: Expression) -> Expression { call("SUM", [e]) }

  // MARK: Numbers

  /// ABS.
  public static func abs(_ e: Expression) -> Expression { call("ABS", [e]) }
  /// ACOS.
  public static func acos(_ e: Expression) -> Expression { call("ACOS", [e]) }
  /// ASIN.
  public static func asin(_ e: Expression) -> Expression { call("ASIN", [e]) }
  /// ATAN.
  public static func atan(_ e: Expression) -> Expression { call("ATAN", [e]) }
  /// CEIL.
  public static func ceil(_ e: Expression) -> Expression { call("CEIL", [e]) }
  /// COS.
  public static func cos(_ e: Expression) -> Expression { call("COS", [e]) }
  /// DEGREES.
  public static func degrees(_ e: Expression) -> Expression { call("DEGREES", [e]) }
  /// EXP.
  public static func exp(_ e: Expression) -> Expression { call("EXP", [e]) }
  /// FLOOR.
  public static func floor(_ e: Expression) -> Expression { call("FLOOR", [e]) }
  /// LN.
  public static func ln(_ e: Expression) -> Expression { call("LN", [e]) }
  /// LOG.
  public static func log(_ e: Expression) -> Expression { call("LOG", [e]) }
  /// RADIANS.
  public static func radians(_ e: Expression) -> Expression { call("RADIANS", [e]) }
  /// SIGN.
  public static func sign(_ e: Expression) -> Expression { call("SIGN", [e]) }
  /// SIN.
  public static func sin(_ e: Expression) -> Expression { call("SIN", [e]) }
  /// SQRT.
  public static func sqrt(_ e: Expression) -> Expression { call("SQRT", [e]) }
  /// TAN.
  public static func tan(_ e: Expression) -> Expression { call("TAN", [e]) }
  /// ROUND.
  public static func round(_ e: Expression) -> Expression { call("ROUND", [e]) }
  /// TRUNC.
  public static func trunc(_ e: Expression) -> Expression { call("TRUNC", [e]) }

  // MARK: Strings

  /// LENGTH.
  public static func length(_ e: Expression) -> Expression { call("LENGTH", [e]) }
  /// LOWER.
  public static func lower(_ e: Expression) -> Expression { call("LOWER", [e]) }
  /// UPPER.
  public static func upper(_ e: Expression) -> Expression { call("UPPER", [e]) }
  /// TRIM.
  public static func trim(_ e: Expression) -> Expression { call("TRIM", [e]) }
  /// LTRIM.
  public static func ltrim(_ e: Expression) -> Expression { call("LTRIM", [e]) }
  /// RTRIM.
  public static func rtrim(_ e: Expression) -> Expression { call("RTRIM", [e]) }
  /// REVERSE.
  public static func reverse(_ e: Expression) -> Expression { call("REVERSE", [e]) }
  /// INITCAP.
  public static func initCap(_ e: Expression) -> Expression { call("INITCAP", [e]) }

  // MARK: Types

  /// TYPE.
  public static func type(_ e: Expression) -> Expression { call("TYPE", [e]) }
  /// ISARRAY.
  public static func isArray(_ e: Expression) -> Expression { call("ISARRAY", [e]) }
  /// ISATOM.
  public static func isAtom(_ e: Expression) -> Expression { call("ISATOM", [e]) }
  /// ISBOOLEAN.
  public static func isBoolean(_ e: Expression) -> Expression { call("ISBOOLEAN", [e]) }
  /// ISNUMBER.
  public static func isNumber(_ e: Expression) -> Expression { call("ISNUMBER", [e]) }
  /// ISOBJECT.
  public static func isObject(_ e: Expression) -> Expression { call("ISOBJECT", [e]) }
  /// ISSTRING.
  public static func isString(_ e: Expression) -> Expression { call("ISSTRING", [e]) }
  /// TOARRAY.
  public static func toArray(_ e: Expression) -> Expression { call("TOARRAY", [e]) }
  /// TOATOM.
  public static func toAtom(_ e: Expression) -> Expression { call("TOATOM", [e]) }
  /// TOBOOLEAN.
  public static func toBoolean(_ e: Expression) -> Expression { call("TOBOOLEAN", [e]) }
  /// TONUMBER.
  public static func toNumber(_ e: Expression) -> Expression { call("TONUMBER", [e]) }
  /// TOOBJECT.
  public static func toObject(_ e: Expression) -> Expression { call("TOOBJECT", [e]) }
  /// TOSTRING.
  public static func toString(_ e: Expression) -> Expression { call("TOSTRING", [e]) }

  // MARK: Dates

  /// STR_TO_MILLIS.
  public static func stringToMillis(_ e: Expression) -> Expression { call("STR_TO_MILLIS", [e]) }
  /// STR_TO_UTC.
  public static func stringToUTC(_ e: Expression) -> Expression { call("STR_TO_UTC", [e]) }
  /// MILLIS_TO_STR.
  public static func millisToString(_ e: Expression) -> Expression { call("MILLIS_TO_STR", [e]) }
  /// MILLIS_TO_UTC.
  public static func millisToUTC(_ e: Expression) -> Expression { call("MILLIS_TO_UTC", [e]) }

  // MARK: Several arguments

  /// E.
  public static func e() -> Expression { call("E", []) }
  /// PI.
  public static func pi() -> Expression { call("PI", []) }
  /// ATAN2.
  public static func atan2(y: Expression, x: Expression) -> Expression { call("ATAN2", [y, x]) }
  /// POWER.
  public static func power(base: Expression, exponent: Expression) -> Expression {
    call("POWER", [base, exponent])
  }
  /// ROUND to so many digits.
  public static func round(_ e: Expression, digits: Expression) -> Expression { call("ROUND", [e, digits]) }
  /// TRUNC to so many digits.
  public static func trunc(_ e: Expression, digits: Expression) -> Expression { call("TRUNC", [e, digits]) }
  /// CONTAINS: whether a string has another in it.
  public static func contains(_ e: Expression, substring: Expression) -> Expression {
    call("CONTAINS", [e, substring])
  }
  /// CONCAT.
  public static func concat(_ e: Expression...) -> Expression { call("CONCAT", e) }
  /// IFNULL.
  public static func ifNull(_ e: Expression...) -> Expression { call("IFNULL", e) }
  /// IFMISSING.
  public static func ifMissing(_ e: Expression...) -> Expression { call("IFMISSING", e) }
  /// IFMISSINGORNULL.
  public static func ifMissingOrNull(_ e: Expression...) -> Expression { call("IFMISSINGORNULL", e) }
  /// GREATEST.
  public static func greatest(_ e: Expression...) -> Expression { call("GREATEST", e) }
  /// LEAST.
  public static func least(_ e: Expression...) -> Expression { call("LEAST", e) }
}
