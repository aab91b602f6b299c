// A query whose names mean one thing each.
//
// Expressions stay expressions, in a canonical form: every path begins with the name of its source (its alias), of
// a variable, or of a value of the group; META has its source; `*` has one; aliases of results have been replaced
// by what they stand for. So two expressions that mean the same are equal, and can be found in an index or in the
// results by comparing them.

import Storage

/// A query with its names resolved.
struct ResolvedQuery: Sendable {
  var isDistinct = false
  var columns: [ResolvedColumn] = []
  var sources: [ResolvedSource] = []
  /// Conditions of WHERE, all of which have to be true.
  var conditions: [Expression] = []
  /// Nil when rows aren't grouped; empty when all rows are one group.
  var groupBy: [Expression]?
  /// What is computed over the rows of a group.
  var aggregates: [ResolvedAggregate] = []
  var having: Expression?
  var orderBy: [Ordering] = []
  var limit: Expression?
  var offset: Expression?
  /// Queries inside EXISTS, each computed once before the rows.
  var subqueries: [ResolvedQuery] = []
  /// Its MATCHes, each once.
  var matches: [ResolvedMatch] = []

  /// Whether rows are grouped.
  var isGrouped: Bool { groupBy != nil }
}

/// A column of the result.
struct ResolvedColumn: Sendable {
  var name: ByteString
  var expression: Expression
}

/// What gives rows.
struct ResolvedSource: Sendable {
  enum Kind: Sendable {
    /// The documents of the database.
    case documents(JoinKind, on: [Expression])
    /// The items of an array.
    case unnest(Expression, isLeftOuter: Bool)
  }
  /// The alias, which expressions know it by.
  var name: ByteString
  var kind: Kind
  /// Whether tombstones are rows as well, because the query speaks of `META().deleted`.
  var includesDeleted = false

  var isDocuments: Bool { if case .documents = kind { true } else { false } }

  /// The conditions of its ON, or the array of its UNNEST.
  var expressions: [Expression] {
    switch kind {
    case .documents(_, let on): on
    case .unnest(let array, _): [array]
    }
  }
}

/// An aggregate of a group.
struct ResolvedAggregate: Hashable, Sendable {
  var function: String
  var isDistinct: Bool
  /// Nil for `COUNT(*)`.
  var argument: Expression?
  /// How MIN, MAX and DISTINCT compare strings.
  var collation: Collation
}

/// Names that no query can have, for the values of a group and of subqueries.
enum InternalName {
  static func subquery(_ index: Int) -> ByteString { ByteString("\(subqueries.string)\(index)") }
  private static let subqueries: ByteString = "\u{1}exists"

  static func isSubquery(_ name: ByteString) -> Bool { name.bytes.starts(with: subqueries.bytes) }

  static func reference(_ name: ByteString) -> Expression { .property(PropertyReference([.name(name)])) }
}
