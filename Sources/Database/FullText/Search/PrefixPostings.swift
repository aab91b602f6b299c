/// The postings of all terms with a prefix, merged like the postings of one term.
final class PrefixPostings: PostingSource {
  private let terms: [TermPostings]
  /// A heap of the terms, with the lowest document on top.
  private var heap: [TermPostings] = []
  private var isBegun = false

  init(_ terms: [TermPostings]) { self.terms = terms }

  override var estimate: Int { terms.reduce(0) { $0 + $1.estimate } }

  override func advance(to target: UInt32) throws {
    if !isBegun {
      isBegun = true
      for term in terms {
        try term.advance(to: target)
        if term.document != PostingSource.end { heap.append(term) }
      }
      heap.sort { $0.document < $1.document }
    } else {
      if document >= target { return }
      while let least = heap.first, least.document < target {
        if least.document &+ 1 == target { try least.next() } else { try least.advance(to: target) }
        if least.document == PostingSource.end {
          let last = heap.removeLast()
          if heap.isEmpty { break }
          heap[0] = last
        }
        siftDown()
      }
    }
    document = heap.first?.document ?? PostingSource.end
  }

  private func siftDown() {
    var parent = 0
    let count = heap.count
    while true {
      var least = parent
      let child = 2 * parent + 1
      if child < count, heap[child].document < heap[least].document { least = child }
      if child + 1 < count, heap[child + 1].document < heap[least].document { least = child + 1 }
      guard least != parent else { return }
      heap.swapAt(parent, least)
      parent = least
    }
  }

  /// Calls `body` with each term that the current document has.
  private func forEachTerm(_ body: (TermPostings) throws -> Void) rethrows {
    try forEachTerm(from: 0, body)
  }

  // In a heap, all terms at the lowest document are connected at the top.
  private func forEachTerm(from index: Int, _ body: (TermPostings) throws -> Void) rethrows {
    guard index < heap.count, heap[index].document == document else { return }
    try body(heap[index])
    try forEachTerm(from: 2 * index + 1, body)
    try forEachTerm(from: 2 * index + 2, body)
  }

  override var frequency: UInt32 {
    var sum: UInt32 = 0
    forEachTerm { sum &+= $0.frequency }
    return sum
  }

  override func forEachColumn(_ body: (_ column: Int, _ frequency: UInt32) -> Void) throws {
    var sums: [Int: UInt32] = [:]
    try forEachTerm { try $0.forEachColumn { sums[$0, default: 0] &+= $1 } }
    for (column, frequency) in sums.sorted(by: { $0.key < $1.key }) { body(column, frequency) }
  }

  override func appendPositions(_ column: Int?, to positions: PositionList) throws {
    let start = positions.count
    var terms = 0
    try forEachTerm {
      try $0.appendPositions(column, to: positions)
      terms += 1
    }
    if terms > 1 { positions.sort(from: start) }
  }
}
