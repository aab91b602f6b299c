// Expressions of the builder: literals, properties, parameters, comparisons. There is no nil literal: where an
// optional expression is expected, nil would become NULL unseen. It is `.null`.

import Storage

extension Expression: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral
{
  /// A string, not a property.
  public init(stringLiteral value: String) { self = .literal(.string(value)) }
  /// An integer.
  public init(integerLiteral value: Int64) { self = .literal(.int(value)) }
  /// A double.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// True or false.
  public init(booleanLiteral value: Bool) { self = .literal(.bool(value)) }
  /// An array.
  public init(arrayLiteral elements: Expression...) { self = .array(elements) }
}

extension Expression {
  /// A property by its path (`geo.lat`, `reviews[0].author`), of the only source or of one by its alias.
  ///
  /// A backslash makes the next character, such as a dot, part of a name. Brackets without an integer are too.
  public static func property(_ path: String, from source: String? = nil) -> Expression {
    .property(PropertyReference((source.map { [.name($0)] } ?? []) + PathStep.steps(path)))
  }

  /// The whole document, of the only source or of one by its alias. `Function.count(.all())` counts rows.
  public static func all(from source: String? = nil) -> Expression {
    .star(source: source.map { SourceName($0) })
  }

  /// The value of a parameter, by its name without the `$`.
  public static func parameter(_ name: String) -> Expression { .parameter(ByteString(name)) }
  /// A string.
  public static func string(_ value: String) -> Expression { .literal(.string(value)) }
  /// An integer.
  public static func int(_ value: Int) -> Expression { .literal(.int(Int64(value))) }
  /// A double; what isn't finite is null, as documents can't hold it.
  public static func double(_ value: Double) -> Expression {
    .literal(value.isFinite ? .double(value) : .null)
  }
  /// True or false.
  public static func boolean(_ value: Bool) -> Expression { .literal(.bool(value)) }
  /// JSON's null.
  public static var null: Expression { .literal(.null) }
  /// No value.
  public static var missing: Expression { .literal(.missing) }
  /// NOT.
  public static func not(_ operand: Expression) -> Expression { .unary(.not, operand) }
  /// A minus before.
  public static func negated(_ operand: Expression) -> Expression { .unary(.minus, operand) }

  // MARK: Comparing

  /// `=`.
  public func equalTo(_ other: Expression) -> Expression { .binary(.equal, self, other) }
  /// `!=`.
  public func notEqualTo(_ other: Expression) -> Expression { .binary(.notEqual, self, other) }
  /// `<`.
  public func lessThan(_ other: Expression) -> Expression { .binary(.less, self, other) }
  /// `<=`.
  public func lessThanOrEqualTo(_ other: Expression) -> Expression { .binary(.lessOrEqual, self, other) }
  /// `>`.
  public func greaterThan(_ other: Expression) -> Expression { .binary(.greater, self, other) }
  /// `>=`.
  public func greaterThanOrEqualTo(_ other: Expression) -> Expression {
    .binary(.greaterOrEqual, self, other)
  }
  /// `IS`: equality that holds for null and missing as well.
  public func `is`(_ other: Expression) -> Expression { .binary(.identical, self, other) }
  /// `IS NOT`.
  public func isNot(_ other: Expression) -> Expression { .binary(.notIdentical, self, other) }
  /// Between two bounds, both included.
  public func between(_ lower: Expression, and upper: Expression) -> Expression {
    .between(self, lower: lower, upper: upper, negated: false)
  }
  /// Equal to one of them.
  public func `in`(_ values: [Expression]) -> Expression {
    .contained(self, in: .array(values), negated: false)
  }
  /// Equal to an item of an array.
  public func `in`(_ array: Expression) -> Expression { .contained(self, in: array, negated: false) }
  /// `%` stands for any text, `_` for one character; case is ignored.
  public func like(_ pattern: Expression) -> Expression { .like(self, pattern: pattern, negated: false) }
  /// Whether a regular expression is found in it; case counts.
  public func regex(_ pattern: Expression) -> Expression {
    .call(FunctionCall("REGEXP_LIKE", [self, pattern]))
  }
  /// How the comparisons inside order text.
  public func collate(_ collation: Collation) -> Expression { .collate(self, collation) }

  // MARK: Null and missing

  /// `IS NULL`.
  public func isNull() -> Expression { .test(self, .null, negated: false) }
  /// `IS MISSING`.
  public func isMissing() -> Expression { .test(self, .missing, negated: false) }
  /// `IS VALUED`: neither null nor missing.
  public func isValued() -> Expression { .test(self, .valued, negated: false) }
  /// `IS NOT VALUED`.
  public func isNullOrMissing() -> Expression { .test(self, .valued, negated: true) }
  /// `IS VALUED`.
  public func notNullOrMissing() -> Expression { isValued() }

  // MARK: Logic and arithmetic

  /// AND.
  public func and(_ other: Expression) -> Expression { .binary(.and, self, other) }
  /// OR.
  public func or(_ other: Expression) -> Expression { .binary(.or, self, other) }
  /// `+`.
  public func add(_ other: Expression) -> Expression { .binary(.add, self, other) }
  /// `-`.
  public func subtract(_ other: Expression) -> Expression { .binary(.subtract, self, other) }
  /// `*`.
  public func multiply(_ other: Expression) -> Expression { .binary(.multiply, self, other) }
  /// `/`.
  public func divide(_ other: Expression) -> Expression { .binary(.divide, self, other) }
  /// `%`.
  public func modulo(_ other: Expression) -> Expression { .binary(.modulo, self, other) }
  /// `||`.
  public func concatenate(_ other: Expression) -> Expression { .binary(.concatenate, self, other) }

  // Comparisons have the dot of SIMD's, since `==` says whether two trees are the same.

  /// `=`.
  public static func .== (left: Expression, right: Expression) -> Expression { left.equalTo(right) }
  /// `!=`.
  public static func .!= (left: Expression, right: Expression) -> Expression { left.notEqualTo(right) }
  /// `<`.
  public static func .< (left: Expression, right: Expression) -> Expression { left.lessThan(right) }
  /// `<=`.
  public static func .<= (left: Expression, right: Expression) -> Expression { left.lessThanOrEqualTo(right) }
  /// `>`.
  public static func .> (left: Expression, right: Expression) -> Expression { left.greaterThan(right) }
  /// `>=`.
  public static func .>= (left: Expression, right: Expression) -> Expression {
    left.greaterThanOrEqualTo(right)
  }
  /// AND.
  public static func && (left: Expression, right: Expression) -> Expression { left.and(right) }
  /// OR.
  public static func || (left: Expression, right: Expression) -> Expression { left.or(right) }
  /// NOT.
  public static prefix func ! (operand: Expression) -> Expression { .not(operand) }
  /// `+`, of numbers.
  public static func + (left: Expression, right: Expression) -> Expression { left.add(right) }
  /// `-`.
  public static func - (left: Expression, right: Expression) -> Expression { left.subtract(right) }
  /// `*`.
  public static func * (left: Expression, right: Expression) -> Expression { left.multiply(right) }
  /// `/`.
  public static func / (left: Expression, right: Expression) -> Expression { left.divide(right) }
  /// `%`.
  public static func % (left: Expression, right: Expression) -> Expression { left.modulo(right) }
}

extension Collation {
  /// Bytes, of ASCII letters folded when case is ignored.
  public static func ascii(ignoreCase: Bool = false) -> Collation { Collation(ignoresCase: ignoreCase) }

  /// By the Unicode collation algorithm.
  public static func unicode(ignoreCase: Bool = false, ignoreAccents: Bool = false, locale: String? = nil)
    -> Collation
  {
    Collation(
      isUnicode: true, ignoresCase: ignoreCase, ignoresDiacritics: ignoreAccents, locale: locale)
  }
}

extension PathStep {
  /// The steps of a path such as `a.b[0]`.
  static func steps(_ path: String) -> [PathStep] {
    var steps: [PathStep] = []
    var name: [UInt8] = []
    var hasName = false
    // By bytes: a dot that a combining accent follows is no Character of its own.
    var rest = Array(path.utf8)[...]
    func end() {
      if hasName { steps.append(.name(ByteString(name))) }
      name = []
      hasName = false
    }
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "."):
        end()
        hasName = rest.isEmpty || rest.first == UInt8(ascii: ".")
      case UInt8(ascii: "["):
        if let close = rest.firstIndex(of: UInt8(ascii: "]")),
          let index = Int(String(decoding: rest[..<close], as: UTF8.self)), hasName || !steps.isEmpty
        {
          end()
          steps.append(.index(index))
          rest = rest[(close + 1)...]
        } else {
          name.append(byte)
          hasName = true
        }
      default:
        name.append(byte == UInt8(ascii: "\\") ? rest.popFirst() ?? byte : byte)
        hasName = true
      }
    }
    end()
    return steps.isEmpty ? [.name("")] : steps
  }
}
