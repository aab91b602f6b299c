import BenchmarkKit
import Storage
import Synchronization

/// Threads that start together.
enum ThreadGroup {
  private final class Shared: Sendable {
    let ready = CountingSemaphore()
    let start = CountingSemaphore()
    let done = CountingSemaphore()
    let begin = Mutex(UInt64(0))
    let failure = Mutex<(any Error)?>(nil)
  }

  /// Runs `body` on `count` new threads, each with its number. Returns the seconds from the start until the
  /// last one has ended. Throws the first error of a thread.
  static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws -> Double {
    try run(count, preparing: { $0 }) { number, _ in try body(number) }
  }

  /// Runs `prepare` on `count` new threads, each with its number, and then, when all of them are prepared, `body` with what each has made
  /// and the time of the start, as `Clock` counts it. Returns the seconds from the start until the last one has ended. Throws the first
  /// error of a thread.
  static func run<Prepared>(
    _ count: Int, preparing prepare: @escaping @Sendable (Int) throws -> Prepared,
    _ body: @escaping @Sendable (_ prepared: Prepared, _ begin: UInt64) throws -> Void
  ) throws -> Double {
    let shared = Shared()
    let workers = Workers(maximum: count)
    for number in 0..<count {
      workers.enqueue {
        let prepared = Result { try prepare(number) }
        shared.ready.signal()
        shared.start.wait()
        do {
          try body(try prepared.get(), shared.begin.withLock { $0 })
        } catch {
          shared.failure.withLock { if $0 == nil { $0 = error } }
        }
        shared.done.signal()
      }
    }
    for _ in 0..<count { shared.ready.wait() }
    let begin = Clock.nanoseconds()
    shared.begin.withLock { $0 = begin }
    for _ in 0..<count { shared.start.signal() }
    for _ in 0..<count { shared.done.wait() }
    let seconds = Double(Clock.nanoseconds() - begin) / 1e9
    if let failure = shared.failure.withLock({ $0 }) { throw failure }
    return seconds
  }
}
