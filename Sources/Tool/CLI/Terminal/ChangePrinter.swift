import Touchstone

/// Prints what a statement has changed: the rows of RETURNING, or in a dry run the documents; and how many
/// documents there are on standard error.
struct ChangePrinter {
  private let format: RowFormat
  private let output: StandardOutput

  init(_ format: RowFormat, to output: StandardOutput) {
    self.format = format
    self.output = output
  }

  func print(_ results: ChangeResults, isDryRun: Bool) throws {
    if !results.columnNames.isEmpty {
      var printer = try RowPrinter(format, columns: results.columnNames, to: output)
      for row in results.rows { try printer.add(row) }
      try printer.end()
    } else if isDryRun {
      for document in results.documents { try output.line("\(document.kind.rawValue) \(document.id)") }
    }
    try output.flush()
    guard results.indexes.isEmpty else {
      for index in results.indexes {
        StandardError.line("\(isDryRun ? "would be " : "")\(index.kind.rawValue): index \(index.name)")
      }
      return
    }
    let count = TextTable.counted(results.documents.count, "document")
    StandardError.line(isDryRun ? "would change \(count); nothing was changed" : "changed \(count)")
  }
}
