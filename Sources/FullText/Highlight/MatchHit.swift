/// An occurrence of a query's term in a document.
public struct MatchHit: Hashable, Sendable {
  /// The index of the column.
  public var column: Int
  /// The number of the term in the query, counted from 0 in the order of the text. Stop words have no number.
  public var term: Int
  /// The offset of the word's first byte in the column's text.
  public var start: Int
  /// The number of bytes of the word in the text.
  public var length: Int

  /// Creates a hit.
  public init(column: Int, term: Int, start: Int, length: Int) {
    self.column = column
    self.term = term
    self.start = start
    self.length = length
  }
}
