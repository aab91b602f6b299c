/// The words that an index leaves out. They take no position, so a phrase matches across them.
public enum StopWords: Sendable, Hashable {
  /// The list of the language. English, `porter` and French have a list; other languages have none.
  case standard
  /// No stop words.
  case none
  /// A list of your own. Its words are compared after folding. An entry that the analysis doesn't see as
  /// exactly one word never matches.
  case custom([String])

  /// Returns the stop words as they are written, not folded.
  func words(of language: FullTextLanguage?) -> [String] {
    switch self {
    case .none: []
    case .custom(let words): words
    case .standard:
      switch language {
      case .english, .porter: Self.english.split(whereSeparator: \.isWhitespace).map(String.init)
      case .french: Self.french.split(whereSeparator: \.isWhitespace).map(String.init)
      default: []
      }
    }
  }

  /// The list that Couchbase Lite uses.
  static let english = """
    i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
    it its itself they them their theirs themselves what which who whom this that these those am is are was were be
    been being have has had having do does did doing would should could ought a an the and but if or because as
    until while of at by for with about against between into through during before after above below to from up down
    in out on off over under again further then once here there when where why how all any both each few more most
    other some such no nor not only own same so than too very cannot
    """

  /// Articles, pronouns, prepositions, conjunctions, their elided forms (`l` of `l'`), and the forms of être
  /// and avoir.
  static let french = """
    le la les un une des du de au aux ce cet cette ces mon ton son ma ta sa mes tes ses notre votre nos vos leur leurs
    je tu il elle on nous vous ils elles me te se moi toi lui eux en y qui que quoi dont où
    à dans par pour sur sous avec sans vers chez entre et ou mais ni car donc or ne pas si comme même
    c d j l m n s t qu
    être suis es est sommes êtes sont étais était étions étiez étaient fus fut fûmes fûtes furent serai seras sera
    serons serez seront serais serait serions seriez seraient sois soit soyons soyez soient fusse fusses fût
    fussions fussiez fussent étant été étée étés étées
    avoir ai as a avons avez ont avais avait avions aviez avaient eus eut eûmes eûtes eurent aurai auras aura aurons
    aurez auront aurais aurait aurions auriez auraient aie aies ait ayons ayez aient eusse eusses eût eussions
    eussiez eussent ayant eu eue eues
    """
}
