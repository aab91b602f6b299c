import CTimers

#if canImport(Glibc)
  import Glibc
#endif

/// An open loop: operations that should start at fixed times, whether the previous ones have ended or not.
///
/// The latency of an operation counts from its intended start. An operation that stalls delays those after
/// it, and their latencies show that. A closed loop, which starts each operation when the last one ends,
/// would miss exactly these delays (coordinated omission, Tene 2013). The threads take operations in turn:
/// with a rate of 1,000 per second and two threads, each thread starts one every 2 ms.
package struct ArrivalSchedule: Sendable {
  /// The intended start of the first operation, in nanoseconds of `Clock`.
  package let begin: UInt64
  /// Operations per second of all threads together.
  package let rate: Double
  /// The number of threads that share the operations.
  package let threads: Int

  /// A schedule. `rate` is above 0 and `threads` at least 1.
  package init(begin: UInt64, rate: Double, threads: Int = 1) {
    self.begin = begin
    self.rate = rate
    self.threads = threads
  }

  /// The intended start of the `index`th operation of a thread. Both count from 0.
  package func start(_ index: Int, thread: Int = 0) -> UInt64 {
    begin + UInt64((Double(index * threads + thread) / rate * 1e9).rounded())
  }

  /// Runs `count` operations of a thread at their times, and adds their latencies to `histogram`.
  ///
  /// Tests replace `clock` and `wait`.
  package func run(
    _ count: Int, thread: Int = 0, into histogram: inout LatencyHistogram,
    clock: () -> UInt64 = Clock.nanoseconds, wait: (UInt64) -> Void = ArrivalSchedule.wait(until:),
    _ operation: (_ index: Int) throws -> Void
  ) rethrows {
    for index in 0..<count {
      let start = start(index, thread: thread)
      wait(start)
      try operation(index)
      let end = clock()
      histogram.record(end > start ? end - start : 0)
    }
  }

  /// Sleeps until `time` of `Clock.nanoseconds`; returns at once if that is past. What it is late counts as latency. It doesn't spin
  /// until then: that would take the processors from what is measured.
  package static func wait(until time: UInt64) {
    guard Clock.nanoseconds() < time else { return }
    waitExactly()
    var wanted = timespec(tv_sec: Int(time / 1_000_000_000), tv_nsec: Int(time % 1_000_000_000))
    while Clock.nanoseconds() < time { clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wanted, nil) }
  }

  /// Lets the waits of this thread end as exactly as the system can. Else they may end 50 µs late, so that the system can end
  /// several waits at once.
  package static func waitExactly() { _ = touchstone_set_timer_slack(1) }
}
