/// A table of text. Each column is as wide as its widest cell.
struct TextTable {
  /// Whether a column is aligned left or right.
  enum Alignment {
    case left
    case right
  }

  let titles: [String]
  let alignments: [Alignment]
  private var rows: [[String]] = []

  /// An empty `columns` makes a table without a title row.
  init(_ columns: [(title: String, alignment: Alignment)]) {
    titles = columns.map(\.title)
    alignments = columns.map(\.alignment)
  }

  mutating func add(_ cells: String...) { rows.append(cells) }
  mutating func add(_ cells: [String]) { rows.append(cells) }

  /// The lines, without trailing spaces.
  var lines: [String] {
    let all = titles.allSatisfy(\.isEmpty) ? rows : [titles] + rows
    let widths = titles.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        if column > 0 { line += "  " }
        let blanks = String(repeating: " ", count: widths[column] - cell.count)
        line += alignments[column] == .left ? cell + blanks : blanks + cell
      }
      while line.last == " " { line.removeLast() }
      return line
    }
  }

  /// Pads `text` with spaces to a width. At least two spaces are added.
  static func padded(_ text: String, to width: Int) -> String {
    text + String(repeating: " ", count: max(2, width - text.count))
  }

  /// A number with thousands separators: `31,591`.
  static func grouped(_ number: some BinaryInteger) -> String {
    var digits = String(number.magnitude)
    var groups: [String] = []
    while digits.count > 3 {
      groups.insert(String(digits.suffix(3)), at: 0)
      digits.removeLast(3)
    }
    return (number < 0 ? "-" : "") + ([digits] + groups).joined(separator: ",")
  }
}
