/// A place in a query's text, for people.
public struct QueryLocation: Sendable, Equatable {
  /// Bytes of UTF-8 from the start of the text.
  public let offset: Int
  /// Counted from 1.
  public let line: Int
  /// In characters, counted from 1.
  public let column: Int
  /// The line's text and under it a caret, each indented by two blanks; of a long line only what is near.
  public let excerpt: String

  /// How many characters of a line are shown on either side of the caret.
  static let reach = 50

  /// Finds the place of a byte; one beyond the end is the end.
  public init(offset: Int, in text: String) {
    let bytes = Array(text.utf8)
    let offset = min(max(offset, 0), bytes.count)
    let newline = UInt8(ascii: "\n")
    let lineStart = bytes[..<offset].lastIndex(of: newline).map { $0 + 1 } ?? 0
    let lineEnd = bytes[offset...].firstIndex(of: newline) ?? bytes.count
    self.offset = offset
    line = 1 + bytes[..<lineStart].count { $0 == newline }
    // A carriage return before the line's end isn't shown.
    let before = String(decoding: bytes[lineStart..<offset], as: UTF8.self)
    let after = String(decoding: bytes[offset..<lineEnd], as: UTF8.self).filter { !$0.isNewline }
    column = before.count + 1

    let isCutBefore = before.count > Self.reach
    let isCutAfter = after.count > Self.reach
    let shownBefore = (isCutBefore ? "…" : "") + before.suffix(Self.reach)
    let shownAfter = after.prefix(Self.reach) + (isCutAfter ? "…" : "")
    let indent = String(shownBefore.map { $0 == "\t" ? "\t" : " " })
    excerpt = "  \(shownBefore)\(shownAfter)\n  \(indent)^"
  }
}
