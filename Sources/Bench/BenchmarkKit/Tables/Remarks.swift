/// Remarks on the results of a suite: sentences, tables, and pairs of engines to compare.
package struct Remarks: Sendable {
  /// A table: column names and rows, with the same number of cells in each.
  package struct Table: Sendable, Equatable {
    /// The names of the columns.
    package let heads: [String]
    /// The rows, one cell per column.
    package let rows: [[String]]

    /// Makes a table. See the properties.
    package init(heads: [String], rows: [[String]]) {
      self.heads = heads
      self.rows = rows
    }

    /// The lines for a terminal, with columns aligned by characters.
    package var lines: [String] {
      var table = TextTable(heads)
      rows.forEach { table.add($0) }
      return table.lines
    }
  }

  /// Two engines whose ratio of times is charted.
  package struct Pair: Sendable, Equatable {
    /// The engine whose time is the numerator.
    package let engine: String
    /// The engine whose time is the denominator.
    package let base: String

    /// Makes a pair.
    package init(_ engine: String, over base: String) {
      self.engine = engine
      self.base = base
    }
  }

  /// The sentences.
  package var sentences: [String]
  /// The tables, which follow the sentences.
  package var tables: [Table]
  /// The pairs of engines whose ratios are charted.
  package var pairs: [Pair]

  /// The data of the suite, if it isn't the data set of the results file: `made documents`.
  package var data: String?

  /// Makes remarks. See the properties.
  package init(_ sentences: [String] = [], tables: [Table] = [], pairs: [Pair] = [], data: String? = nil) {
    self.sentences = sentences
    self.tables = tables
    self.pairs = pairs
    self.data = data
  }
}
