import Bytes
import Query
import Touchstone

/// `touchstone query`: prints the rows of a query, or its plan.
struct QueryCommand: Subcommand {
  /// The format of the rows.
  private enum Format: String, CaseIterable {
    case table, json, csv
  }

  private struct Parameter {
    let name: String
    let value: JSONValue

    /// Parses `name=value`. A value that isn't JSON is a string.
    init(_ text: String) throws {
      guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
        throw UsageError("'\(text)' doesn't have the form NAME=VALUE")
      }
      let name = text[..<sign]
      self.name = String(name.first == "$" ? name.dropFirst() : name)
      let value = String(text[text.index(after: sign)...])
      self.value = (try? Array(value.utf8).withUnsafeBytes { try JSONValue(json: $0) }) ?? .string(value)
    }
  }

  private static let text = Positional("QUERY", "The query; the database is _ or its name")
  private static let parameter = Option<Parameter>(
    "param", "NAME=VALUE", "The value of $NAME: JSON, otherwise a string; may be repeated",
    parse: { try Parameter($0) })
  private static let format = Option<Format>(
    "format", "FORMAT", "table, json (one object per line) or csv", refusal: "isn't table, json or csv")
  private static let rowLimit = Option<Int>(
    "row-limit", "N", in: 0...Int.max, "Fails after N rows if the query has more")
  private static let timeLimit = Option<Duration>(
    "time-limit", "SECONDS", "Fails if the query takes longer; for example 0.5"
  ) { text in
    guard let seconds = Double(text), seconds >= 0, seconds < 1e9 else {
      throw UsageError("'\(text)' isn't a number of seconds from 0 to 1000000000")
    }
    return .seconds(seconds)
  }
  private static let explain = Flag(
    "explain", "Prints the plan of the query and doesn't run it")

  static let usage = Usage(
    "query", "Runs a N1QL query",
    positionals: [DatabaseArguments.database, text],
    options: [parameter, format, rowLimit, timeLimit, explain] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone query travel 'SELECT name FROM _ WHERE type = $t LIMIT 10' --param t=hotel",
      "touchstone query travel 'EXPLAIN ANALYZE SELECT COUNT(*) FROM _' --format table",
    ],
    notes:
      """
      The default format is table on a terminal and json otherwise. EXPLAIN ANALYZE runs the query and shows the
      rows and the time of each step. docs/query.md describes the language.
      """)

  private let database: DatabaseArguments
  private let text: String
  private let parameters: [String: JSONValue]
  private let format: Format
  private let explains: Bool
  private let limits: Query.Options

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    text = try arguments.required(Self.text)
    parameters = Dictionary(
      try arguments.allValues(Self.parameter).map { ($0.name, $0.value) },
      uniquingKeysWith: { _, last in last })
    format = try arguments.value(Self.format) ?? (StandardOutput.isTerminal ? .table : .json)
    explains = arguments[Self.explain]
    limits = Query.Options(
      rowLimit: try arguments.value(Self.rowLimit), timeLimit: try arguments.value(Self.timeLimit))
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
    let query = try database.query(text, options: limits)
    if explains {
      try output.line(query.explain(parameters).description)
    } else {
      let names = query.columnNames
      var count = 0
      var isInterrupted = false
      var table = TextTable(names.map { ($0, .left) })
      if format == .csv { try output.write(names.map(\.csvField).joined(separator: ",") + "\r\n") }
      try query.forEach(parameters) { row in
        isInterrupted = Interrupt.isRequested
        guard !isInterrupted else { return false }
        count += 1
        switch format {
        case .json: try output.line(row.json())
        case .csv:
          let line = try names.indices.map { try Self.text(row[$0]).csvField }.joined(separator: ",")
          // An empty line would be no row for most readers.
          try output.write((line.isEmpty ? "\"\"" : line) + "\r\n")
        case .table: table.add(try names.indices.map { Self.cell(try Self.text(row[$0])) })
        }
        return true
      }
      if format == .table { try output.lines(table.lines) }
      if isInterrupted { throw Interrupted("\(count) rows were printed") }
    }
    try database.close()
  }

  /// A string unchanged, any other value as JSON, and nothing for a missing value.
  private static func text(_ value: QueryResultValue) throws -> String {
    if let string = value.string { return string }
    guard value.exists else { return "" }
    var json: [UInt8] = []
    try value.writeJSON(into: &json)
    return String(decoding: json, as: UTF8.self)
  }

  /// The text of a table cell: one line of at most 60 characters.
  private static func cell(_ text: String) -> String {
    let line = String(text.map { $0.isNewline || $0 == "\t" ? " " : $0 })
    return line.count > 60 ? line.prefix(59) + "…" : line
  }
}
