/// Divides text into terms. For one thread at a time.
///
/// The rules are in docs/fulltext.md. Most scripts have only characters that word breaks never divide. Their
/// text is scanned without ICU. Only scripts without spaces between words use ICU's break iterator.
package final class TextAnalyzer {
  /// The options of this analyzer.
  package let options: TextAnalysisOptions

  let scanner: WordScanner
  private let stemmer: Stemmer?
  private let stopWords: Set<[UInt8]>
  private let cache = WordCache()

  /// Creates an analyzer.
  ///
  /// - Throws: `TextAnalysisError` if libstemmer doesn't have the language.
  package init(_ options: TextAnalysisOptions) throws(TextAnalysisError) {
    self.options = options
    let scanner = WordScanner(
      isTurkish: options.language == .turkish, ignoresAccents: options.ignoresAccents)
    self.scanner = scanner
    if options.stems, let language = options.language {
      stemmer = try Stemmer(language)
    } else {
      stemmer = nil
    }
    var stopWords: Set<[UInt8]> = []
    for word in options.stopWords.words(of: options.language) {
      var words: [[UInt8]] = []
      var word = word
      word.withUTF8 { utf8 in
        scanner.forEachWord(in: UnsafeRawBufferPointer(utf8)) { _, _, folded in words.append(Array(folded)) }
      }
      if words.count == 1 { stopWords.insert(words[0]) }
    }
    self.stopWords = stopWords
  }

  deinit { cache.free() }

  /// Calls `body` with each term of a text, in order. Stop words are left out.
  ///
  /// - Parameters:
  ///   - text: UTF-8. A byte outside a well-formed sequence separates words.
  ///   - body: gets the whole term, folded and stemmed, of any length. The bytes are valid until `body`
  ///     returns. `body` must not use this analyzer.
  package func analyze(
    _ text: UnsafeRawBufferPointer,
    _ body: (_ term: UnsafeRawBufferPointer, _ token: TextToken) throws -> Void
  ) rethrows {
    var position = 0
    guard stemmer != nil || !stopWords.isEmpty else {
      try scanner.forEachWord(in: text) { start, end, folded in
        try body(folded, TextToken(position: position, start: start, end: end))
        position += 1
      }
      return
    }
    try scanner.forEachWord(in: text) { start, end, folded in
      let term = term(folded)
      guard !term.isEmpty else { return }
      try body(term, TextToken(position: position, start: start, end: end))
      position += 1
    }
  }

  /// Returns the term of a folded word, or no bytes for a stop word. The bytes are valid until the next call.
  @inline(__always)
  private func term(_ folded: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard folded.count <= WordCache.longestWord else { return computedTerm(folded) }
    let hash = WordCache.hash(folded)
    if let found = cache.find(folded, hash) { return found }
    let term = computedTerm(folded)
    cache.insert(folded, hash, stem: term)
    return term
  }

  @inline(never)
  private func computedTerm(_ folded: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    if !stopWords.isEmpty, stopWords.contains(Array(folded)) {
      return UnsafeRawBufferPointer(start: nil, count: 0)
    }
    return stemmer?.stem(folded) ?? folded
  }

  /// A word of a query's text.
  struct Word {
    var term: [UInt8]
    var start: Int
    var end: Int
    var isStopWord: Bool
  }

  /// Returns the words of a text, including stop words. Stop words have terms like other words.
  func words(in text: UnsafeRawBufferPointer) -> [Word] {
    var words: [Word] = []
    scanner.forEachWord(in: text) { start, end, folded in
      let isStopWord = !stopWords.isEmpty && stopWords.contains(Array(folded))
      let term = stemmer?.stem(folded) ?? folded
      words.append(Word(term: Array(term), start: start, end: end, isStopWord: isStopWord))
    }
    return words
  }
}
