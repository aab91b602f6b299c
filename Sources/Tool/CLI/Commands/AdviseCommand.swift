import BenchmarkKit
import FoundationEssentials
import Query
import Suites
import Touchstone

/// `touchstone advise`: says which indexes would help queries, and which ones none of them uses.
struct AdviseCommand: Subcommand {
  private static let text = Positional(
    "QUERY", "A query, with or without ADVISE; or --queries", count: .optional)
  private static let queries = Option(
    "queries", "FILE", "A file of queries, as 'bench mine' takes them; - for standard input")
  private static let seconds = Option<Double>(
    "seconds", "S", "How long each query runs with each index that is tried (0.2)"
  ) { text in
    guard let seconds = Double(text), (0...3_600).contains(seconds) else {
      throw UsageError("'\(text)' isn't a number of seconds from 0 to 3600")
    }
    return seconds
  }
  private static let directory = Option(
    "work-directory", "DIR", "The directory for the copy (that of temporary files)")

  static let usage = Usage(
    "advise", "Finds indexes that would help queries, and those that none of them uses",
    positionals: [DatabaseArguments.database, text],
    options: [queries, QueryParameter.option, seconds, directory, DatabaseArguments.json, Keys.file],
    examples: [
      "touchstone advise travel 'SELECT name FROM _ WHERE type = $t' --param t=hotel",
      "touchstone advise travel --queries queries.n1ql",
    ],
    notes: """
      DB is copied into a temporary directory, which is removed at the end; DB itself is only read. On the copy,
      indexes on the conditions, the order and the groups of each query are made one after the other, and the query
      is timed with each. An index is reported if the query is at least 1.2 times as fast with it and the middle
      halves of both samples don't overlap. Indexes that the file of queries names are tried too. What an index costs
      when documents are saved isn't measured; 'bench mine --mix' does that.

      With --json there is one object: queries, each with name, rows, seconds, plan, and indexes that help, the best first;
      unused, the existing indexes that no query uses; missing, the full-text indexes of the file that DB doesn't have; and
      tried, how many indexes were tried.
      """)

  private let database: DatabaseArguments
  private let queries: [NamedQuery]
  private let seconds: Double
  private let directory: String
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    switch (arguments.optional(Self.text), try arguments.value(Self.queries)) {
    case (let text?, nil):
      let statement: SelectStatement
      if SelectStatement.isJSON(text) {
        statement = try SelectStatement(jsonText: text)
      } else {
        switch try QueryStatement(parsing: text) {
        case .select(let select), .advise(let select), .explain(let select, _): statement = select
        default: throw UsageError("an index is advised for a query, and not for other statements")
        }
      }
      queries = [
        NamedQuery(
          name: "query", text: statement.description, parameters: try QueryParameter.values(arguments))
      ]
    case (nil, let path?):
      guard try QueryParameter.values(arguments).isEmpty else {
        throw UsageError("--param is for QUERY; the file of --queries has its own parameters")
      }
      queries = try QueryFile(path: path).queries
    case (nil, nil): throw UsageError("QUERY or --queries FILE is missing")
    case (_?, _?): throw UsageError("QUERY and --queries can't be combined")
    }
    seconds = try arguments.value(Self.seconds) ?? 0.2
    directory = try arguments.value(Self.directory) ?? FileManager.default.temporaryDirectory.path
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let key = try Database.isEncrypted(database.path) ? database.key() : nil
    let place: TrialDirectory
    do { place = try TrialDirectory(in: directory) } catch {
      throw UsageError("--work-directory: '\(directory)': \(error)")
    }
    defer { place.remove() }
    let line = PhaseProgressLine("advise")
    try Database.copy(database.path, to: place.path + "/copy", key: key, progress: line.update)
    line.end()
    let shown = ProgressLine()
    defer { shown.clear() }
    let copy = try Database.open(
      place.path + "/copy", options: .init(creation: .openExisting, key: key, compaction: .off))
    defer { try? copy.close() }
    let advice = try IndexAdvice(
      queries, on: copy, seconds: seconds, progress: { shown.show($0) },
      shouldStop: { Interrupt.isRequested })
    shown.clear()
    if asJSON { return try output.line(Self.json(advice).jsonText) }
    try write(advice, to: output)
  }

  // MARK: Output

  private func write(_ advice: IndexAdvice, to output: StandardOutput) throws {
    var table = TextTable([
      ("query", .left), ("rows", .right), ("now", .right), ("with", .right), ("faster", .right),
      ("index on", .left),
    ])
    for answer in advice.answers {
      let now = Format.duration(answer.now.median)
      guard let best = answer.trials.first else {
        table.add([answer.query.name, TextTable.grouped(answer.rows), now, "", "", "none helps"])
        continue
      }
      table.add([
        answer.query.name, TextTable.grouped(answer.rows), now, Format.duration(best.time.median),
        Format.ratio(answer.now.median / best.time.median) + "×", best.definition.text,
      ])
    }
    try output.lines(table.lines)
    var commands: [String] = []
    // An index of the same name would be replaced.
    var names = (1...).lazy.map { "index\($0)" }.filter { !advice.names.contains($0) }.makeIterator()
    for definition in Self.advised(advice) {
      if let name = names.next() { commands.append(command(name, definition)) }
    }
    if !commands.isEmpty { try output.lines(["", "To make them:"] + commands.map { "  " + $0 }) }
    for name in advice.missing {
      try output.line(
        "\nThe full-text index \(name) isn't in the database. It was made on the copy, since MATCH needs it.")
    }
    for index in advice.unused {
      try output.line("\nNo query uses the index \(index.name), on \(index.text).")
    }
  }

  /// The best index of each query, each once.
  private static func advised(_ advice: IndexAdvice) -> [ValueIndexDefinition] {
    var found: [ValueIndexDefinition] = []
    for answer in advice.answers {
      if let best = answer.trials.first?.definition, !found.contains(best) { found.append(best) }
    }
    return found
  }

  /// The command that makes an index.
  private func command(_ name: String, _ definition: ValueIndexDefinition) -> String {
    var words = ["touchstone", "index", database.shownPath, "create", name]
    words += definition.expressions.map(\.description)
    if let unnest = definition.unnest { words += ["--unnest", "\(unnest.array) AS \(unnest.item)"] }
    if let condition = definition.condition { words += ["--where", condition.description] }
    return words.map(Self.quoted).joined(separator: " ")
  }

  /// A word as a shell reads it.
  private static func quoted(_ word: String) -> String {
    let plain = word.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "-_./:=,".contains($0)) }
    return plain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
  }

  private static func json(_ advice: IndexAdvice) -> JSONObjectText {
    [
      "queries": advice.answers.map { answer in
        [
          "name": answer.query.name, "rows": answer.rows, "seconds": answer.now.median,
          "plan": answer.now.plan,
          "indexes": answer.trials.map { trial in
            [
              "on": trial.definition.expressions.map(\.description),
              "unnest": trial.definition.unnest.map { "\($0.array) AS \($0.item)" },
              "where": trial.definition.condition.map(\.description),
              "seconds": trial.time.median, "ratio": answer.now.median / trial.time.median,
              "makingSeconds": trial.making, "plan": trial.time.plan,
            ] as JSONObjectText
          },
        ] as JSONObjectText
      },
      "unused": advice.unused.map(\.name), "missing": advice.missing, "tried": advice.tried,
    ]
  }
}
