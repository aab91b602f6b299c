import FullText
import TestTools

/// Words of each language's Snowball vocabulary and their stems, as R's SnowballC 0.7.0 has them.
private let samples: [(FullTextLanguage, String)] = [
  (
    .danish,
    "blæder blæd elisjema elisjema erindre erindr flade flad harpers harp istandsatte istandsat ophidsede ophidsed skelnes skeln sløret slør strømmes strøm tamarisk tamarisk udplyndre udplyndr"
  ),
  (
    .dutch,
    "aankopen aankop afwikkeling afwikkel heijkoop heijkop maritieme maritiem oefen oef oneigenlijk oneigen starreluchten starrelucht urenco urenco verheerlijkte verheerlijkt waterleidingbedrijf waterleidingbedrijf welckje welckj wereldse wereld"
  ),
  (
    .english,
    "adhere adher anne ann appendage appendag arranged arrang confirmation confirm file file gaped gape lieutenant lieuten overleaping overleap redound redound straitened straiten uncongenial uncongeni"
  ),
  (
    .finnish,
    "aineslain ainesl brigitte brigit broman broma canadiensin canadiens carelia carel eroavista eroav esteellisyys esteellisyys hakkaamassa hakkaam helenen helen hiili hiili hiljaisina hiljais hoosianna hoosian"
  ),
  (
    .french,
    "affilier affili bourdonnement bourdon cascade cascad couchez couch envisageons envisageon infériorité inférior major major pieusement pieus remplis rempl réfugier réfugi steamboats steamboat successor successor"
  ),
  (
    .german,
    "aufstehn aufstehn friedhofscafe friedhofscaf holzscheite holzscheit kälbern kalb pedanterie pedanteri rohe roh triefigen triefig vormittagsimbiss vormittagsimbiss welchem welch wenigem wenig überdachten uberdacht überhasten uberhast"
  ),
  (
    .hungarian,
    "beleesni beleesn bográcsolás bográcsolás jöjjenek jöj kezeiből kez kikapcsolni kikapcsoln kívánnak kív kötöttségük kötöttség közepéig közep lemondóan lemondó megnyugtat megnyugt működő működő percben perc"
  ),
  (
    .italian,
    "alfiere alfi annunciati annunc combinazioni combin indovinala indovinal introduce introduc langen langen moro mor occorrenze occorrent pensioni pension stanchi stanc trafitto trafitt ultim ultim"
  ),
  (
    .norwegian,
    "antakelsene antak gyver gyv handheva handhev innflytelse innflyt kreditorer kreditor kulturelle kulturell opplåning opplåning oppstår oppstår skilnadene skilnad slottet slott vinner vinn årene åren"
  ),
  (
    .porter,
    "accruing accru cooky cooki fowl fowl heroes hero padding pad quaker quaker resemblances resembl squaring squar steyne steyn tickling tickl twilled twill yachting yacht"
  ),
  (
    .portuguese,
    "apresentamos apresent cooperada cooper favorito favorit gritantes gritant infoway infoway lamu lamu letais let ligamos lig manifestavam manifest notícia notíc orobó orob visitantes visit"
  ),
  (
    .romanian,
    "absolvire absolv arme arme instinctului instinct intenţional intenţional moftul moft peloponezului pelopon purta purt păstrez păstr regretabil regret răzbi răzb vameşul vameş îmbrăţişaţi îmbrăţiş"
  ),
  (
    .russian,
    "вздрогнул вздрогнул входит вход ждете ждет жесту жест отстанет отстанет послушным послушн посолиднее посолидн призывающий призыва размера размер удавиться удав удвоилось удво шевелит шевел"
  ),
  (
    .spanish,
    "acróbata acrobat acusaban acus arquitectos arquitect atardecer atardec caracol caracol desaparecerán desaparec disponen dispon grampus grampus instalaciones instal reforzada reforz superficie superfici superwelter superwelt"
  ),
  (
    .swedish,
    "dallra dallr förutsett förutset genomse genoms georginer georgin gräsbänkar gräsbänk knapparna knapp ktocka ktock liggande ligg middag middag nittonåriga nittonår svag svag tiggt tigg"
  ),
  (
    .turkish,
    "araçlardan araç boyuncu boyuncu dilemesi dilemes flash flash görüldüğü görüldük lüksüne lüks meseleleri mesele noktası noktas sahipsizliği sahipsizlik söylüyoruz söylüyor vermeleri verme yaşına yaş"
  ),
]

@Suite struct StemTests {
  @Test(arguments: samples)
  func stemsAreThoseOfSnowball(_ language: FullTextLanguage, _ pairs: String) throws {
    let analyzer = try analyzer(language, stopWords: .none)
    let words = pairs.split(separator: " ").map(String.init)
    for pair in stride(from: 0, to: words.count, by: 2) {
      expect(analyzer.terms(words[pair]), equals: [words[pair + 1]])
      // From the cache, and in upper case.
      expect(analyzer.terms(words[pair]), equals: [words[pair + 1]])
      if language != .turkish { expect(analyzer.terms(words[pair].uppercased()), equals: [words[pair + 1]]) }
    }
  }

  @Test func everyLanguageHasASample() {
    expect(samples.map(\.0), equals: FullTextLanguage.allCases)
  }

  @Test func theExamplesOfTheSpecHold() throws {
    let analyzer = try analyzer(.english)
    expect(Set(analyzer.terms("searching searches search searched")), equals: ["search"])
    expect(
      analyzer.terms("databases database running runs ran"),
      equals: ["databas", "databas", "run", "run", "ran"])
    expect(analyzer.terms("generalization generalize news"), equals: ["general", "general", "news"])
  }

  @Test func germanSharpSMatchesTwo() throws {
    let analyzer = try analyzer(.german)
    expect(analyzer.terms("Straße"), equals: analyzer.terms("STRASSE"))
  }

  @Test func stemmingCanBeOff() throws {
    try expect(
      analyzer(.english, stems: false).terms("searching the databases"), equals: ["searching", "databases"])
  }

  @Test func theCacheStaysBounded() throws {
    // More words than it keeps, twice; each is as it was without it.
    let analyzer = try analyzer(.english)
    for _ in 0..<2 {
      for number in stride(from: 0, to: 150_000, by: 1) {
        let found = analyzer.terms("wa\(number)xings")
        if found != ["wa\(number)x"] {
          Issue.record("wa\(number)xings is \(found)")
          return
        }
      }
    }
  }
}
