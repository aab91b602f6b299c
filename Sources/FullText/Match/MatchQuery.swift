/// What MATCH asks for, parsed (docs/fulltext.md).
public struct MatchQuery: Hashable, Sendable {
  /// How deep parentheses may be nested.
  public static let depthLimit = 64
  /// How many terms a query may have.
  public static let termLimit = 1_000

  /// What a document has to hold; nil if the text has no terms, and then nothing matches.
  public let expression: MatchExpression?
  /// The names of the index's columns.
  public let columns: [String]

  /// A query that was built.
  public init(_ expression: MatchExpression?, columns: [String]) {
    self.expression = expression
    self.columns = columns
  }

  /// Parses the text of a query.
  ///
  /// - Parameters:
  ///   - text: in the language of docs/fulltext.md.
  ///   - columns: the names that `name:` can have; compared without regard to the case of ASCII.
  ///   - analyzer: of the options that the index was made with.
  /// - Throws: `MatchError` with the place.
  public init(parsing text: String, columns: [String], analyzer: TextAnalyzer) throws(MatchError) {
    var parser = try MatchParser(text, columns: columns, analyzer: analyzer)
    self.init(try parser.query(), columns: columns)
  }

  /// The phrases that a document's rank is made of: all but those on the right of a NOT.
  public var rankedPhrases: [MatchPhrase] { expression?.rankedPhrases ?? [] }
}

extension MatchQuery: CustomStringConvertible {
  /// The query over its terms, in the language itself: without stems and stop words it is parsed to the same one.
  public var description: String { expression.map { print($0, within: .or) } ?? "" }

  /// What binds how tightly.
  private enum Level: Int {
    case or, and, not, item
  }

  private func print(_ expression: MatchExpression, within level: Level) -> String {
    let (text, own): (String, Level) =
      switch expression {
      case .phrase(let phrase): (print(phrase), .item)
      case .near(let phrases, let distances):
        (
          phrases.enumerated().map { number, phrase in
            number == 0 ? print(phrase) : "NEAR/\(distances[number - 1]) \(print(phrase))"
          }.joined(separator: " "), .not
        )
      case .and(let operands): (operands.map { print($0, within: .not) }.joined(separator: " AND "), .and)
      case .or(let operands): (operands.map { print($0, within: .and) }.joined(separator: " OR "), .or)
      case .not(let kept, let removed):
        (print(kept, within: .item) + " NOT " + print(removed, within: .item), .not)
      }
    // NEAR binds tighter than NOT.
    if case .near = expression { return text }
    return own.rawValue < level.rawValue ? "(\(text))" : text
  }

  private func print(_ phrase: MatchPhrase) -> String {
    let terms = phrase.terms.map { term in
      (term.isFirst ? "^" : "") + String(decoding: term.bytes, as: UTF8.self) + (term.isPrefix ? "*" : "")
    }
    let column = phrase.column.map { columns[$0] + ":" } ?? ""
    return column + (terms.count == 1 ? terms[0] : "\"" + terms.joined(separator: " ") + "\"")
  }
}
