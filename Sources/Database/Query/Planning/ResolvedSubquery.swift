// Queries inside queries.
//
// An inner query that reads nothing of the rows around it is computed once. One that does is correlated: it
// runs for each outer row. What it reads of the outer row are its captures. They are expressions of the outer
// query, and parameters with internal names in the inner one. So an inner query is planned like any other, and
// an index serves a comparison with an outer value as it serves one with a parameter.
//
// In the outer query, the value of an inner query is a call of an internal function. Its arguments are the
// captures. So substitutions, groups and covering indexes apply to them as to any other expression.

import Storage

/// A query inside another one.
struct ResolvedSubquery: Sendable {
  /// The value of a query in an expression.
  enum Form: Sendable {
    /// Whether there is a row.
    case exists
    /// The array of the rows.
    case rows
  }

  var rows: ResolvedRows
  var form: Form
  /// The number of captures. The parameters for them are `InternalName.capture(0)` and so on.
  var captureCount = 0
  /// Whether several places of the query read the rows, as with a name of WITH. They are kept then.
  var isShared = false

  /// The queries that give the rows.
  var queries: [ResolvedQuery] { rows.queries }
}

/// Where rows of an inner query come from.
indirect enum ResolvedRows: Sendable {
  case query(ResolvedQuery)
  /// The combined rows of two queries.
  case combined(ResolvedRows, SetOperator, isAll: Bool, ResolvedRows)
  /// The rows of `first`, then again and again the rows that `next` makes from the rows before. `next` reads
  /// them by the parameter `InternalName.recursion`.
  case recursive(first: ResolvedRows, next: ResolvedRows, isAll: Bool, RecursionBounds)

  var queries: [ResolvedQuery] {
    switch self {
    case .query(let query): [query]
    case .combined(let left, _, _, let right): left.queries + right.queries
    case .recursive(let first, let next, _, _): first.queries + next.queries
    }
  }
}

/// Where a recursive query ends.
struct RecursionBounds: Sendable {
  /// The number of times after which it ends. Nil without a bound.
  var levels: Int?
  /// The number of rows at which it ends. Nil without a bound.
  var rows: Int?
  /// The number of times that is an error.
  static let mostLevels = 1000
}

extension InternalName {
  /// The parameter with the value of a capture.
  static func capture(_ number: Int) -> ByteString { ByteString("\u{2}outer\(number)") }
  /// The parameter with the rows that the last step of a recursive query gave.
  static let recursion: ByteString = "\u{2}rows"

  /// Whether a parameter gets its value from the query around, and not from the caller.
  static func isCapture(_ name: ByteString) -> Bool { name.bytes.first == 2 }

  /// The source that gives the combined rows of UNION, INTERSECT or EXCEPT.
  static let combination: ByteString = "\u{1}rows"

  private static let call = "\u{1}query"
  private static let exclusion = "\u{1}without"

  /// The value of the subquery with a number, for these captures.
  static func call(_ number: Int, _ captures: [QueryExpression]) -> QueryExpression {
    .call(FunctionCall("\(call)\(number)", captures))
  }

  /// An object without some of its members. Each path is an array of names.
  static func without(_ value: QueryExpression, _ paths: [[ByteString]]) -> QueryExpression {
    let names = paths.map { path in QueryExpression.array(path.map { .literal(.string($0)) }) }
    return .call(FunctionCall(exclusion, [value] + names))
  }

  /// Whether a function's name is internal.
  static func isCall(_ name: String) -> Bool { name.utf8.first == 1 }

  static func isExclusion(_ name: String) -> Bool { name == exclusion }

  /// The number of the subquery that a call evaluates. Nil for other calls.
  static func subqueryNumber(_ name: String) -> Int? {
    isCall(name) && name.hasPrefix(call) ? Int(name.dropFirst(call.count)) : nil
  }
}

extension ResolvedQuery {
  /// Adds an inner query. Returns its value as an expression.
  mutating func add(_ subquery: ResolvedSubquery, captures: [QueryExpression]) -> QueryExpression {
    subqueries.append(subquery)
    let number = subqueries.count - 1
    if case .exists = subquery.form, captures.isEmpty {
      return InternalName.reference(InternalName.subquery(number))
    }
    return InternalName.call(number, captures)
  }
}

extension QueryExpression {
  /// Whether it contains the value of an inner query.
  var hasSubqueries: Bool {
    hasParts { if case .call(let call) = $0 { InternalName.subqueryNumber(call.name) != nil } else { false } }
  }

  /// Whether it depends on values of the query around this one.
  var hasCaptures: Bool {
    hasParts { if case .parameter(let name) = $0 { InternalName.isCapture(name) } else { false } }
  }
}
