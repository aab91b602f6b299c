extension QueryFunction {
  /// Alternative names in upper case, and the functions they stand for.
  static let aliases: [String: String] = [
    "IS_ARRAY": "ISARRAY", "IS_ATOM": "ISATOM", "IS_BOOLEAN": "ISBOOLEAN", "IS_NUMBER": "ISNUMBER",
    "IS_OBJECT": "ISOBJECT", "IS_STRING": "ISSTRING", "TO_ARRAY": "TOARRAY", "TO_ATOM": "TOATOM",
    "TO_BOOLEAN": "TOBOOLEAN", "TO_NUMBER": "TONUMBER", "TO_OBJECT": "TOOBJECT", "TO_STRING": "TOSTRING",
    "TYPENAME": "TYPE", "REGEX_CONTAINS": "REGEXP_CONTAINS", "REGEX_LIKE": "REGEXP_LIKE",
    "REGEX_POSITION": "REGEXP_POSITION", "REGEX_REPLACE": "REGEXP_REPLACE",
    // Types.
    "IS_BINARY": "ISBINARY", "TYPE_NAME": "TYPE",
    // Strings. Positions and lengths count code points, so the functions for characters are the same.
    "TITLE": "INITCAP", "SUBSTR0": "SUBSTR", "POSITION0": "POSITION", "POS": "POSITION", "POS0": "POSITION",
    "POS1": "POSITION1", "MB_LENGTH": "LENGTH", "MB_LEN": "LEN", "MB_LPAD": "LPAD", "MB_RPAD": "RPAD",
    "MB_SUBSTR": "SUBSTR", "MB_SUBSTR0": "SUBSTR", "MB_SUBSTR1": "SUBSTR1", "MB_POS": "POSITION",
    "MB_POS0": "POSITION", "MB_POSITION": "POSITION", "MB_POSITION0": "POSITION", "MB_POS1": "POSITION1",
    "MB_POSITION1": "POSITION1", "URL_ENCODE": "URLENCODE", "URL_DECODE": "URLDECODE",
    "FORMALISE": "FORMALIZE", "HAS_TOKEN": "CONTAINS_TOKEN", "CONTAINS_TOKEN_REGEX": "CONTAINS_TOKEN_REGEXP",
    "LEVENSHTEIN": "LEVENSHTEIN_DISTANCE",
    // JSON.
    "JSON_DECODE": "DECODE_JSON", "JSON_ENCODE": "ENCODE_JSON", "BASE64": "BASE64_ENCODE",
    "ENCODE_BASE64": "BASE64_ENCODE", "DECODE_BASE64": "BASE64_DECODE",
    // Arrays and objects.
    "ARRAY_POS": "ARRAY_POSITION", "ARRAY_SYMDIFF1": "ARRAY_SYMDIFF", "OBJECT_OUTER_PAIRS": "OBJECT_PAIRS",
    "OBJECT_OUTER_VALUES": "OBJECT_VALUES", "OBJECT_INNERPAIRS": "OBJECT_INNER_PAIRS",
    "OBJECT_OUTERPAIRS": "OBJECT_PAIRS", "OBJECT_INNERVALUES": "OBJECT_INNER_VALUES",
    "OBJECT_OUTERVALUES": "OBJECT_VALUES", "OBJECT_REMOVE_FIELDS": "OBJECT_REMOVE",
    // Bits and conditions.
    "ISBITSET": "BITTEST", "COALESCE": "IFMISSINGORNULL", "IF_MISSING": "IFMISSING",
    "IF_MISSING_OR_NULL": "IFMISSINGORNULL", "IF_NULL": "IFNULL", "MISSING_IF": "MISSINGIF",
    "NULL_IF": "NULLIF", "IF_INF": "IFINF", "IF_NAN": "IFNAN", "IF_NAN_OR_INF": "IFNANORINF",
    "NAN_IF": "NANIF", "NEGINF_IF": "NEGINFIF", "POSINF_IF": "POSINFIF",
    // Vectors.
    "ANN_DISTANCE": "APPROX_VECTOR_DISTANCE", "KNN_DISTANCE": "VECTOR_DISTANCE",
    // Aggregates.
    "MEAN": "AVG", "VAR_SAMP": "VARIANCE_SAMP", "VAR_POP": "VARIANCE_POP",
    // Dates.
    "MILLIS": "STR_TO_MILLIS", "MILLIS_TO_LOCAL": "MILLIS_TO_STR", "MILLIS_TO_ZONE_NAME": "MILLIS_TO_TZ",
    "STR_TO_ZONE_NAME": "STR_TO_TZ", "CLOCK_LOCAL": "CLOCK_STR", "NOW_LOCAL": "NOW_STR",
  ]
}

extension QueryExpression {
  /// How long a call keeps its result. Other expressions are immutable in themselves.
  var callVolatility: QueryFunction.Volatility {
    guard case .call(let call) = self else { return .immutable }
    return QueryFunction.named(call.name)?.volatility ?? .immutable
  }

  /// Whether a part of it has a result of its own each time that it is computed.
  var isVolatile: Bool { hasParts { $0.callVolatility == .call } }
}
