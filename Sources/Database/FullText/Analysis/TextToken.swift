/// The place of a term in a text.
@frozen
@usableFromInline package struct TextToken: Sendable, Hashable {
  /// The position of the term, counted from 0. Stop words take no position.
  @usableFromInline package var position: Int
  /// The offset of the word's first byte in the text.
  @usableFromInline package var start: Int
  /// The offset of the byte after the word.
  @usableFromInline package var end: Int

  /// Creates a token.
  @inlinable
  package init(position: Int, start: Int, end: Int) {
    self.position = position
    self.start = start
    self.end = end
  }
}

/// The error of an analyzer that can't be created.
package struct TextAnalysisError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What was tried, and what was found.
  package let description: String

  init(_ description: String) { self.description = description }
}
