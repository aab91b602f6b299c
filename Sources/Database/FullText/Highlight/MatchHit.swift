/// An occurrence of a query's term in a document.
package struct MatchHit: Hashable, Sendable {
  /// The index of the column.
  package var column: Int
  /// The number of the term in the query, counted from 0 in the order of the text. Stop words have no number.
  package var term: Int
  /// The offset of the word's first byte in the column's text.
  package var start: Int
  /// The number of bytes of the word in the text.
  package var length: Int

  /// Creates a hit.
  package init(column: Int, term: Int, start: Int, length: Int) {
    self.column = column
    self.term = term
    self.start = start
    self.length = length
  }
}
