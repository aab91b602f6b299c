/// The documents and positions of a term, or of all terms with a prefix. Documents are in ascending order.
///
/// A source has a current document; `PostingSource.end` is after the last one. Positions are decoded only
/// when they are asked for.
class PostingSource {
  static let end = UInt32.max

  /// The current document. Not valid before the first `advance`.
  @exclusivity(unchecked) final var document: UInt32 = 0

  /// Moves to the first document at or above `target`. If the current document is there already, it stays.
  func advance(to target: UInt32) throws { document = PostingSource.end }

  /// Moves to the next document.
  func next() throws { try advance(to: document &+ 1) }

  /// The number of occurrences in the document, in all columns together.
  var frequency: UInt32 { 0 }

  /// Calls `body` with each column of the document that has occurrences, and with their number.
  func forEachColumn(_ body: (_ column: Int, _ frequency: UInt32) -> Void) throws {}

  /// Appends the places in the document, in one column or in all columns, ascending. The upper 32 bits of a
  /// place are the column; the lower 32 bits are the position.
  func appendPositions(_ column: Int?, to positions: PositionList) throws {}

  /// The approximate number of documents.
  var estimate: Int { 0 }
}
