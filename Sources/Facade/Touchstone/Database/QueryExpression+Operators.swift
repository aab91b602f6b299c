// The query builder's operators. They are declared in the module that an app imports: a type that is exported from
// another module doesn't bring its operators along.

import Query

extension QueryExpression {
  // The comparisons have a dot, as SIMD's do, because `==` compares two syntax trees.

  /// `=`: equal.
  public static func .== (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.equalTo(right)
  }
  /// `!=`: not equal.
  public static func .!= (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.notEqualTo(right)
  }
  /// `<`: less than.
  public static func .< (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.lessThan(right)
  }
  /// `<=`: less than or equal.
  public static func .<= (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.lessThanOrEqualTo(right)
  }
  /// `>`: greater than.
  public static func .> (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.greaterThan(right)
  }
  /// `>=`: greater than or equal.
  public static func .>= (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.greaterThanOrEqualTo(right)
  }
  /// Logical AND.
  public static func && (left: QueryExpression, right: QueryExpression) -> QueryExpression { left.and(right) }
  /// Logical OR.
  public static func || (left: QueryExpression, right: QueryExpression) -> QueryExpression { left.or(right) }
  /// Logical NOT.
  public static prefix func ! (operand: QueryExpression) -> QueryExpression { .not(operand) }
  /// `+`: addition of numbers. It doesn't concatenate strings.
  public static func + (left: QueryExpression, right: QueryExpression) -> QueryExpression { left.add(right) }
  /// `-`: subtraction.
  public static func - (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.subtract(right)
  }
  /// `*`: multiplication.
  public static func * (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.multiply(right)
  }
  /// `/`: division.
  public static func / (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.divide(right)
  }
  /// `%`: remainder.
  public static func % (left: QueryExpression, right: QueryExpression) -> QueryExpression {
    left.modulo(right)
  }
}
