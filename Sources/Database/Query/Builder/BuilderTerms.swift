// The builder's expressions for arrays, META and full-text search.

import Storage

/// Functions over arrays.
public enum ArrayFunction {
  /// ARRAY_CONTAINS: whether an array has an item equal to a value.
  public static func contains(_ array: QueryExpression, value: QueryExpression) -> QueryExpression {
    Function.call("ARRAY_CONTAINS", [array, value])
  }
  /// ARRAY_LENGTH: the number of items of an array.
  public static func length(_ array: QueryExpression) -> QueryExpression {
    Function.call("ARRAY_LENGTH", [array])
  }
}

/// ANY and EVERY: a condition on the items of an array.
public enum ArrayExpression {
  /// A quantifier and its variable, without the array.
  public struct Range: Sendable {
    fileprivate let quantifier: Quantifier
    fileprivate let variable: ByteString

    /// Sets the array that the variable iterates over.
    public func `in`(_ array: QueryExpression) -> Over { Over(range: self, array: array) }
  }

  /// A quantifier, its variable and its array, without the condition.
  public struct Over: Sendable {
    fileprivate let range: Range
    fileprivate let array: QueryExpression

    /// Sets the condition. Inside it the variable is a property (`ArrayExpression.variable`).
    public func satisfies(_ condition: QueryExpression) -> QueryExpression {
      .quantified(range.quantifier, variable: range.variable, in: array, satisfies: condition)
    }
  }

  /// ANY: true when an item satisfies the condition.
  public static func any(_ variable: String) -> Range {
    Range(quantifier: .any, variable: ByteString(variable))
  }
  /// EVERY: true when no item fails the condition. It is true for an empty array.
  public static func every(_ variable: String) -> Range {
    Range(quantifier: .every, variable: ByteString(variable))
  }
  /// ANY AND EVERY: true when the array has items and none fails the condition.
  public static func anyAndEvery(_ variable: String) -> Range {
    Range(quantifier: .anyAndEvery, variable: ByteString(variable))
  }
  /// The item that a variable stands for, or a value inside it, by a path such as `review.ratings.Overall`.
  public static func variable(_ path: String) -> QueryExpression { .property(path) }
}

/// The metadata of a document.
public enum Meta {
  /// The document's ID.
  public static var id: QueryExpression { id(from: nil) }
  /// The sequence of the document's last change.
  public static var sequence: QueryExpression { sequence(from: nil) }
  /// The revision ID.
  public static var revisionID: QueryExpression { .meta(source: nil, .revisionID) }
  /// Whether the document is deleted.
  public static var isDeleted: QueryExpression { .meta(source: nil, .deleted) }
  /// The expiration time, in milliseconds since 1970. Missing when the document doesn't expire.
  public static var expiration: QueryExpression { .meta(source: nil, .expiration) }
  /// The ID of the document of one source, by the source's alias.
  public static func id(from source: String?) -> QueryExpression {
    .meta(source: source.map { SourceName($0) }, .id)
  }
  /// The sequence of the document of one source, by the source's alias.
  public static func sequence(from source: String?) -> QueryExpression {
    .meta(source: source.map { SourceName($0) }, .sequence)
  }
}

/// A search in a full-text index.
public struct FullTextExpression: Sendable {
  private let index: IndexReference

  /// Names an index of the only source, or of the source with an alias.
  public static func index(_ name: String, from source: String? = nil) -> FullTextExpression {
    FullTextExpression(index: IndexReference(name, source: source))
  }

  /// MATCH: whether the document matches a full-text query.
  public func match(_ query: QueryExpression) -> QueryExpression { .match(index, query) }
  /// RANK: how well the document matches. Larger is better.
  public func rank() -> QueryExpression { .rank(index) }
}
