import BenchmarkKit
import Foundation
import Storage

/// The peak of the process's anonymous memory during a call. The kernel doesn't record this peak, so a thread
/// samples the memory, by default every two milliseconds. Shorter peaks can be missed.
final class MemoryPeak: Sendable {
  private struct State {
    var bytes = 0
    var isDone = false
  }
  private let state = Lock(State())
  private let now: @Sendable () -> Int?
  private let interval: Double

  /// `now` returns the current memory in bytes. It is called every `interval` seconds.
  init(
    every interval: Double = 0.002,
    _ now: @escaping @Sendable () -> Int? = { ProcessUsage.anonymousMemory() }
  ) {
    self.interval = interval
    self.now = now
  }

  /// The peak in bytes; 0 before a measurement, or if the kernel doesn't report it.
  var bytes: Int { state.withLock { $0.bytes } }

  /// Calls `body` and samples the memory until it returns.
  func measure(_ body: () throws -> Void) throws {
    state.withLock { $0 = State() }
    let ended = DispatchSemaphore(value: 0)
    let thread = Thread { [self] in
      while !state.withLock({ $0.isDone }) {
        look()
        Thread.sleep(forTimeInterval: interval)
      }
      ended.signal()
    }
    thread.start()
    defer {
      look()
      state.withLock { $0.isDone = true }
      ended.wait()
    }
    try body()
  }

  private func look() {
    let bytes = now() ?? 0
    state.withLock { $0.bytes = max($0.bytes, bytes) }
  }
}
