// Finds a query's terms in one column of one document.

/// The terms of a query, for comparison with the terms of a text.
struct QueryTerms {
  /// The terms and their numbers in the query. Terms on the right side of a NOT are missing.
  private var terms: [(number: Int, bytes: [UInt8], isPrefix: Bool)] = []
  /// Indexes into `terms`, by the first byte of the term.
  private var byFirstByte: [[Int]] = Array(repeating: [], count: 256)

  init(_ phrases: [MatchPhrase]) {
    for phrase in phrases {
      for (index, term) in phrase.terms.enumerated() {
        guard let first = term.bytes.first else { continue }
        byFirstByte[Int(first)].append(terms.count)
        terms.append((phrase.firstTerm + index, term.bytes, term.isPrefix))
      }
    }
  }

  /// Calls `body` with the number of each query term that a term of the text matches.
  @inline(__always)
  func forEachMatch(of term: UnsafeRawBufferPointer, _ body: (Int) -> Void) {
    for place in byFirstByte[Int(term[0])] {
      let candidate = terms[place]
      guard candidate.isPrefix ? term.count >= candidate.bytes.count : term.count == candidate.bytes.count,
        term.prefix(candidate.bytes.count).elementsEqual(candidate.bytes)
      else { continue }
      body(candidate.number)
    }
  }
}

/// The text of a column, analysed for a query.
struct ColumnTerms {
  /// The byte ranges of the words, by position.
  private(set) var words: [(start: Int, end: Int)] = []
  /// The positions of each query term, ascending.
  private var positions: [Int: [Int]] = [:]

  init(_ text: UnsafeRawBufferPointer, _ terms: QueryTerms, _ analyzer: TextAnalyzer) {
    analyzer.analyze(text) { term, token in
      words.append((token.start, token.end))
      terms.forEachMatch(of: term) { positions[$0, default: []].append(token.position) }
    }
  }

  /// Returns the positions at which a phrase begins, ascending.
  func occurrences(of phrase: MatchPhrase) -> [Int] {
    guard let starts = positions[phrase.firstTerm] else { return [] }
    return starts.filter { start in
      (!phrase.terms[0].isFirst || start == 0)
        && phrase.terms.indices.dropFirst().allSatisfy { index in
          positions[phrase.firstTerm + index].map { $0.hasElement(in: start + index, start + index) } ?? false
        }
    }
  }

  /// Returns the occurrences of each phrase that belong to a chain of NEAR through all phrases.
  func occurrences(of phrases: [MatchPhrase], distances: [Int]) -> [[Int]] {
    var kept = phrases.map { occurrences(of: $0) }
    // Keep the occurrences that have a chain of neighbours to the first phrase. Then do the same from the
    // other end.
    for index in phrases.indices.dropFirst() {
      keep(&kept, index, beside: index - 1, phrases, distances[index - 1])
    }
    for index in phrases.indices.dropLast().reversed() {
      keep(&kept, index, beside: index + 1, phrases, distances[index])
    }
    return kept
  }

  private func keep(
    _ kept: inout [[Int]], _ index: Int, beside other: Int, _ phrases: [MatchPhrase], _ distance: Int
  ) {
    let (length, otherLength) = (phrases[index].terms.count, phrases[other].terms.count)
    let others = kept[other]
    kept[index].removeAll { start in
      !others.hasElement(in: start + length, start + length + distance)
        && !others.hasElement(in: start - otherLength - distance, start - otherLength)
    }
  }
}

extension [Int] {
  /// Whether the array, which is sorted, has an element in `first...last`.
  func hasElement(in first: Int, _ last: Int) -> Bool {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < first { low = middle + 1 } else { high = middle }
    }
    return low < count && self[low] <= last
  }
}
