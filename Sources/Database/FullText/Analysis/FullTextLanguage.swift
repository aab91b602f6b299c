/// A language that has a stemmer.
///
/// The raw value is the stemmer's name. The definition of an index stores it.
public enum FullTextLanguage: String, Sendable, Hashable, CaseIterable {
  case danish, dutch, english, finnish, french, german, hungarian, italian, norwegian
  /// English by Porter's first algorithm of 1980, the algorithm of SQLite's `porter` tokenizer.
  case porter
  case portuguese, romanian, russian, spanish, swedish, turkish

  /// The ISO 639-1 code; nil for `porter`, which isn't a language of its own.
  public var code: String? {
    switch self {
    case .danish: "da"
    case .dutch: "nl"
    case .english: "en"
    case .finnish: "fi"
    case .french: "fr"
    case .german: "de"
    case .hungarian: "hu"
    case .italian: "it"
    case .norwegian: "no"
    case .porter: nil
    case .portuguese: "pt"
    case .romanian: "ro"
    case .russian: "ru"
    case .spanish: "es"
    case .swedish: "sv"
    case .turkish: "tr"
    }
  }

  /// Creates a language from its English name in any case or from its ISO 639-1 code.
  ///
  /// Text after `_` or `-` in a code is ignored (`en`, `en_US`, `pt-BR`). `nb` and `nn` are Norwegian. The
  /// result is nil for any other text.
  public init?(_ text: some StringProtocol) {
    let text = text.lowercased()
    if let named = FullTextLanguage(rawValue: text) {
      self = named
      return
    }
    let code = text.prefix { $0 != "_" && $0 != "-" }
    if code == "nb" || code == "nn" {
      self = .norwegian
      return
    }
    guard let coded = Self.allCases.first(where: { $0.code.map { $0 == code } ?? false }) else { return nil }
    self = coded
  }
}
