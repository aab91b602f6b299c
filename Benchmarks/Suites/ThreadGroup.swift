import BenchmarkKit
import Foundation
import Synchronization

/// Threads that start together.
enum ThreadGroup {
  private final class Shared: Sendable {
    let start = DispatchSemaphore(value: 0)
    let done = DispatchGroup()
    let failure = Mutex<(any Error)?>(nil)
  }

  /// Runs `body` on `count` new threads, each with its number. Returns the seconds from the start until the
  /// last one has ended. Throws the first error of a thread.
  static func run(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws -> Double {
    let shared = Shared()
    let ready = DispatchSemaphore(value: 0)
    for number in 0..<count {
      shared.done.enter()
      let thread = Thread {
        ready.signal()
        shared.start.wait()
        do {
          try body(number)
        } catch {
          shared.failure.withLock { if $0 == nil { $0 = error } }
        }
        shared.done.leave()
      }
      thread.start()
    }
    for _ in 0..<count { ready.wait() }
    let begin = Clock.nanoseconds()
    for _ in 0..<count { shared.start.signal() }
    shared.done.wait()
    let seconds = Double(Clock.nanoseconds() - begin) / 1e9
    if let failure = shared.failure.withLock({ $0 }) { throw failure }
    return seconds
  }
}
