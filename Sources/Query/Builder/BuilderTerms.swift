// The rest of the builder's words: arrays, META and full text.

import Storage

/// Functions over arrays.
public enum ArrayFunction {
  /// ARRAY_CONTAINS.
  public static func contains(_ array: Expression, value: Expression) -> Expression {
    Function.call("ARRAY_CONTAINS", [array, value])
  }
  /// ARRAY_LENGTH.
  public static func length(_ array: Expression) -> Expression { Function.call("ARRAY_LENGTH", [array]) }
}

/// ANY and EVERY: a condition on the items of an array.
public enum ArrayExpression {
  /// Knows its variable, and needs its array.
  public struct Range: Sendable {
    fileprivate let quantifier: Quantifier
    fileprivate let variable: ByteString

    /// The array that the variable goes through.
    public func `in`(_ array: Expression) -> Over { Over(range: self, array: array) }
  }

  /// Knows its array, and needs its condition.
  public struct Over: Sendable {
    fileprivate let range: Range
    fileprivate let array: Expression

    /// The condition, in which the variable is a property (`ArrayExpression.variable`).
    public func satisfies(_ condition: Expression) -> Expression {
      .quantified(range.quantifier, variable: range.variable, in: array, satisfies: condition)
    }
  }

  /// True when an item satisfies the condition.
  public static func any(_ variable: String) -> Range {
    Range(quantifier: .any, variable: ByteString(variable))
  }
  /// True when no item fails.
  public static func every(_ variable: String) -> Range {
    Range(quantifier: .every, variable: ByteString(variable))
  }
  /// True when no item fails and there is one.
  public static func anyAndEvery(_ variable: String) -> Range {
    Range(quantifier: .anyAndEvery, variable: ByteString(variable))
  }
  /// The item, or by a path such as `review.ratings.Overall` what is in it.
  public static func variable(_ path: String) -> Expression { .property(path) }
}

/// What the database knows of a document, besides its properties.
public enum Meta {
  /// Its ID.
  public static var id: Expression { id(from: nil) }
  /// The sequence of its last change.
  public static var sequence: Expression { sequence(from: nil) }
  /// Its revision ID.
  public static var revisionID: Expression { .meta(source: nil, .revisionID) }
  /// Whether it is deleted.
  public static var isDeleted: Expression { .meta(source: nil, .deleted) }
  /// When it expires, in milliseconds since 1970; missing when it doesn't.
  public static var expiration: Expression { .meta(source: nil, .expiration) }
  /// The ID of a source's document, by the source's alias.
  public static func id(from source: String?) -> Expression {
    .meta(source: source.map { SourceName($0) }, .id)
  }
  /// The sequence of a source's document, by the source's alias.
  public static func sequence(from source: String?) -> Expression {
    .meta(source: source.map { SourceName($0) }, .sequence)
  }
}

/// A search in a full-text index.
public struct FullTextExpression: Sendable {
  private let index: IndexReference

  /// In an index by its name, of the only source or of one by its alias.
  public static func index(_ name: String, from source: String? = nil) -> FullTextExpression {
    FullTextExpression(index: IndexReference(name, source: source))
  }

  /// Whether a document matches.
  public func match(_ query: Expression) -> Expression { .match(index, query) }
  /// How well it does.
  public func rank() -> Expression { .rank(index) }
}
