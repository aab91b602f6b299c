import FullText
import TestTools

@Suite struct WordTests {
  @Test(
    arguments: [
      ("“Dog”", ["dog"]),
      ("it's full-text, FTS5!", ["it", "s", "full", "text", "fts5"]),
      (
        "www.example.org J.R.R snake_case 3.14",
        [
          "www", "example", "org", "j", "r", "r", "snake", "case", "3", "14",
        ]
      ),
      ("", []),
      (" \t\n", []),
      ("l’été", ["l", "été"]),
      ("naïve CAFÉ Ærø", ["naïve", "café", "ærø"]),
      ("Straße STRASSE ẞ", ["straße", "strasse", "ß"]),
      ("ΑΛΦΑ Άλφα", ["αλφα", "άλφα"]),
      ("Привет, МИР", ["привет", "мир"]),
      ("İI", ["İi"]),
      ("a\u{1F600}b 👩‍👩‍👧 ☎️ \u{301}x", ["a", "b", "x"]),
      ("한국어 단어", ["한국어", "단어"]),
      ("iPhone은 北京은", ["iphone", "은", "北京", "은"]),
      ("x² ½", ["x", "²", "½"]),
      ("שלום עולם", ["שלום", "עולם"]),
      ("हिन्दी भाषा", ["हिन्दी", "भाषा"]),
    ] as [(String, [String])])
  func textIsTakenApart(_ text: String, _ terms: [String]) throws {
    try expect(analyzer().terms(text), equals: terms)
  }

  @Test func scriptsWithoutSpacesAreTakenApartByDictionaries() throws {
    try expect(analyzer().terms("北京大学在中国"), equals: ["北京", "大学", "在", "中国"])
    try expect(analyzer().terms("ภาษาไทยง่าย"), equals: ["ภาษา", "ไทย", "ง่าย"])
    let japanese = try analyzer().terms("東京タワーに行きました")
    expect(japanese.count > 2 && japanese.joined() == "東京タワーに行きました")
    let mixed = try analyzer().found(Array("iPhoneを買う now".utf8))
    expect(mixed.map(\.term), equals: ["iphone", "を", "買う", "now"])
    expect(mixed.map(\.start), equals: [0, 6, 9, 16])
  }

  @Test func placesAreBytesAndPositionsCountTerms() throws {
    let found = try analyzer(.english).found(Array("The Bank of “América”".utf8))
    expect(
      found,
      equals: [
        FoundTerm(term: "bank", position: 0, start: 4, end: 8),
        FoundTerm(term: "américa", position: 1, start: 15, end: 23),
      ])
  }

  @Test func composedAndDecomposedTextIsOneTerm() throws {
    let composed = "caf\u{E9} \u{1EC7} \u{439} \u{D55C}"
    let decomposed = "cafe\u{301} e\u{323}\u{302} \u{438}\u{306} \u{1112}\u{1161}\u{11AB}"
    for ignoresAccents in [false, true] {
      let analyzer = try analyzer(ignoresAccents: ignoresAccents)
      expect(
        analyzer.terms(composed).map { Array($0.unicodeScalars) },
        equals: analyzer.terms(decomposed).map { Array($0.unicodeScalars) })
    }
  }

  @Test func accentsAreIgnoredOnRequest() throws {
    let analyzer = try analyzer(ignoresAccents: true)
    expect(
      analyzer.terms("ñame STöRMy whøse Ệ Łódź άλφα й ё İ \u{430}\u{301}"),
      equals: [
        "name", "stormy", "whøse", "e", "łodz", "αλφα", "й", "ё", "i", "а",
      ])
    // The vowel signs of Indic scripts are no accents.
    expect(analyzer.terms("हिन्दी"), equals: ["हिन्दी"])
  }

  @Test func turkishHasTwoPairsOfI() throws {
    let turkish = try analyzer(.turkish, stems: false)
    expect(turkish.terms("I İ ı i ISPARTA İstanbul"), equals: ["ı", "i", "ı", "i", "ısparta", "istanbul"])
    try expect(analyzer().terms("I ı"), equals: ["i", "ı"])
  }

  @Test func stopWordsAreTheLanguagesOwnOrOnesOwn() throws {
    let text = "The cat and a dog, et le chat"
    try expect(analyzer(.english, stems: false).terms(text), equals: ["cat", "dog", "et", "le", "chat"])
    try expect(analyzer(.french, stems: false).terms(text), equals: ["the", "cat", "and", "dog", "chat"])
    try expect(analyzer(.german, stems: false).terms("der die das"), equals: ["der", "die", "das"])
    try expect(analyzer(.english, stopWords: .none, stems: false).terms("the cat"), equals: ["the", "cat"])
    try expect(
      analyzer(stopWords: .custom(["CAT", "isn't", "été"]), stems: false).terms("Cat isn't Été dog"),
      equals: ["isn", "t", "dog"])
    // The list goes through the same folding as the text.
    try expect(
      analyzer(.french, ignoresAccents: true, stems: false).terms("ete d'ailleurs"), equals: ["ailleurs"])
  }

  @Test func stopWordsAreThoseBeforeStemming() throws {
    // "being" is one, "beings" isn't.
    try expect(analyzer(.english).terms("being beings"), equals: ["be"])
  }

  @Test func illFormedBytesSeparate() throws {
    let analyzer = try analyzer(.english, ignoresAccents: true)
    expect(analyzer.found([0x61, 0xFF, 0x62, 0xC3]).map(\.term), equals: ["b"])
    expect(
      analyzer.found([0x62, 0xE2, 0x82, 0x63, 0xED, 0xA0, 0x80, 0x64]).map(\.term), equals: ["b", "c", "d"])
    expect(analyzer.found([0xF4, 0x90, 0x80, 0x80, 0xC0, 0x80]).isEmpty)
  }

  @Test func aLongWordIsOneTerm() throws {
    for letter in ["x", "é", "Ж"] {
      let word = String(repeating: letter, count: 100_000)
      try expect(analyzer(.english).terms("a \(word) b"), equals: [word.lowercased(), "b"])
    }
  }

  @Test func tenMegabytesAreAnalysed() throws {
    let sentence = "The quick brown foxes jumped over 13 lazy dogs; l’été à Saint-Étienne. "
    let text = Array(String(repeating: sentence, count: 10_000_000 / sentence.utf8.count).utf8)
    let analyzer = try analyzer(.english)
    var count = 0
    var last = TextToken(position: -1, start: 0, end: 0)
    text.withUnsafeBytes { bytes in
      analyzer.analyze(bytes) { _, token in
        count += 1
        last = token
      }
    }
    expect(count, equals: analyzer.terms(sentence).count * (text.count / sentence.utf8.count))
    expect(last.position, equals: count - 1)
    let chinese = Array(String(repeating: "我们在北京学习中文", count: 40_000).utf8)
    try expect(FullTextTests.analyzer().found(chinese).count > 150_000)
  }
}
