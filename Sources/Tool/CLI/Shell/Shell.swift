import Datasets
import Query
import Touchstone

/// A failure in a script, with its place in front: `report.n1ql:3:8: …`.
struct ScriptFailure: Error, CustomStringConvertible {
  let description: String
  let status: ExitStatus
}

/// What the shell knows while it runs: a database, and how rows are printed.
final class Shell {
  let database: Database
  /// Where rows and what commands show are written: standard output, or the file of `.output` or `.once`.
  private(set) var output: StandardOutput
  private let standardOutput: StandardOutput
  /// Whether the file is for one statement only.
  private var isOnce = false
  let signals: ShellSignals
  var format: RowFormat
  var parameters: [String: JSONValue]
  var explains = false
  var showsTime = false
  var isEnded = false
  /// Whether a person types. The terminal shows Ctrl-C at the cursor.
  private var isTyped = false
  private let limits: Query.Options
  private let keepsGoing: Bool
  /// What completes the lines of a person.
  private(set) lazy var completion = ShellCompletion { [unowned self] in propertyPaths() }
  /// How many files are being read, one from within another.
  private var depth = 0
  private static let maximumDepth = 20
  /// With `keepsGoing`, the number of statements that failed, and the first one's status.
  private var failures: (count: Int, status: ExitStatus) = (0, .done)

  init(
    _ database: Database, _ signals: ShellSignals, format: RowFormat, parameters: [String: JSONValue],
    limits: Query.Options, keepsGoing: Bool, output: StandardOutput
  ) {
    self.database = database
    self.signals = signals
    self.format = format
    self.parameters = parameters
    self.limits = limits
    self.keepsGoing = keepsGoing
    self.output = output
    standardOutput = output
  }

  /// Writes what follows to a file, or to standard output again if `path` is nil; with `once` only what the next statement shows.
  func write(to path: String?, once: Bool = false) throws {
    try output.flush()
    output = try path.map { try StandardOutput(path: $0) } ?? standardOutput
    isOnce = once
  }

  /// Runs all statements. Throws the first error, but for those of a person at a terminal, who sees them.
  func run(_ lines: some LineSource) throws {
    isTyped = lines.name == nil
    try statements(of: lines)
    guard failures.count > 0 else { return }
    throw ScriptFailure(
      description: "\(TextTable.counted(failures.count, "statement")) failed", status: failures.status)
  }

  /// Runs the statements of a file.
  func read(_ path: String) throws {
    guard depth < Self.maximumDepth else {
      throw UsageError(
        "files are read from within each other \(Self.maximumDepth) times; does \(path) read itself?")
    }
    depth += 1
    defer { depth -= 1 }
    try statements(of: InputLines(path, signals))
  }

  private func statements(of lines: some LineSource) throws {
    let prompt = database.name + "> "
    let continuation = String(repeating: " ", count: max(0, database.name.count - 3)) + "...> "
    var reader = StatementReader()
    var typed: [String] = []
    while !isEnded {
      if let name = lines.name, signals.isInterrupted { throw Interrupted("the rest of \(name) wasn't run") }
      if lines.name == nil { completion.isInsideStatement = reader.isInside }
      switch try lines.next(reader.isInside ? continuation : prompt) {
      case .interrupted:
        if let name = lines.name { throw Interrupted("the rest of \(name) wasn't run") }
        guard !signals.isEnding else { throw Interrupted("the shell was ended") }
        reader.reset()
        typed = []
        try standardOutput.line("^C")
        try standardOutput.flush()
      case .end:
        if let statement = reader.end() { try perform(statement, of: lines) }
        // The prompt's line ends before what follows.
        if lines.name == nil { try standardOutput.line("") }
        return
      case .line(let line):
        let text = lines.name == nil && !reader.isInside ? ShellCommands.spelled(line) : line
        let found = reader.add(text)
        typed.append(text)
        if !reader.isInside {
          let whole = typed.joined(separator: "\n")
          if !whole.allSatisfy(\.isWhitespace) { lines.remember(whole) }
          typed = []
        }
        for statement in found where !isEnded { try perform(statement, of: lines) }
      }
    }
  }

  private func perform(_ statement: ShellStatement, of lines: some LineSource) throws {
    let file = isOnce ? output : nil
    defer {
      // Unless the statement has chosen another file.
      if output === file { (output, isOnce) = (standardOutput, false) }
    }
    do {
      switch statement.kind {
      case .query: try query(statement.text)
      case .command: try ShellCommands.run(statement.text, in: self)
      }
      try output.flush()
    } catch let error where !signals.isEnding && !Self.isOfOutput(error) {
      // The rows before the error belong to the answer.
      try output.flush()
      guard let name = lines.name else {
        let mark = error is Interrupted ? "" : Style.errors.error("error:") + " "
        StandardError.line(mark + Self.message(error))
        return
      }
      guard !signals.isInterrupted, !(error is ScriptFailure) else { throw error }
      let failure = Self.failure(error, in: statement, of: name)
      guard keepsGoing else { throw failure }
      StandardError.line("\(Style.errors.error("touchstone shell:")) \(failure)")
      if failures.count == 0 { failures.status = failure.status }
      failures.count += 1
    }
  }

  private func query(_ text: String) throws {
    if try database.changes(text) {
      let results = try signals.cancelling {
        try database.execute(text, parameters, options: limits, cancellation: $0)
      }
      return try ChangePrinter(format, to: output).print(results, isDryRun: false)
    }
    let begin = ContinuousClock.now
    let query = try database.query(text, options: limits)
    var printer = try RowPrinter(format, columns: query.columnNames, to: output)
    try signals.cancelling { cancellation in
      if explains, query.columnNames != ["plan"] {
        try output.lines(query.explain(parameters, cancellation: cancellation).lines + [""])
      }
      try printer.print(query, parameters, cancellation) {
        // What follows has a line of its own.
        if isTyped {
          try standardOutput.line("")
          try standardOutput.flush()
        }
      }
    }
    guard showsTime else { return }
    try output.flush()
    let time = begin.duration(to: .now)
    StandardError.line("\(TextTable.counted(printer.count, "row")), \(time.formatted())")
  }

  // MARK: Errors

  private static func message(_ error: any Error) -> String {
    CommandWords.of((error as? UsageError)?.message ?? "\(error)")
  }

  /// What can't be printed ends the shell.
  private static func isOfOutput(_ error: any Error) -> Bool {
    (error as? DatasetError)?.path == "standard output"
  }

  private static func failure(_ error: any Error, in statement: ShellStatement, of name: String)
    -> ScriptFailure
  {
    let status = ExitStatus(error)
    guard let error = error as? QueryError, let location = error.location else {
      return ScriptFailure(description: "\(name):\(statement.line): \(message(error))", status: status)
    }
    let line = statement.line + location.line - 1
    let column = location.column + (location.line == 1 ? statement.column : 0)
    let text = "\(name):\(line):\(column): \(CommandWords.of(error.message))\n\(location.excerpt)"
    return ScriptFailure(description: text, status: status)
  }

  /// The paths of the properties for completion, without the items of arrays. A failure shows up elsewhere.
  private func propertyPaths() -> [String] {
    guard let schema = try? SampledSchema(of: database, isStopped: { signals.isInterrupted }) else {
      return []
    }
    return schema.properties.map(\.path).filter { !$0.contains("[]") }
  }
}

extension Duration {
  /// The time for people: `3.2 ms`, `1.50 s`.
  fileprivate func formatted() -> String {
    let seconds = Double(components.seconds) + Double(components.attoseconds) * 1e-18
    func rounded(_ value: Double, _ digits: Int) -> String {
      let scale = digits == 1 ? 10.0 : 100.0
      let whole = Int((value * scale).rounded())
      let fraction = String(whole % Int(scale))
      let zeros = String(repeating: "0", count: digits - fraction.count)
      return "\(whole / Int(scale)).\(zeros)\(fraction)"
    }
    return seconds < 1 ? "\(rounded(seconds * 1_000, 1)) ms" : "\(rounded(seconds, 2)) s"
  }
}
