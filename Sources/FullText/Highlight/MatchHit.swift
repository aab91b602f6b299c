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
