import FullText
import TestTools

/// A term with where it was found.
struct FoundTerm: Equatable, CustomStringConvertible {
  var term: String
  var position: Int
  var start: Int
  var end: Int
  var description: String { "\(term)@\(position)[\(start)..<\(end)]" }
}

extension TextAnalyzer {
  func found(_ bytes: [UInt8]) -> [FoundTerm] {
    var found: [FoundTerm] = []
    bytes.withUnsafeBytes { text in
      analyze(text) { term, token in
        found.append(
          FoundTerm(
            term: String(decoding: term, as: UTF8.self), position: token.position, start: token.start,
            end: token.end))
      }
    }
    return found
  }

  func terms(_ text: String) -> [String] { found(Array(text.utf8)).map(\.term) }
}

func analyzer(
  _ language: FullTextLanguage? = nil, ignoresAccents: Bool = false, stopWords: StopWords = .standard,
  stems: Bool = true
) throws -> TextAnalyzer {
  try TextAnalyzer(
    TextAnalysisOptions(
      language: language, ignoresAccents: ignoresAccents, stopWords: stopWords, stems: stems))
}
