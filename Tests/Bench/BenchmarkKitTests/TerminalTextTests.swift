import BenchmarkKit
import Expectations
import Testing

/// What documents of others bring to a terminal.
@Suite struct TerminalTextTests {
  private func escaped(_ text: String) -> String {
    String(decoding: TerminalText.escaped(Array(text.utf8)), as: UTF8.self)
  }

  @Test func controlCharactersAreEscaped() {
    expect(
      escaped("a\u{1B}]0;title\u{7}b\u{7F}c\u{9B}31md\u{0}"),
      equals: #"a\u001B]0;title\u0007b\u007Fc\u009B31md\u0000"#)
    expect(escaped("overwrite\rme"), equals: #"overwrite\u000Dme"#)
  }

  @Test("what a terminal may get stays: lines, tabs, styles of our own, all other characters")
  func unchanged() {
    for text in ["", "a\tb\n", "a\r\nb", "\u{1B}[1;31merror\u{1B}[m", "\u{A0}é日本\u{10FFFF}"] {
      expect(escaped(text), equals: text)
    }
  }

  @Test func aCellIsOneLine() {
    var table = TextTable(["na\u{1B}me", "value"])
    table.add("a\nb", "\u{9B}")
    expect(table.lines, equals: [#"na\u001Bme  value"#, #"a\u000Ab    \u009B"#])
  }
}
