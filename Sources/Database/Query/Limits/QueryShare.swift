import Synchronization

/// Bytes that the runs of many queries share: of memory, or of temporary files. A run takes of them as it needs more, and gives all of them
/// back at its end. Any thread may use them.
package final class QueryShare: Sendable {
  /// What there is altogether, in bytes.
  package let total: Int
  private let taken = Atomic<Int>(0)

  /// Shares `total` bytes.
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
