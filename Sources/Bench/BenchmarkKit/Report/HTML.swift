/// Parts of a web page.
enum HTML {
  /// Text as HTML, also inside an attribute.
  static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
      .replacing("\"", with: "&quot;")
  }

  /// A cell of a table, as HTML.
  struct Cell {
    let html: String
    let isBest: Bool

    /// No value.
    static let none = Cell(html: "")

    init(html: String, isBest: Bool = false) {
      self.html = html
      self.isBest = isBest
    }

    init(_ text: String, isBest: Bool = false) { self.init(html: HTML.escaped(text), isBest: isBest) }
  }

  /// A table whose first column names the rows. On a narrow screen each row becomes a block, with the names of
  /// the columns before the values.
  static func table(_ heads: [String], _ rows: [[Cell]], isWords: Bool = false) -> String {
    let head = heads.map { "<th scope=\"col\">\(escaped($0))</th>" }.joined()
    let body = rows.map { row in
      let names = row.prefix(1).map { "<th scope=\"row\">\($0.html)</th>" }
      let values = zip(heads, row).dropFirst().map { head, cell in
        let kind = cell.isBest ? " class=\"best\"" : cell.html.isEmpty ? " class=\"none\"" : ""
        return "<td\(kind) data-label=\"\(escaped(head))\">\(cell.html)</td>"
      }
      return "<tr>\((names + values).joined())</tr>"
    }
    return """
      <table\(isWords ? " class=\"words\"" : "")>
      <thead><tr>\(head)</tr></thead>
      <tbody>
      \(body.joined(separator: "\n"))
      </tbody>
      </table>
      """
  }

  /// A part that is folded until someone opens it. `anchor` is inside, so that a link to it opens the part.
  static func folded(_ summary: String, anchor: String? = nil, _ body: String) -> String {
    """
    <details>
    <summary>\(summary)</summary>
    <div\(anchor.map { " id=\"\($0)\"" } ?? "") class="body">
    \(body)
    </div>
    </details>
    """
  }
}
