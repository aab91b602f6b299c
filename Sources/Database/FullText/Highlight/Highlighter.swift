/// Finds the terms of a query in the texts of documents. It analyses the texts again. For one thread at a
/// time.
package struct Highlighter {
  private let analyzer: TextAnalyzer
  private let terms: QueryTerms
  private let groups: [Group]

  /// Phrases that are searched together.
  private struct Group {
    var phrases: [MatchPhrase]
    /// The distances of NEAR; empty for a single phrase.
    var distances: [Int]
  }

  /// Creates a highlighter for a query. The analyzer must have the options of the index.
  package init(_ query: MatchQuery, analyzer: TextAnalyzer) {
    self.analyzer = analyzer
    terms = QueryTerms(query.rankedPhrases)
    groups = query.expression.map(Self.groups) ?? []
  }

  private static func groups(_ expression: MatchExpression) -> [Group] {
    switch expression {
    case .phrase(let phrase): [Group(phrases: [phrase], distances: [])]
    case .near(let phrases, let distances): [Group(phrases: phrases, distances: distances)]
    case .and(let operands), .or(let operands): operands.flatMap(groups)
    case .not(let kept, _): groups(kept)
    }
  }

  /// Returns the occurrences of the query's terms, ordered by column, start and term.
  ///
  /// A phrase has hits only where all of it occurs. Operands of NEAR have hits only where they are near each
  /// other. The right side of a NOT has no hits.
  ///
  /// - Parameter columns: the texts of the document's columns.
  package func hits(in columns: [UnsafeRawBufferPointer]) -> [MatchHit] {
    guard !groups.isEmpty else { return [] }
    return columns.indices.flatMap { hits(in: columns[$0], column: $0) }
  }

  private func hits(in text: UnsafeRawBufferPointer, column: Int) -> [MatchHit] {
    let found = ColumnTerms(text, terms, analyzer)
    var hits: [MatchHit] = []
    for group in groups {
      // All operands of NEAR must be in one column.
      guard group.phrases.allSatisfy({ $0.column == nil || $0.column == column }) else { continue }
      let occurrences =
        group.distances.isEmpty
        ? [found.occurrences(of: group.phrases[0])]
        : found.occurrences(of: group.phrases, distances: group.distances)
      for (phrase, starts) in zip(group.phrases, occurrences) {
        for start in starts {
          for index in phrase.terms.indices {
            let word = found.words[start + index]
            hits.append(
              MatchHit(
                column: column, term: phrase.firstTerm + index, start: word.start,
                length: word.end - word.start))
          }
        }
      }
    }
    hits.sort { ($0.start, $0.term) < ($1.start, $1.term) }
    // In a phrase that overlaps itself ("a a"), a word can be two different terms, but never twice the same
    // term.
    return hits
  }

  /// Returns the part of a column's text with the most distinct terms of the query. Each hit is between
  /// `before` and `after`.
  ///
  /// Adjacent hits with nothing between them are marked as one. Neither the text nor the marks are escaped.
  /// If several parts have the same number of distinct terms, the one with the most hits is returned. If
  /// several of these have the same number of hits, the first is returned. If nothing matches, the snippet is
  /// the beginning of the first column that has words.
  ///
  /// - Parameters:
  ///   - columns: the texts of the document's columns.
  ///   - ellipsis: the text that stands for omitted text.
  ///   - words: the maximum number of words, including stop words. A value below 1 counts as 1.
  /// - Returns: the snippet, or "" if no column has words.
  package func snippet(
    of columns: [UnsafeRawBufferPointer], before: String = "<b>", after: String = "</b>",
    ellipsis: String = "…", words: Int = 15
  ) -> String {
    let limit = max(words, 1)
    var best: SnippetWindow?
    for (column, text) in columns.enumerated() {
      let hits = groups.isEmpty ? [] : hits(in: text, column: column)
      if hits.isEmpty, best != nil { continue }
      guard let window = SnippetWindow(text, hits, limit, analyzer) else { continue }
      if best.map({ ($0.distinct, $0.hits.count) < (window.distinct, window.hits.count) }) ?? true {
        best = window
      }
    }
    return best?.marked(before: before, after: after, ellipsis: ellipsis) ?? ""
  }
}
