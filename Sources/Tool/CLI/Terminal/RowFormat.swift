import BenchmarkKit
import Bytes
import Datasets
import Touchstone

/// How the rows of a query are printed.
enum RowFormat: String, CaseIterable {
  case table, json, csv, line

  /// The format where none was chosen.
  static var standard: RowFormat { StandardOutput.isTerminal ? .table : .json }
}

/// Prints the rows of one query.
struct RowPrinter {
  private let format: RowFormat
  private let names: [String]
  private let output: StandardOutput
  private var table: TextTable
  /// The number of rows that were added.
  private(set) var count = 0

  init(_ format: RowFormat, columns names: [String], to output: StandardOutput) throws {
    self.format = format
    self.names = names
    self.output = output
    table = TextTable(names)
    if format == .csv {
      try output.write(names.map { $0.isEmpty ? "\"\"" : $0.csvField }.joined(separator: ",") + "\r\n")
    }
  }

  /// Prints a row. In a table, it is kept until `end()`, since the widths of the columns depend on all rows.
  mutating func add(_ row: QueryRow) throws {
    count += 1
    switch format {
    case .json: try output.line(row.json())
    case .csv:
      let line = try names.indices.map { try Self.field(row[$0]) }.joined(separator: ",")
      // An empty line would be no row for most readers.
      try output.write((line.isEmpty ? "\"\"" : line) + "\r\n")
    case .table: table.add(try names.indices.map { Self.cell(try Self.text(row[$0])) })
    case .line:
      if count > 1 { try output.line("") }
      let width = names.map(\.count).max() ?? 0
      for (index, name) in names.enumerated() where row[index].exists {
        let indent = String(repeating: " ", count: width - name.count)
        let line = "\(indent)\(name) = \(try Self.text(row[index]))"
        try output.line(String(decoding: TerminalText.escaped(Array(line.utf8)), as: UTF8.self))
      }
    }
  }

  /// Prints the rows of a query, and what was kept. Throws `Interrupted` when it is cancelled, after a call of `onCancel`.
  mutating func print(
    _ query: Query, _ parameters: [String: JSONValue], _ cancellation: QueryCancellation,
    onCancel: () throws -> Void = {}
  ) throws {
    do {
      try query.forEach(parameters, cancellation: cancellation) { row in
        try add(row)
        return true
      }
    } catch let error as QueryError where error.code == .cancelled {
      try onCancel()
      if count > 0 { try end() }
      throw Interrupted(count == 1 ? "1 row was printed" : "\(TextTable.grouped(count)) rows were printed")
    }
    try end()
  }

  /// Prints what was kept.
  func end() throws {
    guard format == .table else { return }
    var lines = table.lines
    if !lines.isEmpty { lines[0] = output.style.bold(lines[0]) }
    try output.lines(lines)
  }

  /// A string unchanged, any other value as JSON, and nothing for a missing value.
  private static func text(_ value: QueryResultValue) throws -> String {
    if let string = value.string { return string }
    guard value.exists else { return "" }
    var json: [UInt8] = []
    try value.writeJSON(into: &json)
    return String(decoding: json, as: UTF8.self)
  }

  /// The field of CSV, from which an import makes the same value.
  private static func field(_ value: QueryResultValue) throws -> String {
    if let string = value.string { return CSVValue.field(ofString: string) }
    return value.exists ? CSVValue.field(ofJSON: try text(value)) : ""
  }

  /// The text of a table cell: one line of at most 60 characters.
  static func cell(_ text: String) -> String {
    let line = String(text.map { $0.isNewline || $0 == "\t" ? " " : $0 })
    return line.count > 60 ? line.prefix(59) + "…" : line
  }
}
