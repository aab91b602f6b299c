import CStemmer

/// A stemmer of libstemmer. For one thread at a time.
final class Stemmer {
  /// The maximum length in bytes of a word that is stemmed. Longer words stay as they are: they aren't words
  /// of a language, and the algorithms aren't made for them.
  static let longestWord = 255

  private let stemmer: OpaquePointer

  /// Creates the stemmer of a language. Throws if libstemmer doesn't have it.
  init(_ language: FullTextLanguage) throws(TextAnalysisError) {
    guard let opened = sb_stemmer_new(language.rawValue, "UTF_8") else {
      throw TextAnalysisError("libstemmer has no stemmer called \"\(language.rawValue)\"")
    }
    stemmer = opened
  }

  deinit { sb_stemmer_delete(stemmer) }

  /// Returns the stem of a folded word, or the word itself if it has no stem. The bytes are valid until the
  /// next call.
  func stem(_ word: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
    guard word.count <= Self.longestWord, let base = word.baseAddress,
      let stem = sb_stemmer_stem(stemmer, base.assumingMemoryBound(to: UInt8.self), Int32(word.count))
    else { return word }
    let count = Int(sb_stemmer_length(stemmer))
    return count > 0 ? UnsafeRawBufferPointer(start: stem, count: count) : word
  }
}
