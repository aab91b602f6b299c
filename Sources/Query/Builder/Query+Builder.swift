// Queries without text: the builder of 2.x in Swift. What it builds is the syntax tree that the parser makes of the
// same query's text.

import Storage

/// One result of a query, as the builder names it.
public typealias SelectResult = ResultColumn

extension Query {
  /// Begins a query.
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

  /// Begins a query whose rows are all different.
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

  /// The source of the documents: the database, which needs no name.
  public func from(_ source: DataSource = DataSource()) -> SelectStatement { changed { $0.source = source } }

  /// Adds JOINs and UNNESTs behind those that are there; see `Join`.
  public func join(_ joins: JoinClause...) -> SelectStatement { changed { $0.joins += joins } }

  /// Keeps only the rows for which it is true.
  public func `where`(_ condition: Expression) -> SelectStatement { changed { $0.condition = condition } }

  /// Makes one row of those that have the same values.
  public func groupBy(_ expressions: Expression...) -> SelectStatement {
    changed { $0.groupBy = expressions }
  }

  /// Keeps only the groups for which it is true.
  public func having(_ condition: Expression) -> SelectStatement { changed { $0.having = condition } }

  /// The order of the rows.
  public func orderBy(_ orderings: Ordering...) -> SelectStatement { changed { $0.orderBy = orderings } }

  /// How many rows there are at most, and how many are left out before them.
  public func limit(_ limit: Expression, offset: Expression? = nil) -> SelectStatement {
    changed {
      $0.limit = limit
      $0.offset = offset
    }
  }
}

extension ResultColumn {
  /// A property by its path, such as `geo.lat`, of the only source or of one by its alias.
  public static func property(_ path: String, from source: String? = nil) -> ResultColumn {
    ResultColumn(.property(path, from: source))
  }

  /// Whatever an expression gives.
  public static func expression(_ expression: Expression) -> ResultColumn { ResultColumn(expression) }

  /// The whole document, of the only source or of one by its alias.
  public static func all(from source: String? = nil) -> ResultColumn { ResultColumn(.all(from: source)) }

  /// The same result under another name.
  public func `as`(_ alias: String) -> ResultColumn { ResultColumn(expression, as: alias) }
}

extension Ordering {
  /// By a property, ascending.
  public static func property(_ path: String, from source: String? = nil) -> Ordering {
    Ordering(.property(path, from: source))
  }

  /// By an expression, ascending.
  public static func expression(_ expression: Expression) -> Ordering { Ordering(expression) }

  /// From the smallest to the greatest.
  public func ascending() -> Ordering { Ordering(expression) }

  /// From the greatest to the smallest.
  public func descending() -> Ordering { Ordering(expression, isDescending: true) }
}

/// Further sources of rows.
public enum Join {
  /// A JOIN that still needs its condition.
  public struct Pending: Sendable {
    fileprivate let kind: JoinKind
    fileprivate let source: DataSource

    /// The rows that go together.
    public func on(_ condition: Expression) -> JoinClause { .join(kind, source, on: condition) }
  }

  /// Only rows that have a partner.
  public static func join(_ source: DataSource) -> Pending { Pending(kind: .inner, source: source) }
  /// Only rows that have a partner.
  public static func innerJoin(_ source: DataSource) -> Pending { Pending(kind: .inner, source: source) }
  /// All rows of the left; where there is no partner its properties are missing.
  public static func leftJoin(_ source: DataSource) -> Pending { Pending(kind: .leftOuter, source: source) }
  /// All rows of the left; where there is no partner its properties are missing.
  public static func leftOuterJoin(_ source: DataSource) -> Pending { leftJoin(source) }
  /// Each row with each document.
  public static func crossJoin(_ source: DataSource) -> JoinClause { .join(.cross, source, on: nil) }
  /// A row for each item of an array; with `isLeftOuter` one too for those without items.
  public static func unnest(_ array: Expression, as alias: String, isLeftOuter: Bool = false) -> JoinClause {
    .unnest(array, as: ByteString(alias), isLeftOuter: isLeftOuter)
  }
}
