// The syntax tree of the sources of rows, and of the names that a query gives to values and other queries.

import Storage

/// A source of rows: `FROM name AS alias`, `FROM (SELECT …) AS alias`, `FROM expression AS alias`.
public struct DataSource: Hashable, Sendable {
  /// Where the rows of a source come from.
  public enum Content: Hashable, Sendable {
    /// The documents of the database, or the rows of a name of WITH.
    case named
    /// The items of an array, such as the rows of a query. Another value than an array is one row. A missing
    /// value and null are none.
    case items(QueryExpression)
  }

  /// `_`, the database's name, or a name of WITH. Empty for a source that is an expression.
  public var name: ByteString
  /// The name that expressions use, if it differs from `name`.
  public var alias: ByteString?
  /// Where the rows come from.
  public var content = Content.named
  /// The IDs of the documents that are read (USE KEYS): a string or an array of strings.
  public var keys: QueryExpression?
  /// The names of the indexes that may be used (USE INDEX). Empty means all of them.
  public var indexes: [ByteString] = []
  /// The position of the name.
  public var position: SourcePosition
  /// Creates a source.
  public init(_ name: ByteString, as alias: ByteString?, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.alias = alias
    self.position = position
  }
  /// Creates a source.
  public init(_ name: String = "_", as alias: String? = nil) {
    self.init(ByteString(name), as: alias.map { ByteString($0) })
  }
  /// Creates a source whose rows are the items of an array.
  public init(items: QueryExpression, as alias: ByteString, position: SourcePosition = SourcePosition()) {
    self.init("", as: alias, position: position)
    content = .items(items)
  }
  /// Creates a source whose rows are the items of an array.
  public init(items: QueryExpression, as alias: String) { self.init(items: items, as: ByteString(alias)) }
  /// Creates a source whose rows are those of a query.
  public init(_ query: SelectStatement, as alias: String) { self.init(items: .subquery(query), as: alias) }

  /// The same source, with documents of these IDs only (USE KEYS).
  public func useKeys(_ keys: QueryExpression) -> DataSource {
    var copy = self
    copy.keys = keys
    return copy
  }

  /// The same source, for which only these indexes are used (USE INDEX).
  public func useIndex(_ names: String...) -> DataSource {
    var copy = self
    copy.indexes = names.map { ByteString($0) }
    return copy
  }

  /// The name that expressions use.
  var ownName: ByteString { alias ?? name }
}

/// A name for the value of an expression: `name = expression` in LET and LETTING.
public struct LetBinding: Hashable, Sendable {
  /// The name.
  public var name: ByteString
  /// The value.
  public var value: QueryExpression
  /// The position of the name.
  public var position: SourcePosition
  /// Creates a binding.
  public init(_ name: ByteString, _ value: QueryExpression, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.value = value
    self.position = position
  }
  /// Creates a binding.
  public init(_ name: String, _ value: QueryExpression) { self.init(ByteString(name), value) }
}

/// A name of WITH: `name AS (SELECT …)` or `name AS (expression)`.
public struct WithBinding: Hashable, Sendable {
  /// The name.
  public var name: ByteString
  /// `.subquery` for a query, or another expression.
  public var value: QueryExpression
  /// For a recursive query, the largest number of times that it is evaluated after the first one.
  public var levels: QueryExpression?
  /// For a recursive query, the largest number of rows.
  public var rows: QueryExpression?
  /// The position of the name.
  public var position: SourcePosition
  /// Creates a binding.
  public init(_ name: ByteString, _ value: QueryExpression, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.value = value
    self.position = position
  }
  /// Creates a binding.
  public init(_ name: String, _ value: QueryExpression) { self.init(ByteString(name), value) }
  /// Creates a binding for the rows of a query.
  public init(_ name: String, _ query: SelectStatement) { self.init(name, .subquery(query)) }
}

/// Two queries whose rows are combined.
public indirect enum SetCombination: Hashable, Sendable {
  /// `left UNION right`. With `isAll`, equal rows are returned more than once.
  case combined(SelectStatement, SetOperator, isAll: Bool, SelectStatement)
}

/// How the rows of two queries are combined.
public enum SetOperator: String, Hashable, Sendable, CaseIterable {
  /// The rows of both.
  case union = "UNION"
  /// The rows that both have.
  case intersect = "INTERSECT"
  /// The rows of the left one that the right one doesn't have.
  case except = "EXCEPT"
}
