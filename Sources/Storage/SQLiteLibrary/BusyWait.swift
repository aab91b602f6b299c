import CSQLite

#if canImport(Glibc)
  import Glibc
#endif

/// The waiting of a connection for another process's lock: growing pauses, up to a limit.
struct BusyWait {
  let limit: Duration
  private var began = ContinuousClock.now
  private var seed: UInt32 = 0

  init(limit: Duration) { self.limit = limit }

  /// Pauses and returns true, or returns false past the limit. `count` is the number of earlier calls for the
  /// same lock.
  mutating func waitsAgain(count: Int32) -> Bool {
    let now = ContinuousClock.now
    if count == 0 {
      began = now
      // The seed keeps two processes that wait for each other's lock from retrying in step.
      seed = UInt32(truncatingIfNeeded: getpid()) &* 2_654_435_761
    }
    guard now - began < limit else { return false }
    seed = seed &* 1_664_525 &+ 1_013_904_223
    let longest = min(100_000 << min(Int(count), 8), 20_000_000)
    var pause = timespec(tv_sec: 0, tv_nsec: longest / 2 + Int(seed >> 8) % (longest / 2))
    nanosleep(&pause, nil)
    return true
  }
}
