extension Query {
  /// Options for planning and running a query.
  public struct Options: Sendable {
    /// Whether value indexes and lookups by ID may be used. Turn it off for tests and measurements.
    public var usesIndexes: Bool
    /// The maximum memory, in bytes, that one run may use for rows it has to keep: those that ORDER BY sorts,
    /// DISTINCT compares, GROUP BY groups and a hash join looks up. From half of the limit on, such rows go to temporary files. What can't
    /// go there throws `memoryLimit` above the limit, which names the clause (docs/query.md, "Memory and temporary files"). Rows that `run` returns and those that a statement keeps don't count. The values computed for
    /// one row may use the same amount again. Each join that looks up documents by ID may use 1 MiB more, or
    /// half of the limit if that is less.
    public var memoryLimit: Int
    /// The maximum size, in bytes, of the temporary files of one run. A run that needs more throws `diskLimit`. 0 allows no files: all rows
    /// have to fit into the memory.
    public var temporaryFileLimit: Int
    /// The directory for temporary files. Nil stands for that of the environment variable TMPDIR, or else `/var/tmp`. The files have no
    /// names, are encrypted with a key that only the run has, and are gone with it, also when the process is killed.
    public var temporaryDirectory: String?
    /// The maximum number of rows of one run. A run with more rows throws `rowLimit`. It stops at the first
    /// row above the limit. Nil means no limit. Negative limits count as zero.
    public var rowLimit: Int? { didSet { rowLimit = rowLimit.map { max(0, $0) } } }
    /// The maximum duration of one run, from its start to its last row. A longer run throws `timedOut`. In
    /// `forEach`, the time of the closure counts. Nil means no limit.
    public var timeLimit: Duration?
    /// The name of the column of `SELECT *`.
    public var starColumnName: StarColumnName
    /// The memory that the run shares with others; nil if it shares none.
    package var sharedMemory: QueryShare?
    /// The temporary files that the run shares with others; nil if it shares none.
    package var sharedFiles: QueryShare?
    /// From so many bytes on, rows go to temporary files, whoever keeps them. Nil stands for half of the memory. Tests set it.
    package var spillsFrom: Int?
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

    /// The default of `temporaryFileLimit`: 16 GiB.
    public static let defaultTemporaryFileLimit = 16 << 30

    /// Creates options. See the properties.
    public init(
      usesIndexes: Bool = true, memoryLimit: Int = Options.defaultMemoryLimit, rowLimit: Int? = nil,
      timeLimit: Duration? = nil, starColumnName: StarColumnName = .source,
      temporaryFileLimit: Int = Options.defaultTemporaryFileLimit, temporaryDirectory: String? = nil
    ) {
      self.usesIndexes = usesIndexes
      self.memoryLimit = memoryLimit
      self.rowLimit = rowLimit.map { max(0, $0) }
      self.timeLimit = timeLimit
      self.starColumnName = starColumnName
      self.temporaryFileLimit = temporaryFileLimit
      self.temporaryDirectory = temporaryDirectory
    }

    /// The memory of one run, with its temporary files.
    var budget: QueryMemoryBudget {
      QueryMemoryBudget(
        limit: memoryLimit, of: sharedMemory,
        files: temporaryFileLimit > 0
          ? TemporaryFiles.Limits(
            directory: temporaryDirectory, bytes: temporaryFileLimit, shared: sharedFiles,
            beginsAt: min(spillsFrom ?? .max, memoryLimit / 2)) : nil)
    }

    static func rowLimitError(_ limit: Int) -> QueryError {
      QueryError(
        .rowLimit,
        "the query has more rows than its row limit of \(limit); a LIMIT returns the first ones, or set a"
          + " higher Query.Options.rowLimit")
    }
  }
}
