// Builds the tree of a match query from its tokens. docs/fulltext.md has the grammar. A part without terms,
// for example a stop word, is parsed to nil and then ignored.

/// Parses a match query.
struct MatchParser {
  private let text: String
  private let columns: [String]
  private let tokens: [(token: MatchToken, offset: Int)]
  private var index = 0
  private var depth = 0
  private var termCount = 0

  init(_ text: String, columns: [String], analyzer: TextAnalyzer) throws(MatchError) {
    self.text = text
    self.columns = columns
    tokens = try MatchLexer(text, columns: columns, analyzer: analyzer).tokens
  }

  private var token: MatchToken { tokens[index].token }
  private var offset: Int { tokens[index].offset }

  private func expected(_ what: String) -> MatchError {
    MatchError(.syntax, "expected \(what), found \(token.name)", offset: offset, in: text)
  }

  /// Parses the whole query. Returns nil if it matches nothing.
  mutating func query() throws(MatchError) -> MatchExpression? {
    if token == .end { return nil }
    let expression = try or()
    guard token == .end else { throw expected("a word or the end") }
    return expression
  }

  private mutating func or() throws(MatchError) -> MatchExpression? {
    var operands = [try and()]
    while token == .or {
      index += 1
      operands.append(try and())
    }
    return Self.joined(operands.compactMap(\.self), isOr: true)
  }

  private mutating func and() throws(MatchError) -> MatchExpression? {
    var operands = [try not()]
    while true {
      switch token {
      case .and: index += 1
      case .open, .column, .phrase, .nothing: break
      case .or, .close, .end, .not, .near:
        return Self.joined(operands.compactMap(\.self), isOr: false)
      }
      operands.append(try not())
    }
  }

  private mutating func not() throws(MatchError) -> MatchExpression? {
    let kept = try near()
    var removed: [MatchExpression] = []
    while token == .not {
      index += 1
      if let operand = try near() { removed.append(operand) }
    }
    guard let kept else { return nil }
    return Self.joined(removed, isOr: true).map { .not(kept, $0) } ?? kept
  }

  private mutating func near() throws(MatchError) -> MatchExpression? {
    if token == .open {
      let group = try group()
      if case .near = token {
        throw MatchError(
          .syntax, "NEAR takes words and phrases, not groups", offset: offset, in: text)
      }
      return group
    }
    var phrases: [MatchPhrase] = []
    var distances: [Int] = []
    if let phrase = try item() { phrases.append(phrase) }
    // A stop word between two NEARs leaves the larger distance.
    var pending: Int?
    while case .near(let distance) = token {
      index += 1
      if token == .open { throw expected("a word or a phrase, not a group, after NEAR") }
      let phrase = try item()
      guard !phrases.isEmpty else {
        if let phrase { phrases.append(phrase) }
        continue
      }
      let widest = max(pending ?? 0, distance)
      guard let phrase else {
        pending = widest
        continue
      }
      phrases.append(phrase)
      distances.append(widest)
      pending = nil
    }
    return phrases.count > 1 ? .near(phrases, distances: distances) : phrases.first.map { .phrase($0) }
  }

  private mutating func group() throws(MatchError) -> MatchExpression? {
    guard depth < MatchQuery.depthLimit else {
      throw MatchError(
        .tooDeep, "parentheses are nested deeper than \(MatchQuery.depthLimit) levels", offset: offset,
        in: text)
    }
    let open = offset
    index += 1
    depth += 1
    let expression = try or()
    guard token == .close else {
      if token == .end {
        throw MatchError(.syntax, "the parenthesis isn't closed", offset: open, in: text)
      }
      throw expected("a word or \")\"")
    }
    index += 1
    depth -= 1
    return expression
  }

  private mutating func item() throws(MatchError) -> MatchPhrase? {
    var column: Int?
    if case .column(let named) = token {
      column = named
      index += 1
    }
    switch token {
    case .phrase(let terms, _):
      index += 1
      let phrase = MatchPhrase(terms, column: column, firstTerm: termCount)
      termCount += terms.count
      return phrase
    case .nothing:
      index += 1
      return nil
    default:
      if let column { throw expected("a word or a phrase after \"\(columns[column]):\"") }
      if token == .not { throw expected("a word before NOT, as in \"this NOT that\"") }
      throw expected("a word, a phrase or \"(\"")
    }
  }

  /// Joins operands. Operands of the same kind are merged into one list.
  private static func joined(_ operands: [MatchExpression], isOr: Bool) -> MatchExpression? {
    guard operands.count > 1 else { return operands.first }
    var flat: [MatchExpression] = []
    for operand in operands {
      switch operand {
      case .or(let inner) where isOr: flat += inner
      case .and(let inner) where !isOr: flat += inner
      default: flat.append(operand)
      }
    }
    return isOr ? .or(flat) : .and(flat)
  }
}
