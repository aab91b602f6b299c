// Divides the text of a match query into tokens. The analyzer decides what a word is.

import Bytes

/// A token of a match query.
enum MatchToken: Equatable {
  case open
  case close
  case and
  case or
  case not
  case near(Int)
  /// `name:`. The value is the index of the column.
  case column(Int)
  /// One word, words with nothing between them, or the words between two quotes.
  case phrase([MatchTerm], isQuoted: Bool)
  /// A stop word, or a quoted text without other words.
  case nothing
  case end

  /// The name of the token in error messages.
  var name: String {
    switch self {
    case .open: "\"(\""
    case .close: "\")\""
    case .and: "AND"
    case .or: "OR"
    case .not: "NOT"
    case .near: "NEAR"
    case .column: "the name of a column"
    case .phrase(_, isQuoted: true): "a phrase"
    case .phrase, .nothing: "a word"
    case .end: "the end"
    }
  }
}

/// Divides the text of a match query into tokens.
struct MatchLexer {
  /// The distance of NEAR without a number.
  static let nearDistance = 10
  /// The maximum distance of NEAR. No text has more terms.
  static let largestDistance = 1 << 30

  /// The tokens and their offsets in the text's UTF-8. The last token is `end`.
  private(set) var tokens: [(token: MatchToken, offset: Int)] = []
  private let text: String
  private let bytes: [UInt8]
  private let columns: [(index: Int, prefix: [UInt8])]
  private let analyzer: TextAnalyzer
  private var termCount = 0

  init(_ text: String, columns: [String], analyzer: TextAnalyzer) throws(MatchError) {
    self.text = text
    bytes = Array(text.utf8)
    self.analyzer = analyzer
    // The longest name is first, so that a name isn't hidden by another name that is its prefix.
    self.columns = columns.enumerated()
      .filter { !$0.element.isEmpty }
      .map { (index: $0.offset, prefix: Array(($0.element + ":").utf8)) }
      .sorted { ($1.prefix.count, $0.index) < ($0.prefix.count, $1.index) }
    try run()
  }

  private mutating func run() throws(MatchError) {
    var offset = 0
    // Keywords and column names directly after `name:` are ordinary words.
    var isBehindColumn = false
    while true {
      while offset < bytes.count, Self.isSpace(bytes[offset]) { offset += 1 }
      guard offset < bytes.count else { break }
      switch bytes[offset] {
      case UInt8(ascii: "("):
        tokens.append((.open, offset))
        offset += 1
        isBehindColumn = false
      case UInt8(ascii: ")"):
        tokens.append((.close, offset))
        offset += 1
        isBehindColumn = false
      case UInt8(ascii: "\""):
        guard let end = bytes[(offset + 1)...].firstIndex(of: UInt8(ascii: "\"")) else {
          throw MatchError(.syntax, "the quotation mark isn't closed", offset: offset, in: text)
        }
        try addQuoted(from: offset + 1, to: end)
        offset = end + 1
        isBehindColumn = false
      default:
        if !isBehindColumn, let column = column(at: offset) {
          tokens.append((.column(column.index), offset))
          offset += column.prefix.count
          isBehindColumn = true
          continue
        }
        let end = bytes[offset...].firstIndex { Self.isDelimiter($0) } ?? bytes.count
        if !isBehindColumn, let keyword = Self.keyword(bytes[offset..<end]) {
          tokens.append((keyword, offset))
        } else {
          let count = tokens.count
          try addWords(from: offset, to: end)
          if tokens.count > count { isBehindColumn = false }
        }
        offset = end
      }
    }
    tokens.append((.end, bytes.count))
  }

  private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (byte >= 0x09 && byte <= 0x0D) }

  private static func isDelimiter(_ byte: UInt8) -> Bool {
    isSpace(byte) || byte == UInt8(ascii: "(") || byte == UInt8(ascii: ")") || byte == UInt8(ascii: "\"")
  }

  /// Returns the column whose name and a colon are at this offset.
  private func column(at offset: Int) -> (index: Int, prefix: [UInt8])? {
    columns.first { _, prefix in
      bytes.count - offset >= prefix.count
        && zip(bytes[offset...], prefix).allSatisfy { $0.lowercasedASCII == $1.lowercasedASCII }
    }
  }

  private static func keyword(_ word: ArraySlice<UInt8>) -> MatchToken? {
    switch String(decoding: word, as: UTF8.self) {
    case "AND": return .and
    case "OR": return .or
    case "NOT": return .not
    case "NEAR": return .near(nearDistance)
    case let near where near.hasPrefix("NEAR/"):
      let digits = near.utf8.dropFirst(5)
      guard !digits.isEmpty, digits.allSatisfy({ $0 &- 48 < 10 }) else { return nil }
      return .near(digits.reduce(0) { min($0 * 10 + Int($1 - 48), largestDistance) })
    default: return nil
    }
  }

  /// Returns the words in a range. A stop word followed by `*` has a term; other stop words have none.
  private mutating func words(
    from start: Int, to end: Int
  ) throws(MatchError) -> [(term: MatchTerm?, start: Int, end: Int)] {
    let words = bytes[start..<end].withUnsafeBytes { analyzer.words(in: $0) }
    var result: [(term: MatchTerm?, start: Int, end: Int)] = []
    for word in words {
      let (wordStart, wordEnd) = (start + word.start, start + word.end)
      let isPrefix = wordEnd < end && bytes[wordEnd] == UInt8(ascii: "*")
      let isFirst = wordStart > start && bytes[wordStart - 1] == UInt8(ascii: "^")
      guard isPrefix || !word.isStopWord else {
        result.append((nil, wordStart, wordEnd))
        continue
      }
      termCount += 1
      guard termCount <= MatchQuery.termLimit else {
        throw MatchError(
          .tooManyTerms, "more than \(MatchQuery.termLimit) terms", offset: wordStart, in: text)
      }
      result.append(
        (MatchTerm(word.term, isPrefix: isPrefix, isFirst: isFirst), wordStart, wordEnd))
    }
    return result
  }

  private mutating func addQuoted(from start: Int, to end: Int) throws(MatchError) {
    var terms: [MatchTerm] = []
    for (term, _, _) in try words(from: start, to: end) {
      guard var term else { continue }
      if !terms.isEmpty { term.isFirst = false }
      terms.append(term)
    }
    tokens.append((terms.isEmpty ? .nothing : .phrase(terms, isQuoted: true), start - 1))
  }

  private mutating func addWords(from start: Int, to end: Int) throws(MatchError) {
    var terms: [MatchTerm] = []
    var phraseStart = start
    var phraseEnd = -1
    var isOpen = false
    for (term, wordStart, wordEnd) in try words(from: start, to: end) {
      if isOpen, wordStart != phraseEnd {
        tokens.append((terms.isEmpty ? .nothing : .phrase(terms, isQuoted: false), phraseStart))
        terms = []
        isOpen = false
      }
      if !isOpen { phraseStart = wordStart }
      isOpen = true
      phraseEnd = wordEnd
      if let term { terms.append(term) }
    }
    if isOpen { tokens.append((terms.isEmpty ? .nothing : .phrase(terms, isQuoted: false), phraseStart)) }
  }
}
