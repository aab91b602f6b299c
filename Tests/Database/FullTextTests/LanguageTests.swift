import FullText
import TestSupport

@Suite struct FullTextLanguageTests {
  @Test func codesAndNamesAreLanguages() {
    #expect(FullTextLanguage("en") == .english)
    #expect(FullTextLanguage("en_US") == .english)
    #expect(FullTextLanguage("pt-BR") == .portuguese)
    #expect(FullTextLanguage("Swedish") == .swedish)
    #expect(FullTextLanguage("nb") == .norwegian)
    #expect(FullTextLanguage("porter") == .porter)
    #expect(FullTextLanguage("klingon") == nil)
    #expect(FullTextLanguage("") == nil)
    #expect(FullTextLanguage.allCases.count == 16)
  }
}
