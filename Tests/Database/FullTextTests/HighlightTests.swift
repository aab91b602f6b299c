import FullText
import TestSupport

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
    #expect(hits.map(\.term) == [0, 1, 0])
    #expect(hits.map(\.start) == [2, 13, 26])
    #expect(hits.map(\.length) == [3, 5, 4])
  }

  @Test func onlyWholePhrasesAndWhatIsNearCount() throws {
    let text = ["one two three one four two one"]
    #expect(try highlighter("\"one two\"").hits(inTexts: text).map(\.start) == [0, 4])
    #expect(try highlighter("four NEAR/0 one").hits(inTexts: text).map(\.start) == [14, 18])
    #expect(try highlighter("one NOT five").hits(inTexts: text).count == 3)
    #expect(try highlighter("four NOT two").hits(inTexts: text).map(\.term) == [0])
    #expect(try highlighter("^one").hits(inTexts: text).map(\.start) == [0])
    #expect(
      try highlighter("two NEAR/0 three NEAR/0 one NEAR/0 four").hits(inTexts: text).map(\.start) == [
        4, 8, 14, 18,
      ])
    #expect(try highlighter("").hits(inTexts: text) == [])
  }

  @Test func columnsAreKeptApart() throws {
    let highlighter = try highlighter("title:linux OR kernel", ["title", "body"])
    #expect(
      highlighter.hits(inTexts: ["linux kernel", "linux kernel"]).map { "\($0.column) \($0.term)" } == [
        "0 0", "0 1", "1 1",
      ])
  }

  @Test func aSnippetShowsTheMostTermsAndMarksThem() throws {
    let filler = (0..<40).map { "word\($0)" }.joined(separator: " ")
    let text = "Dog here. \(filler) a dog and its names, by the sea. \(filler)"
    #expect(
      try highlighter("dog name").snippet(ofTexts: [text], words: 8)
        == "…word39 a [dog] and its [names], by the…")
    #expect(try highlighter("zebra").snippet(ofTexts: ["", text], words: 3) == "Dog here. word0…")
    #expect(try highlighter("dog").snippet(ofTexts: ["“A dog.”"]) == "“A [dog].”")
    #expect(try highlighter("dog").snippet(ofTexts: ["", "…"]) == "")
    #expect(try highlighter("").snippet(ofTexts: ["A dog."]) == "A dog.")
    #expect(try highlighter("sea").snippet(ofTexts: ["the dog by the sea"], words: 2) == "…the [sea]")
    #expect(try highlighter("sea").snippet(ofTexts: ["the dog by the sea"], words: 0) == "…[sea]")
  }

  @Test func theColumnWithTheMostTermsIsShown() throws {
    let highlighter = try highlighter("dog sea", ["title", "body"])
    #expect(highlighter.snippet(ofTexts: ["a dog", "the dog by the sea"]) == "the [dog] by the [sea]")
    #expect(highlighter.snippet(ofTexts: ["a dog", "a dog"]) == "a [dog]")
  }

  @Test func wordsWithNothingBetweenAreMarkedAsOne() throws {
    #expect(try highlighter("北京大学", ["text"], nil).snippet(ofTexts: ["我在北京大学学习"]) == "我在[北京大学]学习")
  }

  @Test func aTextOfTenMegabytesIsSearched() throws {
    let text =
      String(repeating: "the quick brown fox jumps over the lazy dog ", count: 10_000_000 / 44) + "end zebra"
    let highlighter = try highlighter("\"lazy dog\" zebra")
    #expect(highlighter.hits(inTexts: [text]).count == 10_000_000 / 44 * 2 + 1)
    #expect(highlighter.snippet(ofTexts: [text], words: 6).hasSuffix("[lazy] [dog] end [zebra]"))
  }
}
