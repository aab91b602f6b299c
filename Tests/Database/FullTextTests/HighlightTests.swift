import FullText
import TestTools

extension Highlighter {
  private func with<Result>(
    _ texts: ArraySlice<[UInt8]>, _ buffers: [UnsafeRawBufferPointer],
    _ body: ([UnsafeRawBufferPointer]) -> Result
  ) -> Result {
    guard let first = texts.first else { return body(buffers) }
    return first.withUnsafeBytes { with(texts.dropFirst(), buffers + [$0], body) }
  }

  func hits(inTexts texts: [String]) -> [MatchHit] {
    with(texts.map { Array($0.utf8) }[...], []) { hits(in: $0) }
  }

  func snippet(ofTexts texts: [String], words: Int = 15) -> String {
    with(texts.map { Array($0.utf8) }[...], []) {
      snippet(of: $0, before: "[", after: "]", ellipsis: "…", words: words)
    }
  }
}

@Suite struct HighlightTests {
  private func highlighter(
    _ query: String, _ columns: [String] = ["text"], _ language: FullTextLanguage? = .english
  ) throws -> Highlighter {
    let analyzer = try analyzer(language, ignoresAccents: true, stopWords: .none)
    return try Highlighter(
      MatchQuery(parsing: query, columns: columns, analyzer: analyzer), analyzer: analyzer)
  }

  @Test func hitsAreBytesOfWords() throws {
    let text = "a dog whøse ñame was “Dogs”"
    let hits = try highlighter("dog name").hits(inTexts: [text])
    expect(hits.map(\.term), equals: [0, 1, 0])
    expect(hits.map(\.start), equals: [2, 13, 26])
    expect(hits.map(\.length), equals: [3, 5, 4])
  }

  @Test func onlyWholePhrasesAndWhatIsNearCount() throws {
    let text = ["one two three one four two one"]
    try expect(highlighter("\"one two\"").hits(inTexts: text).map(\.start), equals: [0, 4])
    try expect(highlighter("four NEAR/0 one").hits(inTexts: text).map(\.start), equals: [14, 18])
    try expect(highlighter("one NOT five").hits(inTexts: text).count, equals: 3)
    try expect(highlighter("four NOT two").hits(inTexts: text).map(\.term), equals: [0])
    try expect(highlighter("^one").hits(inTexts: text).map(\.start), equals: [0])
    try expect(
      highlighter("two NEAR/0 three NEAR/0 one NEAR/0 four").hits(inTexts: text).map(\.start),
      equals: [
        4, 8, 14, 18,
      ])
    try expect(highlighter("").hits(inTexts: text), equals: [])
  }

  @Test func columnsAreKeptApart() throws {
    let highlighter = try highlighter("title:linux OR kernel", ["title", "body"])
    expect(
      highlighter.hits(inTexts: ["linux kernel", "linux kernel"]).map { "\($0.column) \($0.term)" },
      equals: [
        "0 0", "0 1", "1 1",
      ])
  }

  @Test func aSnippetShowsTheMostTermsAndMarksThem() throws {
    let filler = (0..<40).map { "word\($0)" }.joined(separator: " ")
    let text = "Dog here. \(filler) a dog and its names, by the sea. \(filler)"
    try expect(
      highlighter("dog name").snippet(ofTexts: [text], words: 8),
      equals: "…word39 a [dog] and its [names], by the…")
    try expect(highlighter("zebra").snippet(ofTexts: ["", text], words: 3), equals: "Dog here. word0…")
    try expect(highlighter("dog").snippet(ofTexts: ["“A dog.”"]), equals: "“A [dog].”")
    try expect(highlighter("dog").snippet(ofTexts: ["", "…"]), equals: "")
    try expect(highlighter("").snippet(ofTexts: ["A dog."]), equals: "A dog.")
    try expect(highlighter("sea").snippet(ofTexts: ["the dog by the sea"], words: 2), equals: "…the [sea]")
    try expect(highlighter("sea").snippet(ofTexts: ["the dog by the sea"], words: 0), equals: "…[sea]")
  }

  @Test func theColumnWithTheMostTermsIsShown() throws {
    let highlighter = try highlighter("dog sea", ["title", "body"])
    expect(highlighter.snippet(ofTexts: ["a dog", "the dog by the sea"]), equals: "the [dog] by the [sea]")
    expect(highlighter.snippet(ofTexts: ["a dog", "a dog"]), equals: "a [dog]")
  }

  @Test func wordsWithNothingBetweenAreMarkedAsOne() throws {
    try expect(highlighter("北京大学", ["text"], nil).snippet(ofTexts: ["我在北京大学学习"]), equals: "我在[北京大学]学习")
  }

  @Test func aTextOfTenMegabytesIsSearched() throws {
    let text =
      String(repeating: "the quick brown fox jumps over the lazy dog ", count: 10_000_000 / 44) + "end zebra"
    let highlighter = try highlighter("\"lazy dog\" zebra")
    expect(highlighter.hits(inTexts: [text]).count, equals: 10_000_000 / 44 * 2 + 1)
    expect(highlighter.snippet(ofTexts: [text], words: 6).hasSuffix("[lazy] [dog] end [zebra]"))
  }
}
