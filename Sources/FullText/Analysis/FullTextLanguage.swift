/// A language whose words have a stemmer.
///
/// The raw value is the stemmer's name, which is also what an index's definition holds.
public enum FullTextLanguage: String, Sendable, Hashable, CaseIterable {
  case danish, dutch, english, finnish, french, german, hungarian, italian, norwegian
  /// English by Porter's first algorithm of 1980, which is what SQLite's `porter` is.
  case porter
  case portuguese, romanian, russian, spanish, swedish, turkish

  /// The code of ISO 639-1; nil for `porter`, which is no language of its own.
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

  /// The language that a text names: a code, of which what follows `_` or `-` doesn't count (`en`, `en_US`,
  /// `pt-BR`; `nb` and `nn` are Norwegian), or an English name in any case. Nil for any other.
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
