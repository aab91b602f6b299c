/// Where a term was found in a text.
@frozen
public struct TextToken: Sendable, Hashable {
  /// Counted from 0, over the terms of the text: stop words take none.
  public var position: Int
  /// The word's first byte in the text.
  public var start: Int
  /// The byte after its last.
  public var end: Int

  /// A token at a place.
  @inlinable
  public init(position: Int, start: Int, end: Int) {
    self.position = position
    self.start = start
    self.end = end
  }
}

/// What the analysis of text can't be begun with.
public struct TextAnalysisError: Error, Sendable, Equatable, CustomStringConvertible {
  /// What was tried, and what was found.
  public let description: String

  init(_ description: String) { self.description = description }
}
