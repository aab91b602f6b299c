/// A header of an answer.
package struct HTTPHeader: Sendable, Hashable {
  /// The name.
  package var name: String
  /// The value.
  package var value: String

  /// Makes a header.
  package init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}
