// Functions on the results of MATCH, for the builder. MATCH itself is `FullTextExpression`.

/// Functions on the results of MATCH.
///
/// ```swift
/// Query.select(.expression(Meta.id)).from()
///   .where(FullTextExpression.index("nameFTSIndex").match("'buy'"))
///   .orderBy(FullTextFunction.rank("nameFTSIndex").descending())
/// ```
public enum FullTextFunction {
  /// RANK: how well a document matches. Larger is better.
  public static func rank(_ index: String, from source: String? = nil) -> QueryExpression {
    .rank(IndexReference(index, source: source))
  }

  /// SNIPPET: the part of the text that contains most of the query's words.
  public static func snippet(_ index: String, from source: String? = nil) -> QueryExpression {
    Function.call(FullTextFunctions.snippet, [reference(index, source)])
  }

  /// OFFSETS: the positions of the query's words in the texts.
  public static func offsets(_ index: String, from source: String? = nil) -> QueryExpression {
    Function.call(FullTextFunctions.offsets, [reference(index, source)])
  }

  private static func reference(_ index: String, _ source: String?) -> QueryExpression {
    .property(PropertyReference((source.map { [.name($0)] } ?? []) + [.name(index)]))
  }
}
