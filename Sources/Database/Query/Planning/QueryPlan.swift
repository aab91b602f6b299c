// The plan of a query, which the executor runs.

import Storage

/// How a query's rows are found, and what is done with them. There is one step for each source. The first
/// step is the outermost loop.
struct QueryPlan: Sendable {
  var query: ResolvedQuery
  var steps: [PlanStep]
  /// Conditions that are the same for all rows. They are checked once.
  var constantConditions: [QueryExpression] = []
  var grouping: Grouping?
  /// Whether rows come in the order of ORDER BY.
  var isOrdered = false
  /// Whether rows come in the order of the windows.
  var isWindowOrdered = false
  /// Expressions that a covering index contains, and the references that replace them.
  var substitutions: [QueryExpression: QueryExpression] = [:]

  /// How rows are grouped.
  enum Grouping: Sendable {
    /// The result needs only the number of documents, which is stored.
    case documentCount
    /// The rows of a group come one after the other.
    case streaming
    case hash
  }
}

/// Finds the rows of one source, for each row of the previous steps.
struct PlanStep: Sendable {
  var source: ResolvedSource
  var kind: JoinKind
  var access: AccessPath
  /// Conditions on the rows. For an outer join, they decide what counts as a match.
  var filter: [QueryExpression]
  /// Conditions on the result of an outer join, including its rows without a match.
  var outerFilter: [QueryExpression] = []
  /// Whether the document's record is needed. Otherwise the ID is enough.
  var needsRecord = true
  /// The estimated number of rows that the step gives in total.
  var estimatedRows: Double = 1
}

/// How the rows of a source are found.
indirect enum AccessPath: Sendable {
  /// All documents. `byID` scans in ID order, otherwise the engine's order is used.
  case documents(byID: ScanDirection?)
  /// Documents by ID or by ranges of IDs. All conditions of an inner list have to hold, for one of the lists.
  case identifiers([[KeyCondition]], direction: ScanDirection)
  case index(IndexAccess)
  /// The documents that several paths find, each once.
  case union([AccessPath])
  /// A hash join. The documents that `build` finds and `filter` accepts are stored by the values of `keys`.
  /// They are looked up by the values of `probes`.
  case hash(build: AccessPath, filter: [QueryExpression], keys: [QueryExpression], probes: [QueryExpression])
  case unnest(QueryExpression)
  /// The items of an array, such as the rows of a query.
  case items(QueryExpression)
  /// One row, the value of an expression.
  case value(QueryExpression)
  /// The documents that a MATCH finds.
  case fullText(FullTextAccess)
}

enum ScanDirection: Sendable, Hashable {
  case forward, backward
}

/// Access to ranges of an index.
struct IndexAccess: Sendable {
  var index: PlannedIndex
  /// Each inner list has conditions on the index's first expressions, equalities first. One of the lists has
  /// to hold.
  var ranges: [[KeyCondition]]
  var direction: ScanDirection = .forward
  /// Whether only the index is read.
  var isCovering = false
  /// Conditions that the values in the index can answer, before a document is fetched.
  var entryFilter: [QueryExpression] = []
}

/// An index as the planner sees it.
struct PlannedIndex: Sendable {
  var name: ByteString
  /// The indexed expressions, in canonical form for one source.
  var keys: [QueryExpression]
  /// The condition that documents in the index meet.
  var condition: [QueryExpression]
  /// For an array index, the array, and the name of its items in the keys.
  var unnest: (array: QueryExpression, variable: ByteString)?
  /// For an array index, whether it has entries for the member values of objects. ANY searches these too.
  var hasObjects = true
  /// The number of entries.
  var entries: Int
  /// For the first 1, 2, … expressions, the average number of entries that share their values. Empty when
  /// unknown.
  var entriesPerPrefix: [Double] = []
  /// Whether entries are in the order of their values. They aren't when long strings were cut.
  var isExact = true
  /// Whether entries contain their values unchanged.
  var givesValues = true
  /// The handle for reading. Nil for an index that is only planned with.
  var handle: IndexHandle?
}

/// What is needed to read an index. It is valid as long as the database has the same indexes and the same
/// engine.
struct IndexHandle: Sendable {
  var keyspace: Keyspace
  /// The number of indexed expressions.
  var columns: Int
}
