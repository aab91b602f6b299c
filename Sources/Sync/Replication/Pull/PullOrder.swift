import Storage

/// Which revision of each document was asked for last, of those that are on their way. They may arrive in another order: blobs
/// are fetched in between, and a delta may be sent again.
final class PullOrder: Sendable {
  private struct Asked {
    var newest: String
    var count = 1
  }
  private let asked = Lock<[String: Asked]>([:])

  /// A revision was asked for.
  func ask(_ id: String, _ revision: String) {
    asked.withLock { asked in
      if var known = asked[id] {
        known.newest = revision
        known.count += 1
        asked[id] = known
      } else {
        asked[id] = Asked(newest: revision)
      }
    }
  }

  /// One of them was stored, or doesn't come.
  func end(_ id: String) {
    asked.withLock { asked in
      guard var known = asked[id] else { return }
      known.count -= 1
      asked[id] = known.count > 0 ? known : nil
    }
  }

  /// Whether none was asked for later.
  func isNewest(_ id: String, _ revision: String) -> Bool {
    asked.withLock { $0[id]?.newest.hasSameBytes(as: revision) ?? true }
  }
}
