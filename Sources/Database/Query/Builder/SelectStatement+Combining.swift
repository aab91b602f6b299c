// The query builder: queries inside queries, sets, and names for values.

import Storage

extension Query {
  /// Begins a query whose rows are the values of an expression, and not objects (SELECT RAW).
  public static func selectRaw(_ value: QueryExpression) -> SelectStatement {
    var statement = SelectStatement(results: [ResultColumn(value)])
    statement.isRaw = true
    return statement
  }
}

extension SelectStatement {
  private func changed(_ change: (inout SelectStatement) -> Void) -> SelectStatement {
    var copy = self
    change(&copy)
    return copy
  }

  /// Gives names to values of each row (LET). A value can use the names before it.
  public func `let`(_ bindings: LetBinding...) -> SelectStatement { changed { $0.lets += bindings } }

  /// Gives names to values of each group (LETTING).
  public func letting(_ bindings: LetBinding...) -> SelectStatement { changed { $0.letting += bindings } }

  /// Gives names to queries and values (WITH). The query and later bindings can use them.
  public func with(_ bindings: WithBinding..., recursive isRecursive: Bool = false) -> SelectStatement {
    changed {
      $0.with += bindings
      $0.isRecursive = $0.isRecursive || isRecursive
    }
  }

  /// Leaves properties out of the results (EXCLUDE).
  public func excluding(_ paths: String...) -> SelectStatement {
    changed {
      for case .property(let path) in paths.map({ QueryExpression.property($0) }) { $0.excluded.append(path) }
    }
  }

  /// The rows of both queries. With `all`, equal rows are returned more than once.
  public func union(_ other: SelectStatement, all isAll: Bool = false) -> SelectStatement {
    combined(.union, isAll, other)
  }

  /// The rows that both queries have.
  public func intersect(_ other: SelectStatement, all isAll: Bool = false) -> SelectStatement {
    combined(.intersect, isAll, other)
  }

  /// The rows of this query that the other one doesn't have.
  public func except(_ other: SelectStatement, all isAll: Bool = false) -> SelectStatement {
    combined(.except, isAll, other)
  }

  private func combined(
    _ operation: SetOperator, _ isAll: Bool, _ other: SelectStatement
  ) -> SelectStatement {
    var statement = SelectStatement(results: [])
    statement.combination = .combined(self, operation, isAll: isAll, other)
    return statement
  }
}

extension Join {
  /// RIGHT JOIN: all rows of the right side. Without a match, the properties of the left side are missing.
  public static func rightJoin(_ source: DataSource) -> Pending { Pending(kind: .rightOuter, source: source) }
  /// FULL JOIN: all rows of both sides.
  public static func fullJoin(_ source: DataSource) -> Pending { Pending(kind: .fullOuter, source: source) }
  /// NEST: the matches of a row are one array. With `isLeftOuter`, rows without a match stay.
  public static func nest(
    _ source: DataSource, on condition: QueryExpression, isLeftOuter: Bool = false
  ) -> JoinClause {
    .nest(source, on: condition, isLeftOuter: isLeftOuter)
  }
}
