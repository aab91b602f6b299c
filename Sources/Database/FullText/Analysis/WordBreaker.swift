import CICU

/// Finds ICU's word breaks in UTF-8. For one thread at a time.
final class WordBreaker {
  private var iterator: OpaquePointer?
  /// ICU's view of the text that the iterator reads.
  private var text: UnsafeMutableRawPointer?

  deinit {
    if let iterator { icu_words_close(iterator) }
    if let text { icu_text_close(text) }
  }

  /// Calls `body` with each piece between two breaks. If ICU has no memory or no data, the whole text is one
  /// piece.
  func forEachPiece(
    in bytes: UnsafeRawBufferPointer, _ body: (_ start: Int, _ end: Int) throws -> Void
  ) rethrows {
    guard let base = bytes.baseAddress else { return }
    var status = icu_status(0)
    if iterator == nil { iterator = icu_words_open(&status) }
    guard let iterator, icu_failed(status) == 0 else { return try body(0, bytes.count) }
    text = icu_words_set(
      iterator, text, base.assumingMemoryBound(to: CChar.self), Int64(bytes.count), &status)
    guard icu_failed(status) == 0 else { return try body(0, bytes.count) }
    var start = 0
    while true {
      let end = Int(icu_words_next(iterator))
      guard end > start else { break }
      try body(start, end)
      start = end
    }
    if start < bytes.count { try body(start, bytes.count) }
  }
}
