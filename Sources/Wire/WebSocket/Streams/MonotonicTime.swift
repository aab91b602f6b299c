#if canImport(Glibc)
  import Glibc
#endif

/// A time on the clock that only goes forward, in nanoseconds.
package struct MonotonicTime: Comparable, Sendable {
  package var nanoseconds: UInt64

  /// The time now.
  package static var now: MonotonicTime {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicTime(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
  }

  /// A time so many seconds later. Less than 0 counts as 0, and more than ten years as ten years.
  package static func + (time: MonotonicTime, seconds: Double) -> MonotonicTime {
    // A comparison with what isn't a number is false.
    let bounded = seconds > 0 ? min(seconds, 3.2e8) : 0
    return MonotonicTime(nanoseconds: time.nanoseconds + UInt64(bounded * 1e9))
  }

  package static func < (left: MonotonicTime, right: MonotonicTime) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  /// Seconds since an earlier time; 0 if it is later.
  package func seconds(since earlier: MonotonicTime) -> Double {
    self > earlier ? Double(nanoseconds - earlier.nanoseconds) / 1e9 : 0
  }
}
