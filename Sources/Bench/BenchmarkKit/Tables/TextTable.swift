/// A table of text. Each column is as wide as its widest cell. Columns without any text are left out.
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
    for row in results.rows {
      add([row[0].workload, row[0].parameters.text] + engines.map { cell($0, row) })
    }
  }

  /// Adds a row, with a cell for each column.
  package mutating func add(_ cells: String...) { add(cells) }

  /// Adds a row, with a cell for each column. Control characters are escaped.
  package mutating func add(_ cells: [String]) { rows.append(cells.map(TerminalText.escapedLine)) }

  /// The lines, without trailing spaces.
  package var lines: [String] {
    let all = titles.allSatisfy(\.isEmpty) ? rows : [titles] + rows
    let widths = titles.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      let cells = zip(row, zip(widths, alignments)).compactMap { cell, column -> String? in
        let (width, alignment) = column
        guard width > 0 else { return nil }
        let blanks = String(repeating: " ", count: width - cell.count)
        return alignment == .left ? cell + blanks : blanks + cell
      }
      return String(cells.joined(separator: "  ").reversed().drop { $0 == " " }.reversed())
    }
  }

  /// The lines as one text, without a newline at its end.
  package var text: String { lines.joined(separator: "\n") }
}
