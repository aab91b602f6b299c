import Bytes
import Fleece

extension ViewRow {
  // MARK: Rows of a query with `boundingBox`

  /// The box that was emitted as the key, or the box around the GeoJSON object. Nil for rows of other queries.
  public var boundingBox: GeoRect? {
    guard specialKind == .box else { return nil }
    return specialBytes.withUnsafeBytes { try? GeoRect(stored: $0.bytes) }
  }

  /// The GeoJSON object that was emitted as the key. If the key was a point or a box: a GeoJSON geometry of the type Point
  /// or Polygon. Nil for rows of other queries.
  public var geometry: JSONValue? {
    guard let boundingBox else { return nil }
    let text = specialBytes.dropFirst(GeoRect.storedBytes)
    guard !text.isEmpty else { return boundingBox.geometry }
    return text.withUnsafeBytes { try? JSONValue(json: $0) }
  }

  // MARK: Rows of a query with `fullTextQuery`

  /// The text that was emitted as the key. Nil for rows of other queries.
  public var fullText: String? {
    specialKind == .text ? String(decoding: specialBytes, as: UTF8.self) : nil
  }

  /// The words of the text that match, in the order of the text. They are looked up at each call. Their ranges are those
  /// of `fullText`. Empty for rows of other queries.
  public var fullTextMatches: [ViewTextMatch] {
    guard let fullText, let highlights else { return [] }
    return highlights.matches(in: fullText)
  }

  /// The part of the text with most of the words that match, each of them between `before` and `after`. Nil unless the
  /// query has `fullTextSnippets`. The text isn't escaped.
  public func snippet(before: String = "<b>", after: String = "</b>") -> String? {
    guard let fullText, let highlights, highlights.hasSnippets else { return nil }
    return highlights.snippet(of: fullText, before: before, after: after)
  }
}
