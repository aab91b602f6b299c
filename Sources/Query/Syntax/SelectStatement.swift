// The syntax tree of a query: its clauses. The grammar is in docs/query.md.

import Storage

/// What a text asks for: a query's rows, or how they would be found.
public enum Statement: Hashable, Sendable {
  case select(SelectStatement)
  /// `EXPLAIN SELECT …`; with ANALYZE the query is run, and the plan tells rows and times.
  case explain(SelectStatement, analyze: Bool)
}

/// The syntax tree of a whole query.
public struct SelectStatement: Hashable, Sendable {
  /// Whether equal rows come once.
  public var isDistinct: Bool
  /// What a row consists of, one at least.
  public var results: [ResultColumn]
  /// Nil for a query without FROM: one row, and no properties.
  public var source: DataSource?
  /// JOIN and UNNEST clauses in their order.
  public var joins: [JoinClause]
  /// WHERE.
  public var condition: Expression?
  /// GROUP BY; empty without one.
  public var groupBy: [Expression]
  /// HAVING.
  public var having: Expression?
  /// ORDER BY; empty without one.
  public var orderBy: [Ordering]
  /// LIMIT.
  public var limit: Expression?
  /// OFFSET.
  public var offset: Expression?

  /// A query of those clauses.
  public init(
    isDistinct: Bool = false, results: [ResultColumn], source: DataSource? = nil, joins: [JoinClause] = [],
    condition: Expression? = nil, groupBy: [Expression] = [], having: Expression? = nil,
    orderBy: [Ordering] = [], limit: Expression? = nil, offset: Expression? = nil
  ) {
    self.isDistinct = isDistinct
    self.results = results
    self.source = source
    self.joins = joins
    self.condition = condition
    self.groupBy = groupBy
    self.having = having
    self.orderBy = orderBy
    self.limit = limit
    self.offset = offset
  }
}

/// `expression AS alias`.
public struct ResultColumn: Hashable, Sendable {
  /// What gives the value.
  public var expression: Expression
  /// The column's name, when one was given.
  public var alias: ByteString?
  /// Of the alias if there is one, else of the expression.
  public var position: SourcePosition
  /// A result.
  public init(
    _ expression: Expression, as alias: ByteString?, position: SourcePosition = SourcePosition()
  ) {
    self.expression = expression
    self.alias = alias
    self.position = position
  }
  /// A result.
  public init(_ expression: Expression, as alias: String? = nil) {
    self.init(expression, as: alias.map { ByteString($0) })
  }
}

/// `FROM name AS alias`. The name is `_` or the database's own.
public struct DataSource: Hashable, Sendable {
  /// `_`, or the database's name.
  public var name: ByteString
  /// What expressions call it, when that isn't its name.
  public var alias: ByteString?
  /// Of the name.
  public var position: SourcePosition
  /// A source of that name.
  public init(_ name: ByteString, as alias: ByteString?, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.alias = alias
    self.position = position
  }
  /// A source of that name.
  public init(_ name: String = "_", as alias: String? = nil) {
    self.init(ByteString(name), as: alias.map { ByteString($0) })
  }

  /// What expressions call it.
  var ownName: ByteString { alias ?? name }
}

/// One clause that adds to the rows.
public enum JoinClause: Hashable, Sendable {
  /// `INNER JOIN source ON condition`; CROSS has no condition.
  case join(JoinKind, DataSource, on: Expression?)
  /// `UNNEST expression AS alias`: a row for each item of an array.
  case unnest(Expression, as: ByteString, isLeftOuter: Bool)
}

/// Which rows without a partner stay.
public enum JoinKind: String, Hashable, Sendable, CaseIterable {
  case inner = "INNER"
  case leftOuter = "LEFT OUTER"
  case cross = "CROSS"
}

/// `expression DESC`.
public struct Ordering: Hashable, Sendable {
  /// What is ordered by.
  public var expression: Expression
  /// Whether the greatest comes first.
  public var isDescending: Bool
  /// An ordering, ascending unless said otherwise.
  public init(_ expression: Expression, isDescending: Bool = false) {
    self.expression = expression
    self.isDescending = isDescending
  }
}
