import CSQLite

#if canImport(Glibc)
  import Glibc
#endif

/// How a connection waits for another process's lock: with growing pauses, up to a limit.
struct BusyWait {
  let limit: Duration
  private var began = ContinuousClock.now
  private var seed: UInt32 = 0

  init(limit: Duration) { self.limit = limit }

  /// Pauses and returns true, or returns false when the limit is past. `count` is how often this was called
  /// before for the same lock.
  mutating func waitsAgain(count: Int32) -> Bool {
    let now = ContinuousClock.now
    if count == 0 {
      began = now
      // Two processes that wait for each other's lock must not go on in step.
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
