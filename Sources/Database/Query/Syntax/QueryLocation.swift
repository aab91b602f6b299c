/// A position in a query's text, for people.
public struct QueryLocation: Sendable, Hashable {
  /// The offset in UTF-8 bytes from the start of the text.
  public let offset: Int
  /// The line, counted from 1.
  public let line: Int
  /// The column in characters, counted from 1.
  public let column: Int
  /// The text of the line, and below it a caret. Both are indented by two spaces. Of a long line, only the
  /// part near the caret is shown.
  public let excerpt: String

  /// The maximum number of characters shown on each side of the caret.
  static let reach = 50

  /// Finds the location of a byte offset. Offsets beyond the end mean the end.
  package init(offset: Int, in text: String) {
    let bytes = Array(text.utf8)
    let offset = min(max(offset, 0), bytes.count)
    let newline = UInt8(ascii: "\n")
    let lineStart = bytes[..<offset].lastIndex(of: newline).map { $0 + 1 } ?? 0
    let lineEnd = bytes[offset...].firstIndex(of: newline) ?? bytes.count
    self.offset = offset
    line = 1 + bytes[..<lineStart].count { $0 == newline }
    // A carriage return at the end of the line isn't shown.
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
