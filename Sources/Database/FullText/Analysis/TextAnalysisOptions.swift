/// The options of text analysis. Documents and queries of one index use the same options.
public struct TextAnalysisOptions: Sendable, Hashable {
  /// The language of the stemmer and of `StopWords.standard`. Nil, the default, means no language.
  ///
  /// `turkish` also changes case folding: `I` becomes `ı`, and `İ` becomes `i`.
  public var language: FullTextLanguage?
  /// Whether Latin and Greek letters lose their accents, so that `name` finds `ñame`. The default is false. A
  /// letter that isn't composed of a base letter and a mark stays: `o` doesn't find `ø`.
  public var ignoresAccents: Bool
  /// The words that are left out. The default is the list of the language.
  public var stopWords: StopWords
  /// Whether words are stemmed, if there is a language. The default is true.
  public var stems: Bool

  /// Creates options. With the default values, each word becomes a term after case folding, without stemming.
  public init(
    language: FullTextLanguage? = nil, ignoresAccents: Bool = false, stopWords: StopWords = .standard,
    stems: Bool = true
  ) {
    self.language = language
    self.ignoresAccents = ignoresAccents
    self.stopWords = stopWords
    self.stems = stems
  }
}
