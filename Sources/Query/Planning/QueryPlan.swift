// What the executor does for a query.

import Storage

/// How a query's rows are found: one step for each source, the first outermost, and what is done with the rows.
struct QueryPlan: Sendable {
  var query: ResolvedQuery
  var steps: [PlanStep]
  /// Conditions that are the same for all rows: looked at once.
  var constantConditions: [Expression] = []
  var grouping: Grouping?
  /// Whether rows come in the order that is asked for.
  var isOrdered = false
  /// Expressions that an index has, and what they are read as then.
  var substitutions: [Expression: Expression] = [:]

  /// How rows become groups.
  enum Grouping: Sendable {
    /// The number of documents, which is known.
    case documentCount
    /// Rows of a group come one after the other.
    case streaming
    case hash
  }
}

/// The rows of one source, for each row of the steps before.
struct PlanStep: Sendable {
  var source: ResolvedSource
  var kind: JoinKind
  var access: AccessPath
  /// What the rows have to meet; of an outer join what counts as a match.
  var filter: [Expression]
  /// Conditions on the rows of an outer join, those without a match among them.
  var outerFilter: [Expression] = []
  /// Whether a document's record is needed, or its ID is enough.
  var needsRecord = true
  /// Rows it gives, over all rows of the steps before.
  var estimatedRows: Double = 1
}

/// How a source's rows are found.
indirect enum AccessPath: Sendable {
  /// All documents; `byID` in the order of their IDs, else as the engine has them.
  case documents(byID: ScanDirection?)
  /// Documents by ID, or by ranges of it. Each inner list is conditions on the ID that hold together.
  case identifiers([[KeyCondition]], direction: ScanDirection)
  case index(IndexAccess)
  /// What several ways find, each document once.
  case union([AccessPath])
  /// Documents that `build` finds and `conditions` let pass are kept by the values of `keys`, and found by those of
  /// `probes`.
  case hash(build: AccessPath, filter: [Expression], keys: [Expression], probes: [Expression])
  case unnest(Expression)
  /// Documents that a MATCH finds.
  case fullText(FullTextAccess)
}

enum ScanDirection: Sendable, Hashable {
  case forward, backward
}

/// Ranges of an index.
struct IndexAccess: Sendable {
  var index: PlannedIndex
  /// Each inner list is conditions on the index's first expressions, the first ones equalities; one of the lists
  /// has to hold.
  var ranges: [[KeyCondition]]
  var direction: ScanDirection = .forward
  /// Whether nothing but the index is read.
  var isCovering = false
  /// Conditions that the index's own values answer, before a document is fetched.
  var entryFilter: [Expression] = []
}

/// An index as the planner sees it.
struct PlannedIndex: Sendable {
  var name: ByteString
  /// Canonical, of the source it is looked at for.
  var keys: [Expression]
  /// What a document meets that is in it.
  var condition: [Expression]
  /// Of an array index, the array, and the name that the keys know its items by.
  var unnest: (array: Expression, variable: ByteString)?
  /// Of an array index, whether it has entries for the values of an object, which ANY looks through as well.
  var hasObjects = true
  /// How many entries it has.
  var entries: Int
  /// For each number of leading expressions, from one on, how many entries share their values; empty when unknown.
  var entriesPerPrefix: [Double] = []
  /// Whether the order of entries is that of the values: not when long strings were cut.
  var isExact = true
  /// Whether its values can be given back as they were.
  var givesValues = true
  /// How it is read; nil for an index that is there for planning only.
  var handle: IndexHandle?
}

/// What an index is read by, as long as its database has just these indexes and this engine.
struct IndexHandle: Sendable {
  var keyspace: Keyspace
  /// How many expressions it has.
  var columns: Int
}
