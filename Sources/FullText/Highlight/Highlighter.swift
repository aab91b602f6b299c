/// An occurrence of a query's term in a document.
public struct MatchHit: Hashable, Sendable {
  /// The index of the column.
  public var column: Int
  /// The number of the term in the query, from 0, in the order of its text; stop words have none.
  public var term: Int
  /// The word's first byte in the column's text.
  public var start: Int
  /// How many bytes the word has in the text.
  public var length: Int

  /// A hit.
  public init(column: Int, term: Int, start: Int, length: Int) {
    self.column = column
    self.term = term
    self.start = start
    self.length = length
  }
}

/// Finds a query's terms in the texts of documents, which are analysed again for it. For one thread at a time.
public struct Highlighter {
  let query: MatchQuery
  let analyzer: TextAnalyzer

  /// A highlighter of a query; the analyzer is of the options that the index has.
  public init(_ query: MatchQuery, analyzer: TextAnalyzer) {
    self.query = query
    self.analyzer = analyzer
  }

  /// The occurrences of the query's terms, ordered by column, start and term: of a phrase only whole ones, of NEAR
  /// only those near each other, of what is on the right of NOT none.
  public func hits(in columns: [UnsafeRawBufferPointer]) -> [MatchHit] { [] }

  /// The part of a column's text that has the most distinct terms of the query, with each hit between `before` and
  /// `after`.
  ///
  /// - Parameters:
  ///   - columns: the texts of the document's columns.
  ///   - ellipsis: what stands for text that is left out.
  ///   - words: how many words are shown at most; at least 1.
  /// - Returns: the beginning of the first column that has text, if nothing matches.
  public func snippet(
    of columns: [UnsafeRawBufferPointer], before: String = "<b>", after: String = "</b>",
    ellipsis: String = "…", words: Int = 15
  ) -> String { "" }
}
