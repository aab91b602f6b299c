/// The memory that one run of a query uses for rows that it keeps: for sorting, grouping, DISTINCT and joins.
/// The EXISTS queries of the run share its budget, and with it the time of the run.
///
/// Code that keeps rows reports each allocation, and then calls `check`, which throws when the limit is
/// exceeded. So the limit is exceeded by one allocation at most: one value, or the growth of one table. Code that can write its rows to
/// temporary files calls `mustSpill` instead. Use it from one thread at a time.
final class QueryMemoryBudget {
  /// In bytes.
  let limit: Int
  /// What this run shares with others; nil if it shares nothing.
  private let shared: QueryShare?
  /// What the run has of the shared memory, for rows that it keeps and for the values of one row; without that, the limit.
  @exclusivity(unchecked) private var granted: Int
  @exclusivity(unchecked) private var grantedToRow = 0
  // One thread runs a query, so exclusivity checks aren't needed.
  @exclusivity(unchecked) private(set) var used = 0

  /// Whether rows may go to temporary files.
  var canSpill: Bool { fileLimits != nil }
  private let fileLimits: TemporaryFiles.Limits?
  /// The temporary files of the run, made when they are first asked for; nil if it may have none.
  var files: TemporaryFiles? {
    if madeFiles == nil, let fileLimits { madeFiles = TemporaryFiles(fileLimits) }
    return madeFiles
  }
  private var madeFiles: TemporaryFiles?
  /// What the run has written to temporary files, in bytes.
  var fileBytes: Int { madeFiles?.written ?? 0 }
  /// From so many bytes on, rows go to temporary files.
  @exclusivity(unchecked) private var relief: Int

  /// The time of the run in microseconds since 1970. The first expression that asks sets it for all.
  private(set) lazy var time: Int64 = ClockFunctions.microseconds

  init(limit: Int, of shared: QueryShare? = nil, files: TemporaryFiles.Limits? = nil) {
    self.limit = limit
    self.shared = shared
    fileLimits = files
    granted = shared == nil ? limit : 0
    relief = min(granted, files?.beginsAt ?? .max)
  }

  deinit { shared?.give(granted + grantedToRow) }

  /// Whether the run shares memory with others.
  var isShared: Bool { shared != nil }

  @inline(__always)
  func take(_ bytes: Int) { used &+= bytes }

  @inline(__always)
  func giveBack(_ bytes: Int) { used &-= bytes }

  /// Throws `memoryLimit` when the memory in use exceeds the limit. `clause` is the one that allocated last.
  @inline(__always)
  func check(_ clause: MemoryClause) throws {
    if _slowPath(used > granted) { try grow(clause) }
  }

  /// How much a run takes of the shared memory at once, in bytes.
  private static let step = 1 << 20

  private func grow(_ clause: MemoryClause) throws {
    guard takeMore() else {
      throw used <= limit ? MemoryClause.busy(shared?.total ?? 0) : clause.error(limit)
    }
  }

  /// Takes more of the shared memory. False if the limit is reached, or if others have it.
  private func takeMore() -> Bool {
    guard let shared, used <= limit else { return false }
    let more = max(used - granted, min(Self.step, limit - granted))
    guard shared.take(more) else { return false }
    granted += more
    relief = min(granted, fileLimits?.beginsAt ?? .max)
    return true
  }

  /// Whether the caller, who keeps so many bytes in rows, has to write them to temporary files now. That is so when the run has used half
  /// of its memory and a good part of it is the caller's, or when there is no more.
  ///
  /// - Throws: `memoryLimit` or `memoryBusy` when there is no more memory and writing wouldn't help.
  @inline(__always)
  func mustSpill(_ own: @autoclosure () -> Int, _ clause: MemoryClause) throws -> Bool {
    _slowPath(used > relief) ? try decide(own(), clause) : false
  }

  @inline(never)
  private func decide(_ own: Int, _ clause: MemoryClause) throws -> Bool {
    if used > granted, !takeMore() {
      if fileLimits != nil, own >= min(Self.leastSpilled, limit / 16) { return true }
      throw used <= limit ? MemoryClause.busy(shared?.total ?? 0) : clause.error(limit)
    }
    guard let fileLimits else { return false }
    return used > fileLimits.beginsAt && own > fileLimits.beginsAt / 4
  }

  /// So many bytes are written at least when there is no more memory.
  private static let leastSpilled = 16 << 10

  /// The error if the values of one row may not take so many bytes; nil if they may.
  func takeForRow(_ bytes: Int) -> QueryError? {
    guard bytes <= limit else { return MemoryClause.row.error(limit) }
    guard let shared, bytes > grantedToRow else { return nil }
    guard shared.take(bytes - grantedToRow) else { return MemoryClause.busy(shared.total) }
    grantedToRow = bytes
    return nil
  }
}

/// The limits of a run, for code that works for a query without its context.
struct QueryLimits {
  let budget: QueryMemoryBudget
  let cancellation: QueryCancellation
}

/// The clauses that keep rows in memory.
enum MemoryClause {
  case orderBy, distinct, groupBy, window, join, union, unnest, index, match, row, subquery, combination,
    recursion, statement, spilledRow

  /// The error when other queries have the memory.
  static func busy(_ total: Int) -> QueryError {
    QueryError(
      .memoryBusy,
      "all queries together need more than the \(total) bytes of memory that they share; try again later")
  }

  /// The error for a limit of so many bytes.
  func error(_ limit: Int) -> QueryError {
    let (clause, advice) =
      switch self {
      case .orderBy:
        ("ORDER BY keeps all rows to sort them", "a LIMIT, or an index in this order, needs less")
      case .distinct: ("DISTINCT keeps all different rows", "fewer columns need less")
      case .groupBy: ("GROUP BY keeps all groups", "an index on the grouped expressions needs less")
      case .window: ("OVER keeps all rows", "an index in the order of the window may need less")
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
      case .subquery: ("the rows of an inner query are kept", "a LIMIT or fewer columns need less")
      case .combination:
        ("UNION, INTERSECT and EXCEPT keep rows to compare them", "UNION ALL needs less")
      case .statement:
        (
          "a statement keeps the rows that it finds, and those of RETURNING, until its end",
          "a LIMIT, fewer documents at once and smaller values need less"
        )
      case .spilledRow:
        (
          "rows come back from temporary files as a whole",
          "smaller texts and arrays, or fewer columns, need less"
        )
      case .recursion: ("a recursive query keeps the rows of a step", "a narrower condition needs less")
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
