// What is wrong with the text of a match query, for a person.

/// Why the text of a match query was refused.
public struct MatchError: Error, Sendable, Equatable {
  /// What kind of mistake it is.
  public enum Code: String, Sendable, CaseIterable {
    /// The text isn't of the grammar.
    case syntax
    /// Parentheses nested deeper than `MatchQuery.depthLimit`.
    case tooDeep
    /// More terms than `MatchQuery.termLimit`.
    case tooManyTerms
  }

  /// What kind of mistake it is.
  public let code: Code
  /// What was found and what was expected, without the place.
  public let message: String
  /// Where: in bytes of UTF-8 from the start of the text.
  public let offset: Int
  /// Where: in characters, from 1.
  public let column: Int

  init(_ code: Code, _ message: String, offset: Int, in text: String) {
    self.code = code
    self.message = message
    self.offset = offset
    let utf8 = text.utf8
    let end = utf8.index(utf8.startIndex, offsetBy: offset, limitedBy: utf8.endIndex) ?? utf8.endIndex
    column = String(decoding: utf8[..<end], as: UTF8.self).count + 1
  }
}

extension MatchError: CustomStringConvertible {
  /// `column 8: …`
  public var description: String { "column \(column) of the match text: \(message)" }
}
