// The syntax tree of a query: its clauses. The grammar is in docs/query.md.

/// What a text asks for: a query's rows, or how they would be found.
public enum Statement: Hashable, Sendable {
  case select(SelectStatement)
  /// `EXPLAIN SELECT …`; with ANALYZE the query is run, and the plan tells rows and times.
  case explain(SelectStatement, analyze: Bool)
}

/// The syntax tree of a whole query.
public struct SelectStatement: Hashable, Sendable {
  public var isDistinct: Bool
  public var results: [ResultColumn]
  /// Nil for a query without FROM: one row, and no properties.
  public var source: DataSource?
  /// JOIN and UNNEST clauses in their order.
  public var joins: [JoinClause]
  public var condition: Expression?
  public var groupBy: [Expression]
  public var having: Expression?
  public var orderBy: [Ordering]
  public var limit: Expression?
  public var offset: Expression?

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
  public var expression: Expression
  public var alias: String?
  /// Of the alias if there is one, else of the expression.
  public var position: SourcePosition
  public init(
    _ expression: Expression, as alias: String? = nil, position: SourcePosition = SourcePosition()
  ) {
    self.expression = expression
    self.alias = alias
    self.position = position
  }
}

/// `FROM name AS alias`. The name is `_` or the database's own.
public struct DataSource: Hashable, Sendable {
  public var name: String
  public var alias: String?
  public var position: SourcePosition
  public init(_ name: String = "_", as alias: String? = nil, position: SourcePosition = SourcePosition()) {
    self.name = name
    self.alias = alias
    self.position = position
  }
}

/// One clause that adds to the rows.
public enum JoinClause: Hashable, Sendable {
  /// `INNER JOIN source ON condition`; CROSS has no condition.
  case join(JoinKind, DataSource, on: Expression?)
  /// `UNNEST expression AS alias`: a row for each item of an array.
  case unnest(Expression, as: String, isLeftOuter: Bool)
}

public enum JoinKind: String, Hashable, Sendable, CaseIterable {
  case inner = "INNER"
  case leftOuter = "LEFT OUTER"
  case cross = "CROSS"
}

/// `expression DESC`.
public struct Ordering: Hashable, Sendable {
  public var expression: Expression
  public var isDescending: Bool
  public init(_ expression: Expression, isDescending: Bool = false) {
    self.expression = expression
    self.isDescending = isDescending
  }
}
