import Bytes

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

  /// Whether it has that name of ASCII letters and signs, whose case doesn't matter.
  package func isNamed(_ other: StaticString) -> Bool {
    guard name.utf8.count == other.utf8CodeUnitCount else { return false }
    return zip(name.utf8, UnsafeBufferPointer(start: other.utf8Start, count: other.utf8CodeUnitCount))
      .allSatisfy { $0.lowercasedASCII == $1.lowercasedASCII }
  }
}
