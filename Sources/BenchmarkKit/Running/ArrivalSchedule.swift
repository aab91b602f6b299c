#if canImport(Glibc)
  import Glibc
#endif

/// Operations that are wanted at fixed times, whether those before them have ended or not: an open loop.
///
/// The latency of an operation counts from when it should have begun. One that stalls makes those behind it wait, and
/// their waiting shows; a loop that begins each operation when the last has ended would leave out just the operations
/// that hurt (coordinated omission, Tene 2013). Operations are dealt to the threads in turn, so that with a rate of
/// 1,000 a second and two threads each has one every 2 ms.
public struct ArrivalSchedule: Sendable {
  /// When the first operation is wanted, in nanoseconds of the clock.
  public let begin: UInt64
  /// Operations a second, of all threads together.
  public let rate: Double
  /// Threads that share the operations.
  public let threads: Int

  /// A schedule; `rate` is above 0 and `threads` at least 1.
  public init(begin: UInt64, rate: Double, threads: Int = 1) {
    self.begin = begin
    self.rate = rate
    self.threads = threads
  }

  /// When the `index`th operation of a thread is wanted, both counted from 0.
  public func start(_ index: Int, thread: Int = 0) -> UInt64 {
    begin + UInt64((Double(index * threads + thread) / rate * 1e9).rounded())
  }

  /// Runs `count` operations of a thread at their times, and counts their latencies in `histogram`.
  ///
  /// `clock` and `wait` are there for tests, which have no time.
  public func run(
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

  /// Returns at `time` of `Clock.nanoseconds`, or at once when that is over. Sleeps while it is far, and yields the
  /// processor for the last 150 µs: a sleep ends some 50 µs late, which would count as latency.
  public static func wait(until time: UInt64) {
    while true {
      let now = Clock.nanoseconds()
      guard now < time else { return }
      let left = time - now
      if left > 200_000 {
        let pause = left - 150_000
        var wanted = timespec(tv_sec: Int(pause / 1_000_000_000), tv_nsec: Int(pause % 1_000_000_000))
        nanosleep(&wanted, nil)
      } else {
        sched_yield()
      }
    }
  }
}
