extension Query {
  /// Options for planning and running a query.
  public struct Options: Sendable {
    /// Whether value indexes and lookups by ID may be used. Turn it off for tests and measurements.
    public var usesIndexes: Bool
    /// The maximum memory, in bytes, that one run may use for rows it has to keep: those that ORDER BY sorts,
    /// DISTINCT compares, GROUP BY groups and a hash join looks up. Above the limit the run throws
    /// `memoryLimit`, which names the clause. Rows that `run` returns and those that a statement keeps don't count. The values computed for
    /// one row may use the same amount again. Each join that looks up documents by ID may use 1 MiB more, or
    /// half of the limit if that is less.
    public var memoryLimit: Int
    /// The maximum number of rows of one run. A run with more rows throws `rowLimit`. It stops at the first
    /// row above the limit. Nil means no limit. Negative limits count as zero.
    public var rowLimit: Int? { didSet { rowLimit = rowLimit.map { max(0, $0) } } }
    /// The maximum duration of one run, from its start to its last row. A longer run throws `timedOut`. In
    /// `forEach`, the time of the closure counts. Nil means no limit.
    public var timeLimit: Duration?
    /// The name of the column of `SELECT *`.
    public var starColumnName: StarColumnName
    /// The memory that the run shares with others; nil if it shares none.
    package var sharedMemory: QueryMemory?
    /// Whose prepared statements PREPARE and EXECUTE know: the name of a user, or nil for those of the program.
    package var statementOwner: String?

    /// How the column of a `*` without an alias is named.
    public enum StarColumnName: Sendable {
      /// By the alias of the source, or else by the name after FROM: `SELECT * FROM _` has the column `_`.
      case source
      /// By the alias of the source, or else by the database's name, as in Couchbase Lite 2.x.
      case databaseName
    }

    /// The default of `memoryLimit`: 256 MiB.
    public static let defaultMemoryLimit = 256 << 20

    /// Creates options. See the properties.
    public init(
      usesIndexes: Bool = true, memoryLimit: Int = Options.defaultMemoryLimit, rowLimit: Int? = nil,
      timeLimit: Duration? = nil, starColumnName: StarColumnName = .source
    ) {
      self.usesIndexes = usesIndexes
      self.memoryLimit = memoryLimit
      self.rowLimit = rowLimit.map { max(0, $0) }
      self.timeLimit = timeLimit
      self.starColumnName = starColumnName
    }

    static func rowLimitError(_ limit: Int) -> QueryError {
      QueryError(
        .rowLimit,
        "the query has more rows than its row limit of \(limit); a LIMIT returns the first ones, or set a"
          + " higher Query.Options.rowLimit")
    }
  }
}
