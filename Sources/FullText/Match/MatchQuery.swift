/// What MATCH asks for, parsed (docs/fulltext.md).
public struct MatchQuery: Hashable, Sendable {
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
  ///   - analyzer: the one whose options the index was made with.
  /// - Throws: `MatchError` with the place.
  public init(parsing text: String, columns: [String], analyzer: TextAnalyzer) throws(MatchError) {
    throw MatchError(.syntax, "not yet", offset: 0, in: text)
  }
}
