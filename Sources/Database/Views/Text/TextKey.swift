/// A text that a map function emits as a key, for `ViewQuery.fullTextQuery` (docs/view-geo-text.md).
///
/// ```swift
/// try view.setMap(version: "1", language: .english) { document, emit in
///   if let body = document["body"]?.string { emit(TextKey(body), document["title"]) }
/// }
/// ```
public struct TextKey: SpecialKey, Hashable {
  /// The text.
  public var text: String

  /// A key of a text.
  public init(_ text: String) { self.text = text }

  /// What is indexed.
  public var specialKeyContent: SpecialKeyContent { SpecialKeyContent(.text(text)) }
}
