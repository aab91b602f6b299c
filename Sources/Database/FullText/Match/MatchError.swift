/// The error of a match query whose text is refused.
package struct MatchError: Error, Sendable, Equatable {
  /// The kind of error.
  package enum Code: String, Sendable, CaseIterable {
    /// The text doesn't follow the grammar.
    case syntax
    /// Parentheses are nested deeper than `MatchQuery.depthLimit`.
    case tooDeep
    /// The query has more terms than `MatchQuery.termLimit`.
    case tooManyTerms
  }

  /// The kind of error.
  package let code: Code
  /// A description of the error without its place.
  package let message: String
  /// The place in the text, in UTF-8 bytes from 0.
  package let offset: Int
  /// The place in the text, in characters from 1.
  package let column: Int

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
  /// The message with its place, for example `column 8 of the match text: …`.
  package var description: String { "column \(column) of the match text: \(message)" }
}
