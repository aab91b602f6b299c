/// The documents that match a part of a query, by ascending number.
class MatchIterator {
  /// The current document; `PostingSource.end` after the last one. Not valid before the first `advance`.
  @exclusivity(unchecked) final var document: UInt32 = 0

  /// Moves to the first document at or above `target`. Targets must not descend.
  func advance(to target: UInt32) throws { document = PostingSource.end }

  /// Moves to the next document.
  func next() throws { try advance(to: document &+ 1) }

  /// The approximate number of documents. AND begins with the part that has the smallest estimate.
  var estimate: Int { 0 }
}

/// A part of a query that has positions in texts: a term, a prefix or a phrase.
class OccurrenceIterator: MatchIterator {
  /// The number of terms in an occurrence.
  var termCount: Int { 1 }

  /// Returns the positions of the first terms of the occurrences, ascending. The list is valid until the
  /// iterator moves or until the next call.
  func occurrences() throws -> PositionList { PositionList() }

  /// Returns the sum over the columns of the number of occurrences times the weight of the column. Nil means
  /// a weight of 1 for each column.
  func frequency(_ weights: [Double]?) throws -> Double { 0 }
}

/// The documents that have a term, or a term with a prefix, in any column or in one column.
final class TermIterator: OccurrenceIterator {
  let source: PostingSource
  let column: Int?
  private let places = PositionList()

  init(_ source: PostingSource, column: Int?) {
    self.source = source
    self.column = column
  }

  /// The postings of the term, if it is a single term without a column.
  var plain: TermPostings? { column == nil ? source as? TermPostings : nil }

  override var estimate: Int { source.estimate }

  override func advance(to target: UInt32) throws {
    try source.advance(to: target)
    try settle()
  }

  override func next() throws {
    try source.next()
    try settle()
  }

  @inline(__always)
  private func settle() throws {
    if let column {
      while source.document != PostingSource.end {
        var isThere = false
        try source.forEachColumn { own, _ in if own == column { isThere = true } }
        if isThere { break }
        try source.next()
      }
    }
    document = source.document
  }

  override func occurrences() throws -> PositionList {
    places.removeAll()
    try source.appendPositions(column, to: places)
    return places
  }

  override func frequency(_ weights: [Double]?) throws -> Double {
    if weights == nil, column == nil { return Double(source.frequency) }
    var sum = 0.0
    try source.forEachColumn { own, frequency in
      if column == nil || column == own { sum += Double(frequency) * (weights?[own] ?? 1) }
    }
    return sum
  }
}

/// The documents that have several terms at consecutive positions, or a term at the beginning of a column.
final class PhraseIterator: OccurrenceIterator {
  private let sources: [PostingSource]
  /// The sources, ordered by their number of documents.
  private let order: [PostingSource]
  private let column: Int?
  private let isFirst: Bool
  /// Finds the documents of a phrase of two terms without prefixes.
  private let pair: TermPair?
  @exclusivity(unchecked) private var isBegun = false
  /// Whether `starts` belongs to the current document.
  @exclusivity(unchecked) private var hasStarts = false
  private let starts = PositionList()
  private let positions = PositionList()

  init(_ sources: [PostingSource], column: Int?, isFirst: Bool) {
    self.sources = sources
    if sources.count == 2, !isFirst, let first = sources[0] as? TermPostings,
      let second = sources[1] as? TermPostings
    {
      pair = TermPair(first, second, 1, 1, column: column)
    } else {
      pair = nil
    }
    order = sources.sorted { $0.estimate < $1.estimate }
    self.column = column
    self.isFirst = isFirst
  }

  override var estimate: Int { (order.first?.estimate ?? 0) / max(1, sources.count) }
  override var termCount: Int { sources.count }

  override func advance(to target: UInt32) throws {
    if isBegun, document >= target { return }
    isBegun = true
    if let pair {
      hasStarts = false
      document = try pair.advance(to: target)
      return
    }
    hasStarts = true
    var target = target
    while true {
      guard let lead = order.first else { break }
      try lead.advance(to: target)
      target = lead.document
      if target == PostingSource.end { break }
      var isAligned = true
      for source in order.dropFirst() {
        try source.advance(to: target)
        if source.document != target {
          target = source.document
          isAligned = false
          break
        }
      }
      if target == PostingSource.end { break }
      guard isAligned else { continue }
      if try findStarts() {
        document = target
        return
      }
      target += 1
    }
    document = PostingSource.end
  }

  /// Finds the positions at which the terms are consecutive.
  private func findStarts() throws -> Bool {
    let (starts, positions) = (starts, positions)
    starts.removeAll()
    try sources[0].appendPositions(column, to: starts)
    if isFirst {
      var kept = 0
      let places = starts.places
      for index in 0..<starts.count where places[index] & 0xFFFF_FFFF == 0 {
        places[kept] = places[index]
        kept += 1
      }
      starts.truncate(to: kept)
    }
    var offset = 1
    while offset < sources.count, !starts.isEmpty {
      positions.removeAll()
      try sources[offset].appendPositions(column, to: positions)
      // Both lists are ascending.
      let (first, second) = (starts.places, positions.places)
      let (firstCount, secondCount) = (starts.count, positions.count)
      var index = 0
      var place = 0
      var kept = 0
      while index < firstCount, place < secondCount {
        let wanted = first[index] &+ UInt64(truncatingIfNeeded: offset)
        let found = second[place]
        if found == wanted {
          first[kept] = first[index]
          kept &+= 1
        }
        // Without a branch, because the processor couldn't predict it.
        place &+= found <= wanted ? 1 : 0
        index &+= found >= wanted ? 1 : 0
      }
      starts.truncate(to: kept)
      offset &+= 1
    }
    return !starts.isEmpty
  }

  override func occurrences() throws -> PositionList {
    if !hasStarts {
      _ = try findStarts()
      hasStarts = true
    }
    return starts
  }

  override func frequency(_ weights: [Double]?) throws -> Double {
    let starts = try occurrences()
    guard let weights else { return Double(starts.count) }
    // Column by column, as for a term.
    var counts = Array(repeating: 0, count: weights.count)
    for index in 0..<starts.count { counts[Int(starts.places[index] >> 32)] += 1 }
    var sum = 0.0
    for (count, weight) in zip(counts, weights) where count > 0 { sum += Double(count) * weight }
    return sum
  }
}

/// The documents in which each phrase occurs near the phrase before it.
final class NearIterator: MatchIterator {
  private let phrases: [OccurrenceIterator]
  private let distances: [Int]
  private let aligned: AndIterator
  /// Finds the documents of two terms without prefixes.
  private let pair: TermPair?
  /// The reached positions; the two lists take turns.
  private let lists = [PositionList(), PositionList()]

  init(_ phrases: [OccurrenceIterator], distances: [Int]) {
    self.phrases = phrases
    self.distances = distances
    aligned = AndIterator(phrases)
    if phrases.count == 2, distances.count == 1, let first = phrases[0] as? TermIterator,
      let second = phrases[1] as? TermIterator, let left = first.source as? TermPostings,
      let right = second.source as? TermPostings, first.column == second.column
    {
      // Words at a distance of 0 are adjacent.
      let reach = min(max(0, distances[0]), Int(UInt32.max)) + 1
      pair = TermPair(left, right, -reach, reach, column: first.column)
    } else {
      pair = nil
    }
  }

  override var estimate: Int { aligned.estimate / 2 }

  override func advance(to target: UInt32) throws {
    if let pair {
      document = try pair.advance(to: target)
      return
    }
    try aligned.advance(to: target)
    while aligned.document != PostingSource.end {
      if try areNear() { break }
      try aligned.next()
    }
    document = aligned.document
  }

  private func areNear() throws -> Bool {
    // The occurrences that are reached from the first phrase.
    var reached = try phrases[0].occurrences()
    for index in 1..<phrases.count {
      let own = try phrases[index].occurrences()
      let kept = lists[index & 1]
      kept.removeAll()
      let target = kept.extend(by: own.count)
      let count = NearIterator.nearOnes(
        own, UInt64(phrases[index].termCount), reached, UInt64(phrases[index - 1].termCount),
        distance: UInt64(max(0, distances[index - 1])), isLast: index == phrases.count - 1, to: target)
      kept.truncate(to: count)
      if count == 0 { return false }
      reached = kept
    }
    return !reached.isEmpty
  }

  /// Writes the positions of a phrase that are near a position of the phrase before it. For the last phrase,
  /// one position is enough.
  private static func nearOnes(
    _ own: PositionList, _ ownLength: UInt64, _ others: PositionList, _ otherLength: UInt64,
    distance: UInt64, isLast: Bool, to target: UnsafeMutablePointer<UInt64>
  ) -> Int {
    let (places, before) = (own.places, others.places)
    let otherCount = others.count
    var kept = 0
    // The first of the others that isn't too far before `start`.
    var low = 0
    for index in 0..<own.count {
      let start = places[index]
      let position = start & 0xFFFF_FFFF
      // The largest distance in front of `start`, within the column.
      let reach = min(position, otherLength &+ distance)
      while low < otherCount, before[low] < start &- reach { low &+= 1 }
      if low == otherCount { break }
      let last = (start &- position) &+ min(0xFFFF_FFFF, position &+ ownLength &+ distance)
      var place = low
      while place < otherCount, before[place] <= last {
        let other = before[place]
        if other &+ otherLength <= start || other >= start &+ ownLength {
          target[kept] = start
          kept &+= 1
          if isLast { return kept }
          break
        }
        place &+= 1
      }
    }
    return kept
  }
}

/// The documents that all parts match.
final class AndIterator: MatchIterator {
  let parts: [MatchIterator]

  init(_ parts: [MatchIterator]) { self.parts = parts.sorted { $0.estimate < $1.estimate } }

  override var estimate: Int { parts.first?.estimate ?? 0 }

  override func advance(to target: UInt32) throws {
    var target = target
    search: while target != PostingSource.end {
      for part in parts {
        try part.advance(to: target)
        if part.document != target {
          // The first part sets the target. A later part that moves past it restarts the search.
          target = part.document
          if part !== parts[0] || target == PostingSource.end { continue search }
        }
      }
      break
    }
    document = target
  }
}

/// The documents that at least one part matches.
final class OrIterator: MatchIterator {
  private var parts: [MatchIterator]
  private var isBegun = false

  init(_ parts: [MatchIterator]) { self.parts = parts }

  override var estimate: Int { parts.reduce(0) { $0 + $1.estimate } }

  override func advance(to target: UInt32) throws {
    var least = PostingSource.end
    for part in parts {
      if !isBegun || part.document < target { try part.advance(to: target) }
      if part.document < least { least = part.document }
    }
    isBegun = true
    document = least
  }
}

/// The documents that one part matches and another part doesn't.
final class NotIterator: MatchIterator {
  private let kept: MatchIterator
  private let excluded: MatchIterator

  init(_ kept: MatchIterator, _ excluded: MatchIterator) {
    self.kept = kept
    self.excluded = excluded
  }

  override var estimate: Int { kept.estimate }

  override func advance(to target: UInt32) throws {
    try kept.advance(to: target)
    while kept.document != PostingSource.end {
      try excluded.advance(to: kept.document)
      if excluded.document != kept.document { break }
      try kept.next()
    }
    document = kept.document
  }
}
