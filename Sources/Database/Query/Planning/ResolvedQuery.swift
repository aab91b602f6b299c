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
  var having: QueryExpression?
  var orderBy: [Ordering] = []
  var limit: QueryExpression?
  var offset: QueryExpression?
  /// The queries inside EXISTS. Each is computed once, before the rows.
  var subqueries: [ResolvedQuery] = []
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
  }
  /// The alias. Expressions use this name.
  var name: ByteString
  var kind: Kind
  /// Whether tombstones are rows too, because the query uses `META().deleted`.
  var includesDeleted = false

  var isDocuments: Bool { if case .documents = kind { true } else { false } }

  /// The conditions of its ON, or the array of its UNNEST.
  var expressions: [QueryExpression] {
    switch kind {
    case .documents(_, let on): on
    case .unnest(let array, _): [array]
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
