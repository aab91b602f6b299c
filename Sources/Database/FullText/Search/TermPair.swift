/// Documents that have two terms at certain distances: a phrase of two words, or two words near each other.
/// Positions are read only in documents that have both terms, and only until the answer is known.
final class TermPair {
  /// The term with fewer documents. It decides where to look for the other term.
  private let lead: TermPostings
  private let other: TermPostings
  /// The range of the other term's position, relative to the first term's.
  private let low: Int
  private let high: Int
  private let column: Int?

  /// Creates a pair. The position of `second` minus that of `first` must be from `low` to `high`. Both can be
  /// negative. `column` is the column to search; nil means any column.
  init(_ first: TermPostings, _ second: TermPostings, _ low: Int, _ high: Int, column: Int?) {
    let isFirst = first.documentCount <= second.documentCount
    lead = isFirst ? first : second
    other = isFirst ? second : first
    self.low = isFirst ? low : -high
    self.high = isFirst ? high : -low
    self.column = column
  }

  /// Moves to the first document at or above `target` and returns it, or `PostingSource.end` if there is
  /// none. Both terms are then at this document.
  func advance(to target: UInt32) throws -> UInt32 {
    let (lead, other) = (lead, other)
    var target = target
    while true {
      let document = try lead.moved(to: target)
      if document == PostingSource.end { return document }
      let found = try other.moved(to: document)
      if found == document {
        if try isInPlace() { return document }
        target = document &+ 1
      } else {
        if found == PostingSource.end { return found }
        target = found
      }
    }
  }

  @inline(__always)
  private func isInPlace() throws -> Bool {
    var (own, others) = (try lead.runs(), try other.runs())
    while true {
      if own.column == others.column {
        if column == nil || column == own.column {
          // The positions of the shorter run decide where to look in the longer run.
          let isFound =
            own.count <= others.count
            ? try PositionRuns.isAny(of: own, within: low, high, of: others)
            : try PositionRuns.isAny(of: others, within: -high, -low, of: own)
          if isFound { return true }
        }
        guard try own.next(), try others.next() else { return false }
      } else if own.column < others.column {
        guard try own.next() else { return false }
      } else {
        guard try others.next() else { return false }
      }
    }
  }
}
