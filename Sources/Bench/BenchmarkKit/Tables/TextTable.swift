/// A table of text. Each column is as wide as its widest cell, up to a limit. Columns without any text are left out.
package struct TextTable {
  /// Whether a column is aligned left or right.
  package enum Alignment: Sendable {
    case left
    case right
  }

  private let titles: [String]
  private let alignments: [Alignment]
  private var rows: [[String]] = []

  /// Makes a table without rows. If all titles are empty, it has no title row.
  package init(_ columns: [(title: String, alignment: Alignment)]) {
    titles = columns.map { TerminalText.escapedLine($0.title) }
    alignments = columns.map(\.alignment)
  }

  /// Makes a table without rows. All columns are aligned left.
  package init(_ titles: [String]) { self.init(titles.map { ($0, .left) }) }

  /// Makes a table with a row for each workload and a column for each engine. `cell` gets the engine and the
  /// results of the workload.
  init(
    _ title: String, _ results: [WorkloadResult], engines: [String],
    cell: (_ engine: String, _ row: [WorkloadResult]) -> String
  ) {
    self.init([title, ""] + engines)
    let parameters = ParameterColumn(results)
    for row in results.rows {
      add([row[0].workload, parameters.text(row[0])] + engines.map { cell($0, row) })
    }
  }

  /// Adds a row, with a cell for each column.
  package mutating func add(_ cells: String...) { add(cells) }

  /// Adds a row, with a cell for each column. Control characters are escaped.
  package mutating func add(_ cells: [String]) { rows.append(cells.map(TerminalText.escapedLine)) }

  /// The greatest width of a column, in characters. A longer cell is written whole, and what follows it in its row isn't aligned: one
  /// long name doesn't make all rows as long.
  private static let maximumWidth = 200

  /// The lines, without trailing spaces.
  package var lines: [String] {
    let all = titles.allSatisfy(\.isEmpty) ? rows : [titles] + rows
    let widths = titles.indices.map { column in
      min(Self.maximumWidth, all.map { $0[column].count }.max() ?? 0)
    }
    return all.map { line(of: $0, widths) }
  }

  private func line(of row: [String], _ widths: [Int]) -> String {
    let shown = widths.indices.filter { widths[$0] > 0 }
    let written = shown.prefix { $0 <= row.lastIndex { !$0.isEmpty } ?? -1 }
    var line = ""
    for column in written {
      if column != shown.first { line += "  " }
      let cell = row[column]
      let blanks = String(repeating: " ", count: max(0, widths[column] - cell.count))
      line += alignments[column] == .left ? cell + blanks : blanks + cell
    }
    while line.utf8.last == UInt8(ascii: " ") { line.removeLast() }
    return line
  }

  /// The lines as one text, without a newline at its end.
  package var text: String { lines.joined(separator: "\n") }
}
