#if canImport(Glibc)
  import Glibc
#endif

/// The clocks that workloads are timed by.
public enum Clock {
  /// Nanoseconds on a clock that never jumps (`CLOCK_MONOTONIC`), from some point in the past.
  @inlinable
  public static func nanoseconds() -> UInt64 { read(CLOCK_MONOTONIC) }

  /// Nanoseconds of processor time, user and system, that all threads of this process have used so far
  /// (`CLOCK_PROCESS_CPUTIME_ID`).
  @inlinable
  public static func cpuNanoseconds() -> UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }

  @usableFromInline
  static func read(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
