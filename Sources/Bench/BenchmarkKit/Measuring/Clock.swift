#if canImport(Glibc)
  import Glibc
#endif

/// The clocks that measure workloads.
@usableFromInline package enum Clock {
  /// Nanoseconds of a monotonic clock (`CLOCK_MONOTONIC`), counted from an arbitrary point in the past.
  @inlinable
  package static func nanoseconds() -> UInt64 { read(CLOCK_MONOTONIC) }

  /// The processor time used by all threads of this process so far, user and system, in nanoseconds
  /// (`CLOCK_PROCESS_CPUTIME_ID`).
  @inlinable
  package static func cpuNanoseconds() -> UInt64 { read(CLOCK_PROCESS_CPUTIME_ID) }

  /// The processor time used by all threads of another process so far, user and system, in nanoseconds
  /// (`clock_getcpuclockid`); nil if it has ended.
  package static func cpuNanoseconds(of process: pid_t) -> UInt64? {
    var clock = clockid_t()
    var time = timespec()
    guard clock_getcpuclockid(process, &clock) == 0, clock_gettime(clock, &time) == 0 else { return nil }
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }

  @usableFromInline
  static func read(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
  }
}
