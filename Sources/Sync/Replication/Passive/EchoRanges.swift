import Storage

/// The sequences of changes that came from the peer of a connection. They needn't be offered to it.
final class EchoRanges: Sendable {
  /// The most ranges. With more, the oldest are forgotten, and their changes are offered.
  private static let maximumCount = 10_000

  private let ranges = Lock<[ClosedRange<UInt64>]>([])

  /// Adds the sequences after `start` up to `end`. They are higher than all that were added before.
  func add(after start: UInt64, upTo end: UInt64) {
    guard end > start else { return }
    ranges.withLock { ranges in
      if let last = ranges.last, last.upperBound == start {
        ranges[ranges.count - 1] = last.lowerBound...end
      } else {
        if ranges.count >= Self.maximumCount { ranges.removeFirst(Self.maximumCount / 2) }
        ranges.append(start + 1...end)
      }
    }
  }

  /// Whether a change came from the peer.
  func contains(_ sequence: UInt64) -> Bool {
    ranges.withLock { ranges in
      var (low, high) = (0, ranges.count)
      while low < high {
        let middle = (low + high) / 2
        if ranges[middle].upperBound < sequence { low = middle + 1 } else { high = middle }
      }
      return low < ranges.count && ranges[low].contains(sequence)
    }
  }
}
