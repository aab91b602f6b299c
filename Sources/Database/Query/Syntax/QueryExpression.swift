// The syntax tree of an expression. The parser and the Swift builder produce it, before names are resolved.
// The grammar is in docs/query.md.
//
// Names and texts are `ByteString`s. Two trees are equal when their names have the same bytes. `"\u{E9}"` and
// `"e\u{301}"` are two different properties.

import Storage

/// An expression of the query language.
public indirect enum QueryExpression: Hashable, Sendable {
  /// A literal value.
  case literal(Literal)
  /// `$name`.
  case parameter(ByteString)
  /// A path such as `name`, `geo.lat` or `r.reviews[0].author`. Its first name is a source, the alias of a
  /// result, a variable of ANY, or a property. Name resolution decides which.
  case property(PropertyReference)
  /// `*` or `source.*`: the whole document.
  case star(source: SourceName?)
  /// `META()` or `META(source)`, or one of its members: `META().id`.
  case meta(source: SourceName?, MetaProperty?)
  /// `e.path` for an expression that isn't a path: `{"x": 17}.x`, `SPLIT(name, " ")[0]`.
  case member(QueryExpression, [PathStep])
  /// `[a, b]`.
  case array([QueryExpression])
  /// `{"name": value}`.
  case object([ObjectMember])
  /// A prefix operator and its operand.
  case unary(UnaryOperator, QueryExpression)
  /// An operator between two operands.
  case binary(BinaryOperator, QueryExpression, QueryExpression)
  /// `e IS [NOT] NULL`, `MISSING` or `VALUED`.
  case test(QueryExpression, ValueTest, negated: Bool)
  /// `e [NOT] BETWEEN lower AND upper`.
  case between(QueryExpression, lower: QueryExpression, upper: QueryExpression, negated: Bool)
  /// `e [NOT] IN collection`. The collection is any expression that gives an array. A list in parentheses is
  /// `.array`.
  case contained(QueryExpression, in: QueryExpression, negated: Bool)
  /// `e [NOT] LIKE pattern`.
  case like(QueryExpression, pattern: QueryExpression, negated: Bool)
  /// `CASE operand WHEN … THEN … ELSE … END`. Without an operand, each WHEN has a condition.
  case conditional(operand: QueryExpression?, branches: [ConditionalBranch], otherwise: QueryExpression?)
  /// `ANY variable IN collection SATISFIES condition END`.
  case quantified(Quantifier, variable: ByteString, in: QueryExpression, satisfies: QueryExpression)
  /// A loop over collections: ARRAY, FIRST and OBJECT … FOR … END, and ANY and EVERY with several variables, with
  /// positions, or with WITHIN. ANY and EVERY with one variable of IN are `quantified`.
  case iteration(Iteration)
  /// `e [NOT] WITHIN collection`: whether the value is in an array or object, at any depth.
  case within(QueryExpression, in: QueryExpression, negated: Bool)
  /// `e[expression]`, `e.[expression]` or `e[start:end]`. A literal index or name is a step of a path instead.
  case subscripted(QueryExpression, Subscript)
  /// `{expression: value}`, an object with names that are computed.
  case computedObject([ComputedMember])
  /// `EXISTS (SELECT …)`.
  case exists(SelectStatement)
  /// `(SELECT …)`: the array of a query's rows.
  case subquery(SelectStatement)
  /// A call of a function, including aggregates.
  case call(FunctionCall)
  /// `MATCH(index, text)`.
  case match(IndexReference, QueryExpression)
  /// `RANK(index)`.
  case rank(IndexReference)
  /// `e COLLATE …`: sets how the comparisons inside `e` order text.
  case collate(QueryExpression, Collation)
}

/// A value written in a query.
public enum Literal: Hashable, Sendable {
  /// MISSING: no value.
  case missing
  /// NULL.
  case null
  /// TRUE or FALSE.
  case bool(Bool)
  /// An integer from `Int64.min` to `Int64.max`.
  case int(Int64)
  /// An integer above `Int64.max`.
  case uint(UInt64)
  /// A number with a fraction or an exponent.
  case double(Double)
  /// A string.
  case string(ByteString)

  /// A string.
  public static func string(_ text: String) -> Literal { .string(ByteString(text)) }
}

/// A position in a query's text. Two positions are always equal, because a position isn't part of the meaning
/// of a tree.
public struct SourcePosition: Hashable, Sendable {
  /// The offset in UTF-8 bytes from the start of the text. Nil for a tree that was built and not parsed.
  public var offset: Int?
  /// Creates a position, or an unknown one.
  public init(_ offset: Int? = nil) { self.offset = offset }
  /// Always true.
  public static func == (_: SourcePosition, _: SourcePosition) -> Bool { true }
  /// Adds nothing to the hash.
  public func hash(into _: inout Hasher) {}
}

/// One step of a path.
public enum PathStep: Hashable, Sendable {
  case name(ByteString)
  /// An item of an array. Negative indexes count from the end.
  case index(Int)

  /// The name of a property.
  public static func name(_ name: String) -> PathStep { .name(ByteString(name)) }

  /// The name. Nil for an index.
  var name: ByteString? { if case .name(let name) = self { name } else { nil } }
}

/// A path as it was written. The first step is a name.
public struct PropertyReference: Hashable, Sendable {
  /// The steps, from the outermost to the innermost.
  public var steps: [PathStep]
  /// The position of the first name.
  public var position: SourcePosition
  /// Creates a path from its steps.
  public init(_ steps: [PathStep], position: SourcePosition = SourcePosition()) {
    self.steps = steps
    self.position = position
  }
}

/// The name of a source in an expression: `s` in `s.*` and `META(s)`.
public struct SourceName: Hashable, Sendable {
  /// The source's alias, or its name if it has no alias.
  public var name: ByteString
  /// The position of the name.
  public var position: SourcePosition
  /// Creates a reference to a source.
  public init(_ name: ByteString, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.position = position
  }
  /// Creates a reference to a source.
  public init(_ name: String) { self.init(ByteString(name)) }
}

/// A reference to a full-text index in MATCH and RANK: `index` or `source.index`.
public struct IndexReference: Hashable, Sendable {
  /// The index's name.
  public var name: ByteString
  /// The alias of the index's source, if it was given.
  public var source: ByteString?
  /// The position of the first name.
  public var position: SourcePosition
  /// Creates a reference to an index.
  public init(_ name: ByteString, source: ByteString? = nil, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.source = source
    self.position = position
  }
  /// Creates a reference to an index.
  public init(_ name: String, source: String? = nil) {
    self.init(ByteString(name), source: source.map { ByteString($0) })
  }
}

/// A member of `META()`.
public enum MetaProperty: String, Hashable, Sendable, CaseIterable {
  case id, sequence, deleted, expiration
  case revisionID
}

/// A member of an object literal: `"name": value`.
public struct ObjectMember: Hashable, Sendable {
  /// The member's name.
  public var name: ByteString
  /// The expression for its value.
  public var value: QueryExpression
  /// Creates a member.
  public init(_ name: ByteString, _ value: QueryExpression) {
    self.name = name
    self.value = value
  }
  /// Creates a member.
  public init(_ name: String, _ value: QueryExpression) { self.init(ByteString(name), value) }
}

/// An operator before its operand.
public enum UnaryOperator: String, Hashable, Sendable, CaseIterable {
  case minus = "-"
  case plus = "+"
  case not = "NOT"
}

/// An operator between two operands.
public enum BinaryOperator: String, Hashable, Sendable, CaseIterable {
  case or = "OR"
  case and = "AND"
  case equal = "="
  case notEqual = "!="
  /// `IS` between two expressions: equality that also compares null and missing.
  case identical = "IS"
  /// `IS NOT` between two expressions: the opposite of `IS`.
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

/// What `IS` tests a value for.
public enum ValueTest: String, Hashable, Sendable, CaseIterable {
  case null = "NULL"
  case missing = "MISSING"
  /// Neither null nor missing.
  case valued = "VALUED"
}

/// `WHEN condition THEN result`.
public struct ConditionalBranch: Hashable, Sendable {
  /// The condition. In a CASE with an operand, it is the value that the operand is compared with.
  public var condition: QueryExpression
  /// The value of CASE for this branch.
  public var result: QueryExpression
  /// Creates a branch.
  public init(when condition: QueryExpression, then result: QueryExpression) {
    self.condition = condition
    self.result = result
  }
}

/// The number of items that have to satisfy a condition.
public enum Quantifier: String, Hashable, Sendable, CaseIterable {
  case any = "ANY"
  case every = "EVERY"
  case anyAndEvery = "ANY AND EVERY"
}

/// A rule for comparing text. The default compares bytes.
public struct Collation: Hashable, Sendable {
  /// Whether text is compared by the Unicode collation algorithm. Otherwise it is compared by bytes, with
  /// ASCII letters folded when case is ignored.
  public var isUnicode: Bool
  /// Whether `a` equals `A`.
  public var ignoresCase: Bool
  /// Whether `a` equals `á`.
  public var ignoresDiacritics: Bool
  /// An ICU locale such as `sv`. Nil is ICU's root locale.
  public var locale: String?
  /// Creates a collation. See the properties.
  public init(
    isUnicode: Bool = false, ignoresCase: Bool = false, ignoresDiacritics: Bool = false,
    locale: String? = nil
  ) {
    self.isUnicode = isUnicode
    self.ignoresCase = ignoresCase
    self.ignoresDiacritics = ignoresDiacritics
    self.locale = locale
  }
  /// The default: text is compared by its bytes.
  public static let binary = Collation()
}
