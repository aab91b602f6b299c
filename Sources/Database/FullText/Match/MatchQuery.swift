/// A parsed MATCH query (docs/fulltext.md).
package struct MatchQuery: Hashable, Sendable {
  /// The maximum nesting depth of parentheses.
  package static let depthLimit = 64
  /// The maximum number of terms in a query.
  package static let termLimit = 1_000

  /// The condition that a document must match. Nil if the text has no terms; then nothing matches.
  package let expression: MatchExpression?
  /// The names of the index's columns.
  package let columns: [String]

  /// Creates a query from an expression.
  package init(_ expression: MatchExpression?, columns: [String]) {
    self.expression = expression
    self.columns = columns
  }

  /// Parses the text of a query.
  ///
  /// - Parameters:
  ///   - text: the query, in the language of docs/fulltext.md.
  ///   - columns: the names for `name:`. They are compared without regard to the case of ASCII letters.
  ///   - analyzer: an analyzer with the options of the index.
  /// - Throws: `MatchError` with the place of the error.
  package init(parsing text: String, columns: [String], analyzer: TextAnalyzer) throws(MatchError) {
    var parser = try MatchParser(text, columns: columns, analyzer: analyzer)
    self.init(try parser.query(), columns: columns)
  }

  /// The phrases that count for the rank. Phrases on the right side of a NOT are left out.
  package var rankedPhrases: [MatchPhrase] { expression?.rankedPhrases ?? [] }
}

extension MatchQuery: CustomStringConvertible {
  /// The query in its own language, with analysed terms. It parses to the same query if there are no stems
  /// and stop words.
  package var description: String { expression.map { print($0, within: .or) } ?? "" }

  /// The binding strength of operators, weakest first.
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
