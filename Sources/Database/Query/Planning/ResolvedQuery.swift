// A query with all names resolved.
//
// Expressions have a canonical form. Every path begins with the name of its source (its alias), of a
// variable, or of a value of the group. META and `*` have a source. Aliases of results are replaced by their
// expressions. So two expressions with the same meaning are equal. They can be found in an index or among the
// results by comparison.

import Storage

/// A query with its names resolved.
struct ResolvedQuery: Sendable {
  var isDistinct = false
  var columns: [ResolvedColumn] = []
  var sources: [ResolvedSource] = []
  /// The conditions of WHERE. All of them have to be true.
  var conditions: [QueryExpression] = []
  /// Nil when rows aren't grouped. Empty when all rows form one group.
  var groupBy: [QueryExpression]?
  /// The numbers of the grouping sets without expressions.
  var emptyGroupingSets: [Int] = []
  var having: QueryExpression?
  /// Whether results or the order use functions over windows.
  var hasWindows = false
  var orderBy: [Ordering] = []
  var limit: QueryExpression?
  var offset: QueryExpression?
  /// Whether rows are the values of the only column.
  var isRaw = false
  /// The queries inside this one.
  var subqueries: [ResolvedSubquery] = []
  /// Whether the query reads values of the query around it, and so runs for each of its rows.
  var isCorrelated = false
  /// The MATCHes of the query, each once.
  var matches: [ResolvedMatch] = []

  /// Whether rows are grouped.
  var isGrouped: Bool { groupBy != nil }

  /// The expressions that are computed from whole rows: results, groups, order.
  var rowExpressions: [QueryExpression] {
    columns.map(\.expression) + (groupBy ?? []) + [having].compactMap { $0 } + orderBy.map(\.expression)
  }
}

/// A column of the result.
struct ResolvedColumn: Sendable {
  var name: ByteString
  var expression: QueryExpression
  /// Whether the query gives the name as an alias.
  var isNamed = false
  /// Whether the column is a whole document.
  var isStar: Bool { if case .star = expression { true } else { false } }
}

/// A source of rows.
struct ResolvedSource: Sendable {
  enum Kind: Sendable {
    /// The documents of the database.
    case documents(JoinKind, on: [QueryExpression])
    /// The items of an array.
    case unnest(QueryExpression, isLeftOuter: Bool)
    /// The items of an array, such as the rows of a query. Another value is one row.
    case items(QueryExpression, JoinKind, on: [QueryExpression])
    /// The value of an expression, which is one row: a name of LET, or the array of NEST.
    case value(QueryExpression)
  }
  /// The alias. Expressions use this name.
  var name: ByteString
  var kind: Kind
  /// Whether tombstones are rows too, because the query uses `META().deleted`.
  var includesDeleted = false
  /// Whether `*` leaves it out.
  var isHidden = false
  /// The indexes that may be used. Empty means all of them.
  var indexes: [ByteString] = []

  var isDocuments: Bool { if case .documents = kind { true } else { false } }

  /// Whether a path without a source's name can belong to it.
  var hasProperties: Bool {
    switch kind {
    case .documents, .items: true
    case .unnest, .value: false
    }
  }

  /// The kind of its join. UNNEST and values of LET are inner joins, unless they are LEFT OUTER.
  var joinKind: JoinKind {
    switch kind {
    case .documents(let kind, _), .items(_, let kind, _): kind
    case .unnest(_, let isLeftOuter): isLeftOuter ? .leftOuter : .inner
    case .value: .inner
    }
  }

  /// The conditions of its ON.
  var on: [QueryExpression] {
    switch kind {
    case .documents(_, let on), .items(_, _, let on): on
    case .unnest, .value: []
    }
  }

  /// The conditions of its ON, and the expression of its rows.
  var expressions: [QueryExpression] {
    switch kind {
    case .documents(_, let on): on
    case .unnest(let array, _): [array]
    case .items(let items, _, let on): on + [items]
    case .value(let value): [value]
    }
  }
}

/// Names that can't occur in a query, for the values of groups and subqueries.
enum InternalName {
  static func subquery(_ index: Int) -> ByteString { ByteString("\(subqueries.string)\(index)") }
  private static let subqueries: ByteString = "\u{1}exists"

  static func isSubquery(_ name: ByteString) -> Bool { name.bytes.starts(with: subqueries.bytes) }

  static func reference(_ name: ByteString) -> QueryExpression { .property(PropertyReference([.name(name)])) }
}
