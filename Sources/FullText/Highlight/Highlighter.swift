/// Finds a query's terms in the texts of documents, which are analysed again for it. For one thread at a time.
public struct Highlighter {
  private let analyzer: TextAnalyzer
  private let terms: QueryTerms
  private let groups: [Group]

  /// Phrases that are looked for together.
  private struct Group {
    var phrases: [MatchPhrase]
    /// Of NEAR; none for a phrase.
    var distances: [Int]
  }

  /// A highlighter of a query; the analyzer is of the options that the index has.
  public init(_ query: MatchQuery, analyzer: TextAnalyzer) {
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

  /// The occurrences of the query's terms, ordered by column, start and term: of a phrase only whole ones, of NEAR
  /// only those near each other, of what is on the right of NOT none.
  ///
  /// - Parameter columns: the texts of the document's columns.
  public func hits(in columns: [UnsafeRawBufferPointer]) -> [MatchHit] {
    guard !groups.isEmpty else { return [] }
    return columns.indices.flatMap { hits(in: columns[$0], column: $0) }
  }

  private func hits(in text: UnsafeRawBufferPointer, column: Int) -> [MatchHit] {
    let found = ColumnTerms(text, terms, analyzer)
    var hits: [MatchHit] = []
    for group in groups {
      // Of NEAR all have to be in one column.
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
    // A phrase that overlaps itself ("a a") has a word twice as different terms, but never twice as one.
    return hits
  }

  /// The part of a column's text that has the most distinct terms of the query, with each hit between `before` and
  /// `after`; words that are hits and have nothing between them are marked as one. Neither the text nor the marks are
  /// escaped.
  ///
  /// Of several such parts it is the one with the most hits, and of those the first.
  ///
  /// - Parameters:
  ///   - columns: the texts of the document's columns.
  ///   - ellipsis: what stands for text that is left out.
  ///   - words: how many words are shown at most, stop words too; at least 1.
  /// - Returns: the beginning of the first column that has words, if nothing matches; "" if none has.
  public func snippet(
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
