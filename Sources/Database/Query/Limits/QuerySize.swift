import Storage

/// How large a query may be. Preparing a query takes time and memory in proportion to its size, before the limits of a run hold.
///
/// A name of LET, WITH, LETTING or a result stands for an expression, and a few lines can name one that is beyond any memory: each name
/// doubles the one before. So what counts is the size with the expressions in place of the names.
final class QuerySize {
  /// The most words, signs and literals of a text, and the most values of a query in JSON.
  static let tokens = 500_000
  /// The most sources of one SELECT: those of FROM, JOIN, NEST, UNNEST and GROUPING SETS, and the values of LET that aren't cheap. They are
  /// nested in each other when the query runs.
  static let sources = 100
  /// The most terms of a GROUP BY, and calls over windows of a SELECT: each is compared with all others.
  static let terms = 500
  /// The most expressions in place of names.
  static let expansions = 200_000
  /// The most expressions that are looked at: those of the text, and those of windows with a name once for each use.
  private static let visits = 4 * tokens

  private var left = QuerySize.expansions
  private var visitsLeft = QuerySize.visits

  /// Counts an expression that is looked at.
  @inline(__always)
  func visit() throws {
    visitsLeft -= 1
    if visitsLeft < 0 {
      throw QueryError(
        .tooLarge, "the query has more than \(Self.visits) expressions, those of windows once for each use")
    }
  }

  /// Counts an expression that takes the place of a name, at a depth of the expressions around it.
  ///
  /// - Throws: `tooLarge`, and `tooDeep` beyond the depth that the parser allows.
  func count(_ expression: QueryExpression, at depth: Int, for name: ByteString) throws {
    left -= 1
    if left < 0 {
      throw QueryError(
        .tooLarge,
        "the query has more than \(Self.expansions) expressions with the meaning of names like \"\(name)\" in their place"
      )
    }
    if depth > Parser.depthLimit {
      throw QueryError(
        .tooDeep,
        "with the meaning of \"\(name)\" in its place, the query is nested deeper than \(Parser.depthLimit) levels"
      )
    }
    try expression.forEachPart { try count($0, at: depth + 1, for: name) }
  }

  /// The message for too many sources.
  static var tooManySources: String { "a SELECT has at most \(sources) sources, values of LET included" }

  /// The message for too many terms.
  static var tooManyTerms: String {
    "a GROUP BY has at most \(terms) terms, and a SELECT as many calls over windows"
  }
}
