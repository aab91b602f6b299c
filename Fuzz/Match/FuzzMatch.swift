// libFuzzer's target for the language of MATCH: what it accepts prints to text that is parsed to the same, and what it
// finds in the text itself can be shown. The first byte chooses the analysis.

import FullText
import FuzzDriver

private let columns = ["title", "a.b", "name with blanks"]

@main enum FuzzMatch: FuzzTarget {
  static func test(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first else { return }
    let choice = Int(first)
    let text = String(decoding: input.dropFirst(), as: UTF8.self)
    let languages = FullTextLanguage.allCases
    let ignoresAccents = choice & 1 != 0
    let language = choice & 2 != 0 ? languages[choice >> 2 & 15] : nil
    do {
      let analyzer = try TextAnalyzer(.init(language: language, ignoresAccents: ignoresAccents))
      let query: MatchQuery
      do { query = try MatchQuery(parsing: text, columns: columns, analyzer: analyzer) } catch {
        precondition(
          error.offset >= 0 && error.offset <= text.utf8.count && error.column > 0, "no place: \(error)")
        return
      }
      let highlighter = Highlighter(query, analyzer: analyzer)
      // Bytes that may be ill-formed.
      let bytes = UnsafeRawBufferPointer(rebasing: input.dropFirst())
      for hit in highlighter.hits(in: [bytes, bytes]) {
        precondition(
          hit.start >= 0 && hit.length > 0 && hit.start + hit.length <= bytes.count, "a hit outside: \(hit)")
      }
      _ = highlighter.snippet(of: [bytes], words: 3)

      guard language == nil else { return }
      let printed = query.description
      do {
        let again = try MatchQuery(parsing: printed, columns: columns, analyzer: analyzer)
        // What has no spaces between words may fall apart otherwise when it stands alone.
        let isPlain = text.unicodeScalars.allSatisfy { $0.value < 0x0E00 }
        precondition(again == query || !isPlain, "another query: \(printed), \(again)")
      } catch {
        precondition(error.code != .syntax, "what was printed isn't accepted: \(printed): \(error)")
      }
    } catch {
      preconditionFailure("\(error)")
    }
  }
}
