/// Times of single operations, counted in buckets whose width grows with the time: any percentile is known to
/// within a thousandth, from a nanosecond to over an hour, in constant memory.
///
/// The buckets are those of an HDR histogram: times up to 2,047 ns have one each; from there on every doubling is
/// split into 1,024, so that a bucket is at most 1/1,024 of its time wide. One thread at a time; threads keep
/// their own and `add` them at the end.
public struct LatencyHistogram: Sendable, Equatable {
  private static let exactBits = 11
  private static let exact = 1 << exactBits
  private static let perDoubling = exact / 2
  /// 2^42 ns are 73 minutes; what takes longer counts as that.
  private static let greatestBits = 42
  private static let bucketCount = exact + (greatestBits - exactBits) * perDoubling

  private var counts = [UInt64](repeating: 0, count: bucketCount)
  /// Times counted.
  public private(set) var count = 0
  /// The longest, exactly, in nanoseconds; 0 when there is none.
  public private(set) var maximum: UInt64 = 0
  private var sum: Double = 0

  /// An empty histogram. It takes 270 KB.
  public init() {}

  /// Counts an operation that took `nanoseconds`.
  @inline(__always)
  public mutating func record(_ nanoseconds: UInt64) {
    counts[LatencyHistogram.bucket(nanoseconds)] += 1
    count += 1
    sum += Double(nanoseconds)
    if nanoseconds > maximum { maximum = nanoseconds }
  }

  /// Counts an operation of a generator that wanted to begin one every `interval` nanoseconds, and waited for this
  /// one: those that couldn't begin meanwhile count too, with the time from when they should have begun.
  ///
  /// The correction of coordinated omission after the fact, for loops that can't measure from the intended start.
  public mutating func record(_ nanoseconds: UInt64, expectedInterval interval: UInt64) {
    record(nanoseconds)
    guard interval > 0, nanoseconds > interval else { return }
    var missing = nanoseconds - interval
    while missing >= interval {
      record(missing)
      missing -= interval
    }
  }

  /// Counts everything that `other` has counted.
  public mutating func add(_ other: LatencyHistogram) {
    for index in counts.indices { counts[index] += other.counts[index] }
    count += other.count
    sum += other.sum
    maximum = max(maximum, other.maximum)
  }

  /// The mean in nanoseconds, exactly; 0 when there is none.
  public var mean: Double { count == 0 ? 0 : sum / Double(count) }

  /// The time in nanoseconds that a share `quantile` (0 to 1) of the operations took at most: the upper end of the
  /// bucket that holds it, never more than the maximum. 0 when there are none.
  public func value(at quantile: Double) -> UInt64 {
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

  /// Calls `body` with the upper end in nanoseconds of every bucket that isn't empty, and how many operations took
  /// at most that: the cumulative distribution.
  public func forEachStep(_ body: (_ nanoseconds: UInt64, _ cumulative: Int) throws -> Void) rethrows {
    var seen = 0
    for (index, found) in counts.enumerated() where found > 0 {
      seen += Int(found)
      try body(min(LatencyHistogram.upperEnd(index), maximum), seen)
    }
  }

  @inline(__always)
  static func bucket(_ nanoseconds: UInt64) -> Int {
    guard nanoseconds >= UInt64(exact) else { return Int(nanoseconds) }
    let bits = 64 - nanoseconds.leadingZeroBitCount
    guard bits <= greatestBits else { return bucketCount - 1 }
    let shift = bits - exactBits
    return exact + (shift - 1) * perDoubling + Int(nanoseconds >> UInt64(shift)) - perDoubling
  }

  /// The greatest time that falls into a bucket.
  static func upperEnd(_ bucket: Int) -> UInt64 {
    guard bucket >= exact else { return UInt64(bucket) }
    let shift = UInt64((bucket - exact) / perDoubling + 1)
    let digits = UInt64((bucket - exact) % perDoubling + perDoubling)
    return ((digits + 1) << shift) - 1
  }
}
