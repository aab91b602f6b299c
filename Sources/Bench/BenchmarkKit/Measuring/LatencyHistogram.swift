/// A histogram of the times of single operations. The width of its buckets grows with the time, so every
/// percentile is accurate to one thousandth, from a nanosecond to over an hour, in constant memory.
///
/// The buckets are those of an HDR histogram. Each time up to 2,047 ns has its own bucket. From there on
/// every doubling is split into 1,024 buckets, so the width of a bucket is at most 1/1,024 of its time. A
/// histogram isn't thread-safe: each thread keeps its own, and `add` joins them at the end.
package struct LatencyHistogram: Sendable, Equatable {
  private static let exactBits = 11
  private static let exact = 1 << exactBits
  private static let perDoubling = exact / 2
  /// 2^42 ns are 73 minutes. Longer times count as that.
  private static let greatestBits = 42
  private static let bucketCount = exact + (greatestBits - exactBits) * perDoubling

  private var counts = [UInt64](repeating: 0, count: bucketCount)
  /// The number of operations counted.
  package private(set) var count = 0
  /// The exact longest time, in nanoseconds; 0 if there is none.
  package private(set) var maximum: UInt64 = 0
  private var sum: Double = 0

  /// An empty histogram. It takes 270 KB.
  package init() {}

  /// Counts one operation that took `nanoseconds`.
  @inline(__always)
  package mutating func record(_ nanoseconds: UInt64) {
    counts[LatencyHistogram.bucket(nanoseconds)] += 1
    count += 1
    sum += Double(nanoseconds)
    if nanoseconds > maximum { maximum = nanoseconds }
  }

  /// Counts an operation of a generator that should start one every `interval` nanoseconds, but waited for
  /// this operation. The operations that couldn't start meanwhile count too, with the time since their
  /// intended start.
  ///
  /// This corrects coordinated omission afterwards, for loops that can't measure from the intended start.
  package mutating func record(_ nanoseconds: UInt64, expectedInterval interval: UInt64) {
    record(nanoseconds)
    guard interval > 0, nanoseconds > interval else { return }
    var missing = nanoseconds - interval
    while missing >= interval {
      record(missing)
      missing -= interval
    }
  }

  /// Adds the counts of `other`.
  package mutating func add(_ other: LatencyHistogram) {
    for index in counts.indices { counts[index] += other.counts[index] }
    count += other.count
    sum += other.sum
    maximum = max(maximum, other.maximum)
  }

  /// The exact mean in nanoseconds; 0 if there is none.
  package var mean: Double { count == 0 ? 0 : sum / Double(count) }

  /// The time in nanoseconds within which a share `quantile` (0 to 1) of the operations ended. It is the
  /// upper end of its bucket, but at most `maximum`. 0 if there are none.
  package func value(at quantile: Double) -> UInt64 {
    guard count > 0 else { return 0 }
    let rank = max(1, Int((quantile * Double(count)).rounded(.up)))
    if rank >= count { return maximum }
    var seen = 0
    for (index, found) in counts.enumerated() where found > 0 {
      seen += Int(found)
      if seen >= rank { return min(LatencyHistogram.upperEnd(index), maximum) }
    }
    return maximum
  }

  @inline(__always)
  static func bucket(_ nanoseconds: UInt64) -> Int {
    guard nanoseconds >= UInt64(exact) else { return Int(nanoseconds) }
    let bits = 64 - nanoseconds.leadingZeroBitCount
    guard bits <= greatestBits else { return bucketCount - 1 }
    let shift = bits - exactBits
    return exact + (shift - 1) * perDoubling + Int(nanoseconds >> UInt64(shift)) - perDoubling
  }

  /// The greatest time in a bucket, in nanoseconds.
  static func upperEnd(_ bucket: Int) -> UInt64 {
    guard bucket >= exact else { return UInt64(bucket) }
    let shift = UInt64((bucket - exact) / perDoubling + 1)
    let digits = UInt64((bucket - exact) % perDoubling + perDoubling)
    return ((digits + 1) << shift) - 1
  }
}
