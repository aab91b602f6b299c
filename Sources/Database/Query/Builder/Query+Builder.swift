// The query builder, modelled on the one of version 2.x. It builds the same syntax tree that the parser makes
// from the text of the same query.

import Storage

/// A result column, by the name that the builder uses for it.
public typealias SelectResult = ResultColumn

extension Query {
  /// Begins a query with its result columns.
  ///
  /// ```swift
  /// let hotels = Query.select(.expression(Meta.id), .property("name"))
  ///   .from(DataSource("_"))
  ///   .where(.property("type") .== "hotel")
  ///   .orderBy(.property("name"))
  ///   .limit(10)
  /// for row in try travel.query(hotels).run() { print(row["name"].string ?? "-") }
  /// ```
  public static func select(_ results: SelectResult...) -> SelectStatement {
    SelectStatement(results: results)
  }

  /// Begins a query that returns each different row once (SELECT DISTINCT).
  public static func selectDistinct(_ results: SelectResult...) -> SelectStatement {
    SelectStatement(isDistinct: true, results: results)
  }
}

extension SelectStatement {
  private func changed(_ change: (inout SelectStatement) -> Void) -> SelectStatement {
    var copy = self
    change(&copy)
    return copy
  }

  /// Sets the source of the documents. The default is the database, which needs no name.
  public func from(_ source: DataSource = DataSource()) -> SelectStatement { changed { $0.source = source } }

  /// Adds JOINs and UNNESTs after the existing ones. See `Join`.
  public func join(_ joins: JoinClause...) -> SelectStatement { changed { $0.joins += joins } }

  /// Keeps only the rows for which the condition is true.
  public func `where`(_ condition: QueryExpression) -> SelectStatement {
    changed { $0.condition = condition }
  }

  /// Groups the rows by the values of these expressions. Each group becomes one row.
  public func groupBy(_ expressions: QueryExpression...) -> SelectStatement {
    changed {
      $0.groupBy = expressions
      $0.groupingSets = []
    }
  }

  /// Groups the rows once for each of these sets of expressions (GROUPING SETS). An expression that isn't in the set of a
  /// group is null there. At most 256 sets.
  public func groupBy(sets: [[QueryExpression]]) -> SelectStatement { changed { $0.setGroups(sets) } }

  /// Groups the rows by all of the expressions, then by all but the last one, and so on, and all in one group (ROLLUP). At most
  /// 255 expressions.
  public func groupBy(rollup expressions: QueryExpression...) -> SelectStatement {
    groupBy(sets: GroupingSets.rollup(expressions.map { [$0] }))
  }

  /// Groups the rows by each selection of the expressions (CUBE), of which there are at most 8.
  public func groupBy(cube expressions: QueryExpression...) -> SelectStatement {
    groupBy(sets: expressions.count > 8 ? [[]] : GroupingSets.cube(expressions.map { [$0] }))
  }

  /// Keeps only the groups for which the condition is true.
  public func having(_ condition: QueryExpression) -> SelectStatement { changed { $0.having = condition } }

  /// Sets the order of the rows.
  public func orderBy(_ orderings: Ordering...) -> SelectStatement { changed { $0.orderBy = orderings } }

  /// Sets the maximum number of rows, and how many rows are skipped before them.
  public func limit(_ limit: QueryExpression, offset: QueryExpression? = nil) -> SelectStatement {
    changed {
      $0.limit = limit
      $0.offset = offset
    }
  }
}

extension ResultColumn {
  /// A property by its path, such as `geo.lat`, of the only source or of the source with an alias.
  public static func property(_ path: String, from source: String? = nil) -> ResultColumn {
    ResultColumn(.property(path, from: source))
  }

  /// The value of an expression.
  public static func expression(_ expression: QueryExpression) -> ResultColumn { ResultColumn(expression) }

  /// The whole document, of the only source or of the source with an alias.
  public static func all(from source: String? = nil) -> ResultColumn { ResultColumn(.all(from: source)) }

  /// The same result column with another name.
  public func `as`(_ alias: String) -> ResultColumn { ResultColumn(expression, as: alias) }
}

extension Ordering {
  /// Orders by a property, ascending.
  public static func property(_ path: String, from source: String? = nil) -> Ordering {
    Ordering(.property(path, from: source))
  }

  /// Orders by an expression, ascending.
  public static func expression(_ expression: QueryExpression) -> Ordering { Ordering(expression) }

  /// The same term, from the smallest to the greatest value.
  public func ascending() -> Ordering { Ordering(expression) }

  /// The same term, from the greatest to the smallest value.
  public func descending() -> Ordering { Ordering(expression, isDescending: true) }
}

/// JOINs and UNNESTs, which add further sources of rows.
public enum Join {
  /// A JOIN without its condition.
  public struct Pending: Sendable {
    let kind: JoinKind
    let source: DataSource

    /// Sets the condition that joined rows have to meet.
    public func on(_ condition: QueryExpression) -> JoinClause { .join(kind, source, on: condition) }
  }

  /// JOIN: only rows that have a match.
  public static func join(_ source: DataSource) -> Pending { Pending(kind: .inner, source: source) }
  /// INNER JOIN: only rows that have a match.
  public static func innerJoin(_ source: DataSource) -> Pending { Pending(kind: .inner, source: source) }
  /// LEFT JOIN: all rows of the left side. Without a match, the properties of the right side are missing.
  public static func leftJoin(_ source: DataSource) -> Pending { Pending(kind: .leftOuter, source: source) }
  /// LEFT OUTER JOIN: the same as `leftJoin`.
  public static func leftOuterJoin(_ source: DataSource) -> Pending { leftJoin(source) }
  /// CROSS JOIN: each row with each document.
  public static func crossJoin(_ source: DataSource) -> JoinClause { .join(.cross, source, on: nil) }
  /// UNNEST: one row for each item of an array. With `isLeftOuter`, an array without items gives one row too.
  public static func unnest(_ array: QueryExpression, as alias: String, isLeftOuter: Bool = false)
    -> JoinClause
  {
    .unnest(array, as: ByteString(alias), isLeftOuter: isLeftOuter)
  }
}
