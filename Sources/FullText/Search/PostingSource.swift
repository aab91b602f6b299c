/// The documents that have something, by ascending number, and where: a term's postings, or those of a prefix's terms.
///
/// It stands on a document; `PostingSource.end` is behind the last. What it says of positions is worked out when it is
/// asked for.
class PostingSource {
  static let end = UInt32.max

  /// The document it stands on. Before the first `advance` it stands nowhere.
  @exclusivity(unchecked) final var document: UInt32 = 0

  /// Goes to the first document at or above a number; stays where that is already so, but for the first time.
  func advance(to target: UInt32) throws { document = PostingSource.end }

  /// Goes to the next document.
  func next() throws { try advance(to: document &+ 1) }

  /// How often it occurs in the document, all columns together.
  var frequency: UInt32 { 0 }

  /// Calls `body` with each column of the document that it occurs in, and how often.
  func forEachColumn(_ body: (_ column: Int, _ frequency: UInt32) -> Void) throws {}

  /// Appends where it occurs in the document, in one column or in all: the column in the upper 32 bits and the position
  /// in the lower ones, ascending.
  func appendPositions(_ column: Int?, to positions: PositionList) throws {}

  /// About how many documents it has.
  var estimate: Int { 0 }
}
