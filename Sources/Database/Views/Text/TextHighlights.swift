import FullText
import Storage

/// An occurrence of a word of a full-text query in `ViewRow.fullText`.
public struct ViewTextMatch: Sendable, Hashable {
  /// Which word of the query it is, from 0, in the order in which the query names them.
  public let termIndex: Int
  /// Where it is in the text.
  public let range: Range<String.Index>
}

/// Finds the words of a full-text query in the texts of its rows. Used from any thread.
final class TextHighlights: Sendable {
  private let query: MatchQuery
  private let options: TextAnalysisOptions
  let hasSnippets: Bool

  init(_ query: MatchQuery, _ options: TextAnalysisOptions, hasSnippets: Bool) {
    self.query = query
    self.options = options
    self.hasSnippets = hasSnippets
  }

  /// The matches, in the order of the text. None if the analyzer can't be made, which made the query.
  func matches(in text: String) -> [ViewTextMatch] {
    let hits = highlight(text) { $0.hits(in: [$1]) } ?? []
    let utf8 = text.utf8
    return hits.compactMap { hit in
      guard let start = utf8.index(utf8.startIndex, offsetBy: hit.start, limitedBy: utf8.endIndex),
        let end = utf8.index(start, offsetBy: hit.length, limitedBy: utf8.endIndex)
      else { return nil }
      return ViewTextMatch(termIndex: hit.term, range: start..<end)
    }
  }

  func snippet(of text: String, before: String, after: String) -> String? {
    highlight(text) { $0.snippet(of: [$1], before: before, after: after) }
  }

  private func highlight<Result>(
    _ text: String, _ body: (Highlighter, UnsafeRawBufferPointer) -> Result
  ) -> Result? {
    var text = text
    return try? TextAnalyzers.withAnalyzer(options) { analyzer in
      text.withUTF8 { body(Highlighter(query, analyzer: analyzer), UnsafeRawBufferPointer($0)) }
    }
  }
}
