/// Documents in which one term stands at certain distances from another: a phrase of two words, or two words near each
/// other. Positions are read of documents that have both, as far as it takes to know.
final class TermPair {
  /// The term with fewer documents, which tells where to look for the other.
  private let lead: TermPostings
  private let other: TermPostings
  /// Where the other one has to be, from the first one.
  private let low: Int
  private let high: Int
  private let column: Int?

  /// The second term comes so many places behind the first, `low` to `high`, which may be below 0; in one column or in
  /// any.
  init(_ first: TermPostings, _ second: TermPostings, _ low: Int, _ high: Int, column: Int?) {
    let isFirst = first.documentCount <= second.documentCount
    lead = isFirst ? first : second
    other = isFirst ? second : first
    self.low = isFirst ? low : -high
    self.high = isFirst ? high : -low
    self.column = column
  }

  /// The first document at or above a number, `PostingSource.end` when there is none. Both terms stand on it.
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
          // The shorter run tells where to look in the longer one.
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
