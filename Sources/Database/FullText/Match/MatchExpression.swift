// The tree of a match query. Its terms are already analysed.

/// A term of a query.
package struct MatchTerm: Hashable, Sendable {
  /// The term after folding and stemming, as the index has it. Never empty, of any length.
  package var bytes: [UInt8]
  /// Whether the term matches all terms that begin with `bytes`.
  package var isPrefix: Bool
  /// Whether the term matches only as the first term of a column.
  package var isFirst: Bool

  /// Creates a term.
  package init(_ bytes: [UInt8], isPrefix: Bool = false, isFirst: Bool = false) {
    self.bytes = bytes
    self.isPrefix = isPrefix
    self.isFirst = isFirst
  }
}

/// One or more terms at consecutive positions of one column.
package struct MatchPhrase: Hashable, Sendable {
  /// The terms, at least one. Only the first can have `isFirst`.
  package var terms: [MatchTerm]
  /// The index of the column to search; nil for all columns.
  package var column: Int?
  /// The number of the first term among all terms of the query, counted from 0 in the order of the text.
  package var firstTerm: Int

  /// Creates a phrase.
  package init(_ terms: [MatchTerm], column: Int? = nil, firstTerm: Int = 0) {
    self.terms = terms
    self.column = column
    self.firstTerm = firstTerm
  }
}

/// The condition that a document must match.
package indirect enum MatchExpression: Hashable, Sendable {
  /// The phrase occurs.
  case phrase(MatchPhrase)
  /// The phrases occur near each other in one column. There are at least two phrases.
  ///
  /// Each occurrence is before or after that of the previous phrase in the list. The two don't overlap and
  /// have at most `distances[i]` terms between them, for the phrases `i` and `i + 1`.
  case near([MatchPhrase], distances: [Int])
  /// All operands match. There are at least two.
  case and([MatchExpression])
  /// At least one operand matches. There are at least two.
  case or([MatchExpression])
  /// The first operand matches and the second doesn't.
  case not(MatchExpression, MatchExpression)

  /// The phrases that count for the rank, in the order of the query. Phrases on the right side of a NOT are
  /// left out. A phrase that is written twice is there twice.
  package var rankedPhrases: [MatchPhrase] {
    switch self {
    case .phrase(let phrase): [phrase]
    case .near(let phrases, _): phrases
    case .and(let operands), .or(let operands): operands.flatMap(\.rankedPhrases)
    case .not(let kept, _): kept.rankedPhrases
    }
  }
}
