/// The memory that one run of a query uses for rows that it keeps: for sorting, grouping, DISTINCT and joins.
/// The EXISTS queries of the run share its budget.
///
/// Code that keeps rows reports each allocation, and then calls `check`, which throws when the limit is
/// exceeded. So the limit is exceeded by one allocation at most: one value, or the growth of one table. Use
/// it from one thread at a time.
final class MemoryBudget {
  /// In bytes.
  let limit: Int
  // One thread runs a query, so exclusivity checks aren't needed.
  @exclusivity(unchecked) private(set) var used = 0

  init(limit: Int) { self.limit = limit }

  @inline(__always)
  func take(_ bytes: Int) { used &+= bytes }

  @inline(__always)
  func giveBack(_ bytes: Int) { used &-= bytes }

  /// Throws `memoryLimit` when the memory in use exceeds the limit. `clause` is the one that allocated last.
  @inline(__always)
  func check(_ clause: MemoryClause) throws {
    if _slowPath(used > limit) { throw clause.error(limit) }
  }
}

/// The limits of a run, for code that works for a query without its context.
struct QueryLimits {
  let budget: MemoryBudget
  let cancellation: QueryCancellation
}

/// The clauses that keep rows in memory.
enum MemoryClause {
  case orderBy, distinct, groupBy, join, union, unnest, index, match, row

  /// The error for a limit of so many bytes.
  func error(_ limit: Int) -> QueryError {
    let (clause, advice) =
      switch self {
      case .orderBy:
        ("ORDER BY keeps all rows to sort them", "a LIMIT, or an index in this order, needs less")
      case .distinct: ("DISTINCT keeps all different rows", "fewer columns need less")
      case .groupBy: ("GROUP BY keeps all groups", "an index on the grouped expressions needs less")
      case .join: ("JOIN keeps one side in a hash table", "an index on the joined property needs less")
      case .union:
        ("OR keeps the IDs of the documents that its parts find", "one index for all parts needs less")
      case .unnest: ("an index of an array keeps the IDs it has found", "a narrower condition needs less")
      case .index:
        (
          "an index keeps entries of long texts that begin alike to bring them into order",
          "a narrower condition needs less"
        )
      case .match:
        (
          "MATCH keeps the found documents and the words of a prefix",
          "AND instead of OR, and a longer prefix, need less"
        )
      case .row:
        (
          "the values computed for one row are kept until the row is done",
          "smaller texts and arrays need less"
        )
      }
    return QueryError(
      .memoryLimit,
      "\(clause), which needs more than the memory limit of \(limit) bytes; \(advice), or set"
        + " a higher Query.Options.memoryLimit")
  }
}
