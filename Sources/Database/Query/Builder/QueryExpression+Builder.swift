// The builder's expressions: literals, properties, parameters, comparisons. There is no nil literal, because
// nil would silently become NULL where an optional expression is expected. Write `.null`.

import Storage

extension QueryExpression: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral
{
  /// A string literal. It is never a property name.
  public init(stringLiteral value: String) { self = .literal(.string(value)) }
  /// An integer literal.
  public init(integerLiteral value: Int64) { self = .literal(.int(value)) }
  /// A double literal. NaN and infinity become null.
  public init(floatLiteral value: Double) { self = .double(value) }
  /// A boolean literal.
  public init(booleanLiteral value: Bool) { self = .literal(.bool(value)) }
  /// An array of expressions.
  public init(arrayLiteral elements: QueryExpression...) { self = .array(elements) }
}

extension QueryExpression {
  /// A property by its path, such as `geo.lat` or `reviews[0].author`, of the only source or of the source
  /// with an alias.
  ///
  /// A backslash makes the next character, such as a dot, part of the name. Brackets without an integer are
  /// part of the name too.
  public static func property(_ path: String, from source: String? = nil) -> QueryExpression {
    .property(PropertyReference((source.map { [.name($0)] } ?? []) + PathStep.steps(path)))
  }

  /// The whole document, of the only source or of the source with an alias. `Function.count(.all())` counts
  /// rows.
  public static func all(from source: String? = nil) -> QueryExpression {
    .star(source: source.map { SourceName($0) })
  }

  /// The value of a parameter, by its name without the `$`.
  public static func parameter(_ name: String) -> QueryExpression { .parameter(ByteString(name)) }
  /// A string literal.
  public static func string(_ value: String) -> QueryExpression { .literal(.string(value)) }
  /// An integer literal.
  public static func int(_ value: Int) -> QueryExpression { .literal(.int(Int64(value))) }
  /// A double literal. NaN and infinity become null, because documents can't hold them.
  public static func double(_ value: Double) -> QueryExpression {
    .literal(value.isFinite ? .double(value) : .null)
  }
  /// A boolean literal.
  public static func boolean(_ value: Bool) -> QueryExpression { .literal(.bool(value)) }
  /// The JSON value null.
  public static var null: QueryExpression { .literal(.null) }
  /// The value MISSING: no value.
  public static var missing: QueryExpression { .literal(.missing) }
  /// Logical NOT.
  public static func not(_ operand: QueryExpression) -> QueryExpression { .unary(.not, operand) }
  /// Arithmetic negation.
  public static func negated(_ operand: QueryExpression) -> QueryExpression { .unary(.minus, operand) }

  // MARK: Comparing

  /// `=`: equal.
  public func equalTo(_ other: QueryExpression) -> QueryExpression { .binary(.equal, self, other) }
  /// `!=`: not equal.
  public func notEqualTo(_ other: QueryExpression) -> QueryExpression { .binary(.notEqual, self, other) }
  /// `<`: less than.
  public func lessThan(_ other: QueryExpression) -> QueryExpression { .binary(.less, self, other) }
  /// `<=`: less than or equal.
  public func lessThanOrEqualTo(_ other: QueryExpression) -> QueryExpression {
    .binary(.lessOrEqual, self, other)
  }
  /// `>`: greater than.
  public func greaterThan(_ other: QueryExpression) -> QueryExpression { .binary(.greater, self, other) }
  /// `>=`: greater than or equal.
  public func greaterThanOrEqualTo(_ other: QueryExpression) -> QueryExpression {
    .binary(.greaterOrEqual, self, other)
  }
  /// `IS`: equality that also compares null and missing.
  public func `is`(_ other: QueryExpression) -> QueryExpression { .binary(.identical, self, other) }
  /// `IS NOT`: the opposite of `IS`.
  public func isNot(_ other: QueryExpression) -> QueryExpression { .binary(.notIdentical, self, other) }
  /// `BETWEEN`: whether the value lies between two bounds. Both bounds are included.
  public func between(_ lower: QueryExpression, and upper: QueryExpression) -> QueryExpression {
    .between(self, lower: lower, upper: upper, negated: false)
  }
  /// `IN`: whether the value equals one of several values.
  public func `in`(_ values: [QueryExpression]) -> QueryExpression {
    .contained(self, in: .array(values), negated: false)
  }
  /// `IN`: whether the value equals an item of an array.
  public func `in`(_ array: QueryExpression) -> QueryExpression {
    .contained(self, in: array, negated: false)
  }
  /// `LIKE`: whether a string matches a pattern. In it, `%` is any text and `_` one character. Case is
  /// ignored, unless a collation says otherwise.
  public func like(_ pattern: QueryExpression) -> QueryExpression {
    .like(self, pattern: pattern, negated: false)
  }
  /// `REGEXP_LIKE`: whether a regular expression matches some part of a string. Case-sensitive.
  public func regex(_ pattern: QueryExpression) -> QueryExpression {
    .call(FunctionCall("REGEXP_LIKE", [self, pattern]))
  }
  /// `COLLATE`: sets how the comparisons inside this expression order text.
  public func collate(_ collation: Collation) -> QueryExpression { .collate(self, collation) }

  // MARK: Null and missing

  /// `IS NULL`.
  public func isNull() -> QueryExpression { .test(self, .null, negated: false) }
  /// `IS MISSING`.
  public func isMissing() -> QueryExpression { .test(self, .missing, negated: false) }
  /// `IS VALUED`: neither null nor missing.
  public func isValued() -> QueryExpression { .test(self, .valued, negated: false) }
  /// `IS NOT VALUED`: null or missing.
  public func isNullOrMissing() -> QueryExpression { .test(self, .valued, negated: true) }
  /// `IS VALUED`: neither null nor missing. The same as `isValued()`.
  public func notNullOrMissing() -> QueryExpression { isValued() }

  // MARK: Logic and arithmetic

  /// Logical AND.
  public func and(_ other: QueryExpression) -> QueryExpression { .binary(.and, self, other) }
  /// Logical OR.
  public func or(_ other: QueryExpression) -> QueryExpression { .binary(.or, self, other) }
  /// `+`: addition.
  public func add(_ other: QueryExpression) -> QueryExpression { .binary(.add, self, other) }
  /// `-`: subtraction.
  public func subtract(_ other: QueryExpression) -> QueryExpression { .binary(.subtract, self, other) }
  /// `*`: multiplication.
  public func multiply(_ other: QueryExpression) -> QueryExpression { .binary(.multiply, self, other) }
  /// `/`: division.
  public func divide(_ other: QueryExpression) -> QueryExpression { .binary(.divide, self, other) }
  /// `%`: remainder.
  public func modulo(_ other: QueryExpression) -> QueryExpression { .binary(.modulo, self, other) }
  /// `||`: concatenation.
  public func concatenate(_ other: QueryExpression) -> QueryExpression { .binary(.concatenate, self, other) }
}

extension Collation {
  /// Compares text by its bytes. With `ignoreCase`, ASCII letters are folded first.
  public static func ascii(ignoreCase: Bool = false) -> Collation { Collation(ignoresCase: ignoreCase) }

  /// Compares text by the Unicode collation algorithm.
  public static func unicode(ignoreCase: Bool = false, ignoreAccents: Bool = false, locale: String? = nil)
    -> Collation
  {
    Collation(
      isUnicode: true, ignoresCase: ignoreCase, ignoresDiacritics: ignoreAccents, locale: locale)
  }
}

extension PathStep {
  /// Splits a path such as `a.b[0]` into steps.
  static func steps(_ path: String) -> [PathStep] {
    var steps: [PathStep] = []
    var name: [UInt8] = []
    var hasName = false
    // Splits by bytes: a dot followed by a combining accent isn't a Character of its own.
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
