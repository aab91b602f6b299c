/// A library that counts what it does besides transactions.
package protocol ActiveLibrary: FlatLibrary {
  /// The library's own numbers, for people who measure it.
  func activity() throws -> [LibraryActivity]
}

/// A number that a library counts: a total since the open, or the value now.
package struct LibraryActivity: Sendable, Equatable {
  package let name: String
  package let value: Int
  /// Whether the number only grows while the database is open.
  package let isTotal: Bool

  package init(_ name: String, _ value: Int, isTotal: Bool = false) {
    self.name = name
    self.value = value
    self.isTotal = isTotal
  }
}

extension FlatEngine {
  /// What the library does besides transactions. Empty if it doesn't count that.
  package func activity() throws -> [LibraryActivity] {
    try using { try (base as? any ActiveLibrary)?.activity() ?? [] }
  }
}
