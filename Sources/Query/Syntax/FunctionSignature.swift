/// The name of a function and its number of arguments. docs/query-functions.md describes what it computes.
package struct FunctionSignature: Sendable, Hashable {
  /// The name in upper case.
  package let name: String
  /// The allowed numbers of arguments.
  package let arity: ClosedRange<Int>
  /// Whether it is an aggregate, which computes one value from many rows and allows DISTINCT.
  package let isAggregate: Bool

  /// The maximum number of arguments of any function.
  package static let mostArguments = 127

  init(_ name: String, _ arity: ClosedRange<Int>, isAggregate: Bool = false) {
    self.name = name
    self.arity = arity
    self.isAggregate = isAggregate
  }

  /// All functions, sorted by name. The table is in `QueryFunction`.
  package static let all: [FunctionSignature] = QueryFunction.all.values
    .map { FunctionSignature($0.name, $0.arguments, isAggregate: $0.isAggregate) }
    .sorted { $0.name < $1.name }

  /// Alternative names in upper case, and the functions they stand for.
  package static let aliases: [String: String] = [
    "IS_ARRAY": "ISARRAY", "IS_ATOM": "ISATOM", "IS_BOOLEAN": "ISBOOLEAN", "IS_NUMBER": "ISNUMBER",
    "IS_OBJECT": "ISOBJECT", "IS_STRING": "ISSTRING", "TO_ARRAY": "TOARRAY", "TO_ATOM": "TOATOM",
    "TO_BOOLEAN": "TOBOOLEAN", "TO_NUMBER": "TONUMBER", "TO_OBJECT": "TOOBJECT", "TO_STRING": "TOSTRING",
    "TYPENAME": "TYPE", "REGEX_CONTAINS": "REGEXP_CONTAINS", "REGEX_LIKE": "REGEXP_LIKE",
    "REGEX_POSITION": "REGEXP_POSITION", "REGEX_REPLACE": "REGEXP_REPLACE",
  ]

  /// Finds a function by its name in upper case, or by an alias.
  package static func named(_ name: String) -> FunctionSignature? { byName[name] }

  private static let byName: [String: FunctionSignature] = {
    var byName = Dictionary(all.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
    for (alias, name) in aliases { byName[alias] = byName[name] }
    return byName
  }()

  /// The error message for a number of arguments that isn't allowed. Nil when it is allowed.
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
