import Glibc

/// Seconds since some time before the process started. The wall clock doesn't change it.
enum MonotonicClock {
  static var now: Double {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) * 1e-9
  }
}
