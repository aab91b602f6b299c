// The syntax tree of an expression, as the parser and the Swift builder make it, before names are resolved.
// The grammar is in docs/query.md.
//
// Names and texts are `ByteString`s: two trees are equal when their names have the same bytes. `"\u{E9}"` and
// `"e\u{301}"` are two properties.

import Storage

/// An expression of the query language.
public indirect enum Expression: Hashable, Sendable {
  case literal(Literal)
  /// `$name`.
  case parameter(ByteString)
  /// A path such as `name`, `geo.lat` or `r.reviews[0].author`. Whether its first name is a source, a result's
  /// alias, a variable of ANY or a property is decided when names are resolved.
  case property(PropertyReference)
  /// `*`, or `source.*`: the whole document.
  case star(source: SourceName?)
  /// `META()` or `META(source)`, with one of its members when one was named: `META().id`.
  case meta(source: SourceName?, MetaProperty?)
  /// `e.path` of what isn't a path itself: `{"x": 17}.x`, `SPLIT(name, " ")[0]`.
  case member(Expression, [PathStep])
  case array([Expression])
  case object([ObjectMember])
  case unary(UnaryOperator, Expression)
  case binary(BinaryOperator, Expression, Expression)
  /// `e IS NULL` and its kin.
  case test(Expression, ValueTest, negated: Bool)
  case between(Expression, lower: Expression, upper: Expression, negated: Bool)
  /// `e IN collection`: the collection is any expression that gives an array. A list in parentheses is `.array`.
  case contained(Expression, in: Expression, negated: Bool)
  case like(Expression, pattern: Expression, negated: Bool)
  /// `CASE operand WHEN … THEN … ELSE … END`; without an operand the conditions are truths.
  case conditional(operand: Expression?, branches: [ConditionalBranch], otherwise: Expression?)
  /// `ANY variable IN collection SATISFIES condition END`.
  case quantified(Quantifier, variable: ByteString, in: Expression, satisfies: Expression)
  /// `EXISTS (SELECT …)`.
  case exists(SelectStatement)
  /// A function by its name in upper case, aggregates too.
  case call(FunctionCall)
  /// `MATCH(index, text)`.
  case match(IndexReference, Expression)
  /// `RANK(index)`.
  case rank(IndexReference)
  /// `e COLLATE …`: how the comparisons inside order text.
  case collate(Expression, Collation)
}

/// A value that stands in the text of a query.
public enum Literal: Hashable, Sendable {
  case missing
  case null
  case bool(Bool)
  case int(Int64)
  /// An integer above `Int64.max`.
  case uint(UInt64)
  case double(Double)
  case string(ByteString)

  /// A text.
  public static func string(_ text: String) -> Literal { .string(ByteString(text)) }
}

/// Where in a query's text something stands. Two positions are always equal: where a thing was written isn't part
/// of what it means.
public struct SourcePosition: Hashable, Sendable {
  /// Bytes of UTF-8 from the start; nil for what was built and not parsed.
  public var offset: Int?
  /// A position, or none.
  public init(_ offset: Int? = nil) { self.offset = offset }
  /// Always true.
  public static func == (_: SourcePosition, _: SourcePosition) -> Bool { true }
  /// Adds nothing.
  public func hash(into _: inout Hasher) {}
}

/// One step of a path.
public enum PathStep: Hashable, Sendable {
  case name(ByteString)
  /// An item of an array; negative ones count from the end.
  case index(Int)

  /// A property's name.
  public static func name(_ name: String) -> PathStep { .name(ByteString(name)) }
}

/// A path as it was written. The first step is a name.
public struct PropertyReference: Hashable, Sendable {
  /// From the outside in.
  public var steps: [PathStep]
  /// Of the first name.
  public var position: SourcePosition
  /// A path of steps.
  public init(_ steps: [PathStep], position: SourcePosition = SourcePosition()) {
    self.steps = steps
    self.position = position
  }
}

/// The name of a source inside an expression: `s` in `s.*` and `META(s)`.
public struct SourceName: Hashable, Sendable {
  /// The source's alias, or its name.
  public var name: ByteString
  /// Of the name.
  public var position: SourcePosition
  /// A source of that name.
  public init(_ name: ByteString, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.position = position
  }
  /// A source of that name.
  public init(_ name: String) { self.init(ByteString(name)) }
}

/// A full-text index as MATCH and RANK name it: `index` or `source.index`.
public struct IndexReference: Hashable, Sendable {
  /// The index's name.
  public var name: ByteString
  /// The alias of the source whose index it is, when it was named.
  public var source: ByteString?
  /// Of the first name.
  public var position: SourcePosition
  /// An index of that name.
  public init(_ name: ByteString, source: ByteString? = nil, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.source = source
    self.position = position
  }
  /// An index of that name.
  public init(_ name: String, source: String? = nil) {
    self.init(ByteString(name), source: source.map { ByteString($0) })
  }
}

/// A member of `META()`.
public enum MetaProperty: String, Hashable, Sendable, CaseIterable {
  case id, sequence, deleted, expiration
  case revisionID
}

/// `"name": value` of an object literal.
public struct ObjectMember: Hashable, Sendable {
  /// The member's name.
  public var name: ByteString
  /// What gives its value.
  public var value: Expression
  /// A member of that name.
  public init(_ name: ByteString, _ value: Expression) {
    self.name = name
    self.value = value
  }
  /// A member of that name.
  public init(_ name: String, _ value: Expression) { self.init(ByteString(name), value) }
}

/// Operators that stand before their operand.
public enum UnaryOperator: String, Hashable, Sendable, CaseIterable {
  case minus = "-"
  case plus = "+"
  case not = "NOT"
}

/// Operators between two operands.
public enum BinaryOperator: String, Hashable, Sendable, CaseIterable {
  case or = "OR"
  case and = "AND"
  case equal = "="
  case notEqual = "!="
  /// `IS` and `IS NOT` between two expressions: equality that holds for null and missing as well.
  case identical = "IS"
  case notIdentical = "IS NOT"
  case less = "<"
  case lessOrEqual = "<="
  case greater = ">"
  case greaterOrEqual = ">="
  case add = "+"
  case subtract = "-"
  case multiply = "*"
  case divide = "/"
  case modulo = "%"
  case concatenate = "||"
}

/// What `IS` asks of a value.
public enum ValueTest: String, Hashable, Sendable, CaseIterable {
  case null = "NULL"
  case missing = "MISSING"
  /// Neither null nor missing.
  case valued = "VALUED"
}

/// `WHEN condition THEN result`.
public struct ConditionalBranch: Hashable, Sendable {
  /// A truth, or what the operand of CASE is compared with.
  public var condition: Expression
  /// What CASE gives then.
  public var result: Expression
  /// A branch.
  public init(when condition: Expression, then result: Expression) {
    self.condition = condition
    self.result = result
  }
}

/// How many items of an array have to satisfy a condition.
public enum Quantifier: String, Hashable, Sendable, CaseIterable {
  case any = "ANY"
  case every = "EVERY"
  case anyAndEvery = "ANY AND EVERY"
}

/// `NAME(arguments)`; `NAME(DISTINCT e)`; `COUNT(*)` has the one argument `.star(source: nil)`.
public struct FunctionCall: Hashable, Sendable {
  /// In upper case, the first of a function's names: IS_ARRAY is ISARRAY (`FunctionSignature`).
  public var name: String
  /// Whether an aggregate looks at each value once.
  public var isDistinct: Bool
  /// In their order.
  public var arguments: [Expression]
  /// Of the name.
  public var position: SourcePosition
  /// A call of the function.
  public init(
    _ name: String, _ arguments: [Expression], isDistinct: Bool = false,
    position: SourcePosition = SourcePosition()
  ) {
    self.name = name
    self.isDistinct = isDistinct
    self.arguments = arguments
    self.position = position
  }
}

/// How text is compared. The default compares bytes.
public struct Collation: Hashable, Sendable {
  /// By the Unicode collation algorithm; else by bytes, of ASCII letters folded when case is ignored.
  public var isUnicode: Bool
  /// Whether `a` is `A`.
  public var ignoresCase: Bool
  /// Whether `a` is `á`.
  public var ignoresDiacritics: Bool
  /// An ICU locale such as `sv`; nil is the root's order.
  public var locale: String?
  /// A collation; see the properties.
  public init(
    isUnicode: Bool = false, ignoresCase: Bool = false, ignoresDiacritics: Bool = false,
    locale: String? = nil
  ) {
    self.isUnicode = isUnicode
    self.ignoresCase = ignoresCase
    self.ignoresDiacritics = ignoresDiacritics
    self.locale = locale
  }
  /// By bytes: the default.
  public static let binary = Collation()
}
