/// How text becomes terms. Documents and queries of one index go through the same options.
public struct TextAnalysisOptions: Sendable, Hashable {
  /// What words are stemmed by, and whose stop words `StopWords.standard` are; nil, the default, for none.
  ///
  /// `turkish` also decides how `I` is folded: to `ı`, and `İ` to `i`.
  public var language: FullTextLanguage?
  /// Whether Latin and Greek letters lose their accents, so that `name` finds `ñame`; not by default. A letter
  /// that isn't made of another one and a mark keeps its form: `o` doesn't find `ø`.
  public var ignoresAccents: Bool
  /// The words that are left out; the language's own by default.
  public var stopWords: StopWords
  /// Whether words are stemmed, if there is a language; they are by default.
  public var stems: Bool

  /// Options; without arguments each word is a term as it is, in lower case.
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
