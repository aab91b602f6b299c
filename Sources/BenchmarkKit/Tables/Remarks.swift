/// What the results of a suite mean, in words, tables, and engines that are held against each other.
public struct Remarks: Sendable {
  /// A table: a row of heads, then rows of as many cells.
  public struct Table: Sendable, Equatable {
    /// The names of the columns.
    public let heads: [String]
    /// A cell a column.
    public let rows: [[String]]

    /// A table; see the properties.
    public init(heads: [String], rows: [[String]]) {
      self.heads = heads
      self.rows = rows
    }

    /// The lines for a terminal; columns are aligned by characters.
    public var lines: [String] { TextColumns.aligned([heads] + rows) }
  }

  /// Two engines whose times are drawn as a ratio.
  public struct Pair: Sendable, Equatable {
    /// The engine whose time is divided.
    public let engine: String
    /// The engine by whose time it is divided.
    public let base: String

    /// A pair; see the properties.
    public init(_ engine: String, over base: String) {
      self.engine = engine
      self.base = base
    }
  }

  /// A sentence each.
  public var sentences: [String]
  /// Tables, below the sentences.
  public var tables: [Table]
  /// What is drawn as ratios.
  public var pairs: [Pair]

  /// What was measured with, where it isn't the data set of the results file: `made documents`.
  public var data: String?

  /// Remarks; see the properties.
  public init(_ sentences: [String] = [], tables: [Table] = [], pairs: [Pair] = [], data: String? = nil) {
    self.sentences = sentences
    self.tables = tables
    self.pairs = pairs
    self.data = data
  }
}
