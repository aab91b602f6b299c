/// The name of a function and how many arguments it takes. What it computes is in docs/query-functions.md.
public struct FunctionSignature: Sendable, Hashable {
  /// In upper case.
  public let name: String
  /// How many arguments are taken.
  public let arity: ClosedRange<Int>
  /// Whether it makes one value of many rows, and takes DISTINCT.
  public let isAggregate: Bool

  /// The most arguments that any function takes.
  public static let mostArguments = 127

  init(_ name: String, _ arity: ClosedRange<Int>, isAggregate: Bool = false) {
    self.name = name
    self.arity = arity
    self.isAggregate = isAggregate
  }

  /// Every function, in the order of the names.
  public static let all: [FunctionSignature] = groups.flatMap { arity, names in
    names.split(separator: " ").map { FunctionSignature(String($0), arity) }
  }.appending(
    aggregates.split(separator: " ").map { FunctionSignature(String($0), 1...1, isAggregate: true) }
  )
  .sorted { $0.name < $1.name }

  /// Other names, in upper case, and the functions they stand for.
  public static let aliases: [String: String] = [
    "IS_ARRAY": "ISARRAY", "IS_ATOM": "ISATOM", "IS_BOOLEAN": "ISBOOLEAN", "IS_NUMBER": "ISNUMBER",
    "IS_OBJECT": "ISOBJECT", "IS_STRING": "ISSTRING", "TO_ARRAY": "TOARRAY", "TO_ATOM": "TOATOM",
    "TO_BOOLEAN": "TOBOOLEAN", "TO_NUMBER": "TONUMBER", "TO_OBJECT": "TOOBJECT", "TO_STRING": "TOSTRING",
    "TYPENAME": "TYPE", "REGEX_CONTAINS": "REGEXP_CONTAINS", "REGEX_LIKE": "REGEXP_LIKE",
    "REGEX_POSITION": "REGEXP_POSITION", "REGEX_REPLACE": "REGEXP_REPLACE",
  ]

  /// The function of a name in upper case, or of an alias.
  public static func named(_ name: String) -> FunctionSignature? { byName[name] }

  private static let byName: [String: FunctionSignature] = {
    var byName = Dictionary(all.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    for (alias, name) in aliases { byName[alias] = byName[name] }
    return byName
  }()

  private static let aggregates = "ARRAY_AGG AVG COUNT MAX MIN SUM"

  private static let groups: [(ClosedRange<Int>, String)] = [
    (0...0, "E PI"),
    (
      1...1,
      """
      ARRAY_AVG ARRAY_COUNT ARRAY_IFNULL ARRAY_LENGTH ARRAY_MAX ARRAY_MIN ARRAY_SUM \
      ABS ACOS ASIN ATAN CEIL COS DEGREES EXP FLOOR LN LOG RADIANS SIGN SIN SQRT TAN \
      LENGTH LOWER UPPER TRIM LTRIM RTRIM REVERSE INITCAP STR_TO_MILLIS \
      ISARRAY ISATOM ISBOOLEAN ISNUMBER ISOBJECT ISSTRING TYPE \
      TOARRAY TOATOM TOBOOLEAN TONUMBER TOOBJECT TOSTRING
      """
    ),
    (1...2, "ROUND ROUND_EVEN TRUNC SPLIT STR_TO_UTC MILLIS_TO_STR MILLIS_TO_UTC"),
    (
      2...2,
      """
      ARRAY_CONTAINS ATAN2 POWER DIV IDIV MISSINGIF NULLIF CONTAINS POSITION REPEAT \
      REGEXP_CONTAINS REGEXP_LIKE REGEXP_POSITION
      """
    ),
    (2...3, "SUBSTR STR_TO_TZ MILLIS_TO_TZ"),
    (3...3, "DATE_DIFF_STR DATE_DIFF_MILLIS DATE_ADD_STR DATE_ADD_MILLIS"),
    (3...4, "REPLACE REGEXP_REPLACE"),
    (0...mostArguments, "ARRAY_OF"),
    (1...mostArguments, "CONCAT"),
    (2...mostArguments, "GREATEST LEAST IFMISSING IFNULL IFMISSINGORNULL"),
  ]

  /// What to tell about a number of arguments that isn't taken; nil when it is.
  func complaint(about count: Int) -> String? {
    if arity.contains(count) { return nil }
    let taken =
      switch (arity.lowerBound, arity.upperBound) {
      case (0, 0): "no arguments"
      case (1, 1): "one argument"
      case (let few, let many) where few == many: "\(few) arguments"
      case (let few, Self.mostArguments) where count < few: "at least \(few) argument\(few == 1 ? "" : "s")"
      case (_, Self.mostArguments): "at most \(Self.mostArguments) arguments"
      case (let few, let many): "\(few) to \(many) arguments"
      }
    return "\(name) takes \(taken), not \(count)"
  }
}

extension Array {
  fileprivate func appending(_ others: [Element]) -> [Element] { self + others }
}
