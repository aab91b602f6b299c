import FullText
import TestTools

@Suite struct FullTextLanguageTests {
  @Test func codesAndNamesAreLanguages() {
    expect(FullTextLanguage("en"), equals: .english)
    expect(FullTextLanguage("en_US"), equals: .english)
    expect(FullTextLanguage("pt-BR"), equals: .portuguese)
    expect(FullTextLanguage("Swedish"), equals: .swedish)
    expect(FullTextLanguage("nb"), equals: .norwegian)
    expect(FullTextLanguage("porter"), equals: .porter)
    expect(FullTextLanguage("klingon") == nil)
    expect(FullTextLanguage("") == nil)
    expect(FullTextLanguage.allCases.count, equals: 16)
  }
}
