// Where a query's terms are in one column of one document.

/// The terms of a query by which a text's terms are told apart.
struct QueryTerms {
  /// Of each term of the query, by its number. Those on the right of a NOT aren't there.
  private var terms: [(number: Int, bytes: [UInt8], isPrefix: Bool)] = []
  /// The terms, as places in `terms`, by their first byte.
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

  /// Calls `body` with the number of each term that a text's term answers.
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

/// A column's text, analysed for a query.
struct ColumnTerms {
  /// The words, by position.
  private(set) var words: [(start: Int, end: Int)] = []
  /// The positions of each of the query's terms, in order.
  private var positions: [Int: [Int]] = [:]

  init(_ text: UnsafeRawBufferPointer, _ terms: QueryTerms, _ analyzer: TextAnalyzer) {
    analyzer.analyze(text) { term, token in
      words.append((token.start, token.end))
      terms.forEachMatch(of: term) { positions[$0, default: []].append(token.position) }
    }
  }

  /// The positions at which a phrase begins, in order.
  func occurrences(of phrase: MatchPhrase) -> [Int] {
    guard let starts = positions[phrase.firstTerm] else { return [] }
    return starts.filter { start in
      (!phrase.terms[0].isFirst || start == 0)
        && phrase.terms.indices.dropFirst().allSatisfy { index in
          positions[phrase.firstTerm + index].map { $0.hasElement(in: start + index, start + index) } ?? false
        }
    }
  }

  /// Of each phrase the occurrences that are in a chain of NEAR through all of them.
  func occurrences(of phrases: [MatchPhrase], distances: [Int]) -> [[Int]] {
    var kept = phrases.map { occurrences(of: $0) }
    // What has a neighbour on its left that has one, and so on; then the same from the right.
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
  /// Whether an element of these, which are in order, is between two numbers, both included.
  func hasElement(in first: Int, _ last: Int) -> Bool {
    var (low, high) = (0, count)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < first { low = middle + 1 } else { high = middle }
    }
    return low < count && self[low] <= last
  }
}
