import Bytes
import CICU
import CStemmer
import Storage

/// The version of the text analysis that made an index's terms.
///
/// Different versions of ICU or libstemmer can make different terms from the same text.
package enum AnalysisVersion {
  /// Increase this number when the rules of `WordScanner` or the lists of stop words change.
  private static let rules = 1

  /// Returns the version text that an index stores, for example `rules 1, icu 72.1, english
  /// 0123456789abcdef`.
  ///
  /// The language and its fingerprint are present only if words are stemmed. libstemmer has no version
  /// number. The fingerprint is a hash of the stems of some thousand words.
  package static func text(of options: TextAnalysisOptions) -> String {
    var (major, minor): (Int32, Int32) = (0, 0)
    icu_running_version(&major, &minor)
    var text = "rules \(rules), icu \(major).\(minor)"
    if options.stems, let language = options.language {
      text += ", \(language.rawValue) " + Hex.text(fingerprint(of: language), digits: 16)
    }
    return text
  }

  private static let known = Lock<[FullTextLanguage: UInt64]>([:])

  /// Returns a hash of the stems of words with the endings of the supported languages.
  private static func fingerprint(of language: FullTextLanguage) -> UInt64 {
    if let known = known.withLock({ $0[language] }) { return known }
    guard let stemmer = try? Stemmer(language) else { return 0 }
    // FNV-1a.
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    let (beginnings, endings) = language == .russian ? cyrillic : latin
    for beginning in beginnings {
      for ending in endings {
        let word = Array((beginning + ending).utf8)
        word.withUnsafeBytes { word in
          for byte in stemmer.stem(word) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        }
        hash = (hash ^ 0xFF) &* 0x100_0000_01B3
      }
    }
    let found = hash
    known.withLock { $0[language] = found }
    return found
  }

  private static let latin = (
    beginnings: words(
      "arbeit past even gener evid produ kitap ház tal part constru spil heim amic kaun ver buch long inform comm"
        + " ski hus cas geh opin"),
    endings: words(
      "a e i o u s es en er ers ern em et ed ing ings ingly edly eedly ly li ness ation ational tional ization izer"
        + " ator alism iveness fulness ousness ousli entli biliti bli ogi ogist ful less lessli ement ment ent ance"
        + " ence able ible ant ism ate iti ous ive ize ung ungen heit keit lich isch ig end erin erinnen lein chen"
        + " issement issant euse eux ement ités amment emment logie ution ence atrice eraient irions asse èrent âmes"
        + " azione amento mente ità ivo oso anza atore ando endo eranno iamo ción miento mente idad anza encia abais"
        + " arán iendo amos éis ção mente ância idade ávamos ariam essem are ător itate ească uiește urile elor uri"
        + " het lighet löst arna ornas arnas erna heterna dom else erne ene eligt elige anen heden ige baar achtig"
        + " isen issa sta lla ltä ssani mme nne kin kaan imme ksi ista ban ben nak nek val vel ként hez höz jaim"
        + " eitek alók ainkból lar ler ların lerden mış di yor acak ecek sınız iyorlar ımızdan daki ça")
  )

  private static let cyrillic = (
    beginnings: words("работ книг красив говор чита нов мор дел учи строи люб важн"),
    endings: words(
      "а я о е ы и у ю ой ей ом ем ами ями ах ях ов ев ий ый ая яя ое ее ого его ому ему ыми ими ую юю ать ять ить"
        + " ешь ишь ает яет ит им ите ал ала али ил ила или вший вшись вши ющий ующий ться лся ость остью ейший"
        + " ейше нный нная ием иями ей ь")
  )

  private static func words(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }
}
