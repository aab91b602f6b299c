/// Takes text apart into terms. For one thread at a time.
public final class TextAnalyzer {
  /// What it was made from.
  public let options: TextAnalysisOptions

  /// An analyzer.
  ///
  /// - Throws: if libstemmer hasn't got the language.
  public init(_ options: TextAnalysisOptions) throws(TextAnalysisError) {
    self.options = options
  }

  /// Calls `body` with each term of a text, in order.
  ///
  /// - Parameters:
  ///   - text: UTF-8; a byte that isn't of a well-formed sequence separates words.
  ///   - body: gets the term, folded and stemmed, whole, of any length, whose bytes are valid until it returns. It
  ///     doesn't use this analyzer.
  public func analyze(
    _ text: UnsafeRawBufferPointer,
    _ body: (_ term: UnsafeRawBufferPointer, _ token: TextToken) throws -> Void
  ) rethrows {
    var position = 0
    var index = 0
    var term: [UInt8] = []
    while index < text.count {
      let start = index
      term.removeAll(keepingCapacity: true)
      while index < text.count,
        text[index] >= 0x80 || text[index] | 0x20 &- 0x61 < 26 || text[index] &- 48 < 10
      {
        term.append(text[index] &- 0x41 < 26 ? text[index] | 0x20 : text[index])
        index += 1
      }
      if index > start {
        try term.withUnsafeBytes {
          try body($0, TextToken(position: position, start: start, end: index))
        }
        position += 1
      }
      index += 1
    }
  }
}
