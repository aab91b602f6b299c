import BenchmarkKit
import Storage

/// The peak of the process's anonymous memory during a call. The kernel doesn't record this peak, so a thread
/// samples the memory, by default every two milliseconds. Shorter peaks can be missed.
final class MemoryPeak: Sendable {
  private let peak = Lock(0)
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
  var bytes: Int { peak.withLock { $0 } }

  /// Calls `body` and samples the memory until it returns.
  func measure(_ body: () throws -> Void) throws {
    peak.withLock { $0 = 0 }
    let (isOver, ended) = (CountingSemaphore(), CountingSemaphore())
    Workers(maximum: 1).enqueue { [self] in
      repeat { look() } while !isOver.wait(seconds: interval)
      ended.signal()
    }
    defer {
      look()
      isOver.signal()
      ended.wait()
    }
    try body()
  }

  private func look() {
    let bytes = now() ?? 0
    peak.withLock { $0 = max($0, bytes) }
  }
}
