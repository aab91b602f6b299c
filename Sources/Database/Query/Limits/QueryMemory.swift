import Synchronization

/// Memory that the runs of many queries share. A run takes of it as it needs more, and gives all of it back at its end.
package final class QueryMemory: Sendable {
  /// What there is altogether, in bytes.
  package let total: Int
  private let taken = Atomic<Int>(0)

  /// Makes memory of `total` bytes.
  package init(bytes total: Int) { self.total = max(0, total) }

  /// What runs have now, in bytes.
  package var used: Int { taken.load(ordering: .relaxed) }

  /// Takes so many bytes. False if others have them.
  package func take(_ bytes: Int) -> Bool {
    if taken.add(bytes, ordering: .relaxed).newValue <= total { return true }
    give(bytes)
    return false
  }

  /// Gives so many bytes back.
  package func give(_ bytes: Int) { taken.subtract(bytes, ordering: .relaxed) }
}
