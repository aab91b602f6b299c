// The syntax tree of a query's clauses. The grammar is in docs/query.md.

import Storage

/// What a text asks for: the rows of a query, or its plan.
package enum QueryStatement: Hashable, Sendable {
  /// `SELECT …`: the rows of a query.
  case select(SelectStatement)
  /// `EXPLAIN SELECT …`: the plan of a query. With ANALYZE the query is also run, and the plan shows rows and
  /// times.
  case explain(SelectStatement, analyze: Bool)
  /// `ADVISE SELECT …`: which indexes would serve a query.
  case advise(SelectStatement)
  /// A statement that changes documents.
  case change(ChangeStatement)
  /// A statement about indexes.
  case index(IndexStatement)
  /// `INFER _`: a schema of the documents.
  case infer(InferStatement)
  /// `PREPARE name AS statement`: gives a statement a name. Nil makes one.
  indirect case prepare(name: ByteString?, replaces: Bool, QueryStatement)
  /// `EXECUTE name USING values`: runs a statement by its name.
  case execute(SourceName, using: QueryExpression?)
}

/// The syntax tree of a query.
public struct SelectStatement: Hashable, Sendable {
  /// The names that WITH gives to queries and values. They can be used in all clauses.
  public var with: [WithBinding] = []
  /// Whether a name of WITH may be used in its own query (WITH RECURSIVE).
  public var isRecursive = false
  /// The queries whose rows UNION, INTERSECT or EXCEPT combine. Such a statement has no results, source or
  /// conditions of its own. Its ORDER BY, LIMIT and OFFSET apply to the combined rows.
  public var combination: SetCombination?
  /// Whether equal rows are returned once.
  public var isDistinct: Bool
  /// Whether a row is the value of the only result, and not an object (SELECT RAW, VALUE, ELEMENT).
  public var isRaw = false
  /// The result columns. There is at least one.
  public var results: [ResultColumn]
  /// The paths that are left out of the results (EXCLUDE).
  public var excluded: [PropertyReference] = []
  /// The source of FROM. Nil for a query without FROM, which returns one row and has no properties.
  public var source: DataSource?
  /// The JOIN and UNNEST clauses, in order.
  public var joins: [JoinClause]
  /// The names that LET gives to values of a row, in order.
  public var lets: [LetBinding] = []
  /// The condition of WHERE.
  public var condition: QueryExpression?
  /// The expressions of GROUP BY. Empty without the clause.
  public var groupBy: [QueryExpression]
  /// The grouping sets, each as the numbers of its expressions of GROUP BY (ROLLUP, CUBE, GROUPING SETS). Empty for a
  /// GROUP BY of all its expressions.
  public var groupingSets: [[Int]] = []
  /// The aliases of expressions of GROUP BY, by their number.
  public var groupNames: [Int: ByteString] = [:]
  /// The name of the array of a group's rows (GROUP AS).
  public var groupArray: ByteString?
  /// The names that LETTING gives to values of a group, in order.
  public var letting: [LetBinding] = []
  /// The condition of HAVING.
  public var having: QueryExpression?
  /// The windows of the WINDOW clause. Empty without the clause.
  public var windows: [NamedWindow] = []
  /// The terms of ORDER BY. Empty without the clause.
  public var orderBy: [Ordering]
  /// The value of LIMIT.
  public var limit: QueryExpression?
  /// The value of OFFSET.
  public var offset: QueryExpression?

  /// Creates a query from its clauses.
  public init(
    isDistinct: Bool = false, results: [ResultColumn], source: DataSource? = nil, joins: [JoinClause] = [],
    condition: QueryExpression? = nil, groupBy: [QueryExpression] = [], having: QueryExpression? = nil,
    orderBy: [Ordering] = [], limit: QueryExpression? = nil, offset: QueryExpression? = nil
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

/// A result column: `expression AS alias`.
public struct ResultColumn: Hashable, Sendable {
  /// The expression for the value.
  public var expression: QueryExpression
  /// The name of the column, if one was given.
  public var alias: ByteString?
  /// The position of the alias, or of the expression if there is no alias.
  public var position: SourcePosition
  /// Creates a result column.
  public init(
    _ expression: QueryExpression, as alias: ByteString?, position: SourcePosition = SourcePosition()
  ) {
    self.expression = expression
    self.alias = alias
    self.position = position
  }
  /// Creates a result column.
  public init(_ expression: QueryExpression, as alias: String? = nil) {
    self.init(expression, as: alias.map { ByteString($0) })
  }
}

/// A JOIN, NEST or UNNEST clause.
public enum JoinClause: Hashable, Sendable {
  /// `INNER JOIN source ON condition`. CROSS JOIN has no condition.
  case join(JoinKind, DataSource, on: QueryExpression?)
  /// `NEST source ON condition`: the matches of a row are one array.
  case nest(DataSource, on: QueryExpression, isLeftOuter: Bool)
  /// `UNNEST expression AS alias`: one row for each item of an array.
  case unnest(QueryExpression, as: ByteString, isLeftOuter: Bool)
}

/// The kind of a join. It decides whether rows without a match stay.
public enum JoinKind: String, Hashable, Sendable, CaseIterable {
  case inner = "INNER"
  case leftOuter = "LEFT OUTER"
  case rightOuter = "RIGHT OUTER"
  case fullOuter = "FULL OUTER"
  case cross = "CROSS"
}

/// A term of ORDER BY: `expression DESC`.
public struct Ordering: Hashable, Sendable {
  /// The expression to order by.
  public var expression: QueryExpression
  /// Whether the greatest value comes first.
  public var isDescending: Bool
  /// Where null and missing values stand. Nil puts them first, or last if the greatest value comes first.
  public var nulls: NullsOrder?
  /// Creates a term. The default is ascending.
  public init(_ expression: QueryExpression, isDescending: Bool = false, nulls: NullsOrder? = nil) {
    self.expression = expression
    self.isDescending = isDescending
    self.nulls = nulls
  }
}
