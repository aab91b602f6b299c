import Query
import Touchstone

/// `touchstone query`: prints the rows of a query, or its plan.
struct QueryCommand: Subcommand {
  private static let text = Positional(
    "QUERY", "The query; the database is _ or its name; - for standard input")
  static let format = Option<RowFormat>(
    "format", "FORMAT", "table, json (one object per line), csv or line (one property per line)",
    refusal: "isn't table, json, csv or line"
  ).choosing(RowFormat.allCases.map(\.rawValue))
  static let rowLimit = Option<Int>(
    "row-limit", "N", in: 0...Int.max, "Fails after N rows if the query has more")
  static let timeLimit = Option<Duration>(
    "time-limit", "SECONDS", "Fails if the query takes longer; for example 0.5"
  ) { text in
    guard let seconds = Double(text), seconds >= 0, seconds < 1e9 else {
      throw UsageError("'\(text)' isn't a number of seconds from 0 to 1000000000")
    }
    return .seconds(seconds)
  }
  private static let dryRun = Flag(
    "dry-run", "Prints which documents UPDATE, DELETE, INSERT, UPSERT or MERGE would change, and changes none"
  )
  private static let explain = Flag(
    "explain", "Prints the plan of the query and doesn't run it")

  static let usage = Usage(
    "query", "Runs a N1QL query",
    positionals: [DatabaseArguments.database, text],
    options: [QueryParameter.option, format, DatabaseArguments.json, rowLimit, timeLimit, explain, dryRun]
      + DatabaseArguments.readingOptions,
    examples: [
      "touchstone query travel 'SELECT name FROM _ WHERE type = $t LIMIT 10' --param t=hotel",
      "touchstone query travel 'EXPLAIN ANALYZE SELECT COUNT(*) FROM _' --format table",
      "touchstone query travel 'UPDATE _ SET open = TRUE WHERE type = \"hotel\"' --dry-run",
      "touchstone query travel 'PREPARE p AS SELECT 1; EXECUTE p'",
      "touchstone query travel - --format csv < report.n1ql > report.csv",
    ],
    notes:
      """
      Several statements, separated by semicolons, are run one after the other, up to the first that fails.
      A statement that changes documents does so in one transaction, and prints the rows of RETURNING. The number of
      changed documents is printed on standard error.

      The default format is table on a terminal and json otherwise. --json means --format json. EXPLAIN ANALYZE runs
      the query and shows the rows and the time of each step. docs/query.md describes the language.
      """)

  private let database: DatabaseArguments
  private let text: String
  private let parameters: [String: JSONValue]
  private let format: RowFormat
  private let explains: Bool
  private let isDryRun: Bool
  private let limits: Query.Options

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    text = try arguments.required(Self.text)
    parameters = try QueryParameter.values(arguments)
    let asJSON = arguments[DatabaseArguments.json]
    let format = try arguments.value(Self.format)
    guard !asJSON || format == nil || format == .json else {
      throw UsageError("give either --json or --format \(format?.rawValue ?? "")")
    }
    self.format = format ?? (asJSON ? .json : .standard)
    explains = arguments[Self.explain]
    isDryRun = arguments[Self.dryRun]
    limits = try Self.limits(arguments)
  }

  /// The limits that the options say.
  static func limits(_ arguments: Arguments) throws -> Query.Options {
    Query.Options(rowLimit: try arguments.value(rowLimit), timeLimit: try arguments.value(timeLimit))
  }

  func run(_ output: StandardOutput) throws {
    let text = text == "-" ? try StandardInput.text("the query") : text
    Interrupt.listen()
    let database = try database.open()
    for statement in Self.statements(in: text) { try run(statement, on: database, output) }
    try database.close()
  }

  /// The statements of a text, which semicolons separate.
  private static func statements(in text: String) -> [String] {
    var reader = StatementReader()
    var statements: [ShellStatement] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      statements += reader.add(String(line))
    }
    if let last = reader.end() { statements.append(last) }
    guard statements.count > 1, statements.allSatisfy({ $0.kind == .query }) else { return [text] }
    return statements.map(\.text)
  }

  private func run(_ text: String, on database: Database, _ output: StandardOutput) throws {
    if try database.changes(text, options: limits) {
      if explains {
        throw UsageError("--explain is for a query; --dry-run shows what a statement would change")
      }
      let results = try interruptible("nothing was changed") {
        try database.execute(text, parameters, isDryRun: isDryRun, options: limits, cancellation: $0)
      }
      return try ChangePrinter(format, to: output).print(results, isDryRun: isDryRun)
    }
    if isDryRun { throw UsageError("--dry-run is for a statement that changes documents") }
    let query = try database.query(text, options: limits)
    if explains {
      let plan = try interruptible("nothing was printed") { try query.explain(parameters, cancellation: $0) }
      return try output.line(plan.description)
    }
    var printer = try RowPrinter(format, columns: query.columnNames, to: output)
    try Interrupt.cancelling { try printer.print(query, parameters, $0) }
  }

  /// Runs `body` until Ctrl-C. `outcome` says then what had been done.
  private func interruptible<Result>(
    _ outcome: String, _ body: (QueryCancellation) throws -> Result
  ) throws -> Result {
    do { return try Interrupt.cancelling(body) } catch let error as QueryError where error.code == .cancelled
    {
      throw Interrupted(outcome)
    }
  }
}
