/// The place of a term in a text.
@frozen
public struct TextToken: Sendable, Hashable {
  /// The position of the term, counted from 0. Stop words take no position.
  public var position: Int
  /// The offset of the word's first byte in the text.
  public var start: Int
  /// The offset of the byte after the word.
  public var end: Int

  /// Creates a token.
  @inlinable
  public init(position: Int, start: Int, end: Int) {
    self.position = position
    self.start = start
    self.end = end
  }
}

/// The error of an analyzer that can't be created.
public struct TextAnalysisError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What was tried, and what was found.
  public let description: String

  init(_ description: String) { self.description = description }
}
