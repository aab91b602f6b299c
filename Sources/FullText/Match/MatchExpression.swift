// The tree of a match query, over terms that the analysis has made.

/// A term of a query.
public struct MatchTerm: Hashable, Sendable {
  /// The term, folded and stemmed, as an index has it. Never empty, of any length.
  public var bytes: [UInt8]
  /// Whether any term counts that begins with `bytes`.
  public var isPrefix: Bool
  /// Whether it has to be the first of its column.
  public var isFirst: Bool

  /// A term.
  public init(_ bytes: [UInt8], isPrefix: Bool = false, isFirst: Bool = false) {
    self.bytes = bytes
    self.isPrefix = isPrefix
    self.isFirst = isFirst
  }
}

/// One or more terms, each at the position after the one before, in one column.
public struct MatchPhrase: Hashable, Sendable {
  /// At least one. Only the first can have `isFirst`.
  public var terms: [MatchTerm]
  /// The index of the column that it has to be in; nil for any.
  public var column: Int?
  /// The number of its first term among all terms of the query, from 0, in the order of the text.
  public var firstTerm: Int

  /// A phrase.
  public init(_ terms: [MatchTerm], column: Int? = nil, firstTerm: Int = 0) {
    self.terms = terms
    self.column = column
    self.firstTerm = firstTerm
  }
}

/// What a document has to hold.
public indirect enum MatchExpression: Hashable, Sendable {
  /// The phrase occurs.
  case phrase(MatchPhrase)
  /// There is one column and in it an occurrence of each phrase, such that each lies before or after the one
  /// before it in the list, doesn't overlap it, and has at most the distance's number of terms between.
  /// Two phrases or more; `distances[i]` is of the phrases `i` and `i + 1`.
  case near([MatchPhrase], distances: [Int])
  /// All of them; two or more.
  case and([MatchExpression])
  /// Any of them; two or more.
  case or([MatchExpression])
  /// The first and not the second.
  case not(MatchExpression, MatchExpression)

  /// The phrases that a document's rank is made of: all but those on the right of a NOT, in the order of the
  /// query; one that is written twice is there twice.
  public var rankedPhrases: [MatchPhrase] {
    switch self {
    case .phrase(let phrase): [phrase]
    case .near(let phrases, _): phrases
    case .and(let operands), .or(let operands): operands.flatMap(\.rankedPhrases)
    case .not(let kept, _): kept.rankedPhrases
    }
  }
}
