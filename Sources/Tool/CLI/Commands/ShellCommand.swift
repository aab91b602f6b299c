import Query
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone shell`: queries from a person or a script.
struct ShellCommand: Subcommand {
  private static let file = Option("file", "FILE", "Runs the statements of a file; - for standard input")
    .short("f")
  private static let keepGoing = Flag("keep-going", "Goes on after an error in a script")
  private static let noHistory = Flag("no-history", "Neither reads nor keeps what is typed")

  static let usage = Usage(
    "shell", "Runs queries that are typed, or those of a script",
    positionals: [DatabaseArguments.database],
    options: [
      file, keepGoing, QueryCommand.format, QueryParameter.option, QueryCommand.rowLimit,
      QueryCommand.timeLimit,
      noHistory,
    ] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone shell travel", "touchstone shell travel -f report.n1ql --format csv > report.csv",
      "echo 'SELECT COUNT(*) AS n FROM _;' | touchstone shell travel",
    ],
    notes: """
      A query ends with a semicolon and may have several lines. .help lists the shell's own commands. Tab
      completes words, functions and properties, the arrow keys bring back what was typed before, and Ctrl-C
      stops a query. What was typed is kept in ~/.local/state/touchstone/history.

      A script stops at its first error, and the status is that of the error. With --keep-going, all statements
      run, and the status is that of the first error.
      """)

  private let database: DatabaseArguments
  private let file: String?
  private let keepsGoing: Bool
  private let hasHistory: Bool
  private let format: RowFormat
  private let parameters: [String: JSONValue]
  private let limits: Query.Options

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    file = try arguments.value(Self.file)
    keepsGoing = arguments[Self.keepGoing]
    hasHistory = !arguments[Self.noHistory]
    format = try arguments.value(QueryCommand.format) ?? .standard
    parameters = try QueryParameter.values(arguments)
    limits = try QueryCommand.limits(arguments)
  }

  func run(_ output: StandardOutput) throws {
    // Before the database begins threads.
    let signals = try ShellSignals()
    let script = try file.map { try InputLines($0, signals) }
    let database = try database.open(watchesOtherProcesses: false)
    let shell = Shell(
      database, signals, format: format, parameters: parameters, limits: limits, keepsGoing: keepsGoing,
      output: output)
    let isInteractive = script == nil && isatty(STDIN_FILENO) == 1 && StandardOutput.isTerminal
    if isInteractive,
      let lines = EditedLines(
        signals, history: hasHistory ? ShellHistory() : nil, completion: shell.completion)
    {
      try greet(database, output)
      try shell.run(lines)
    } else {
      try shell.run(script ?? InputLines("-", signals))
    }
    try database.close()
  }

  private func greet(_ database: Database, _ output: StandardOutput) throws {
    let count = try database.documentCount
    let documents = TextTable.counted(count, "document")
    try output.line(
      "touchstone \(touchstoneVersion): \(database.name), \(database.engineName) (\(database.engineLibrary)), \(documents)"
    )
    try output.line("A query ends with a semicolon. .help lists the commands.")
    try output.flush()
  }
}
