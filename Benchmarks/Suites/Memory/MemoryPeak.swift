import BenchmarkKit
import Foundation
import Storage

/// The most anonymous memory that the process has while something runs. The kernel keeps no such peak, so a thread looks
/// every two milliseconds; what comes and goes in between isn't seen.
final class MemoryPeak: Sendable {
  private struct State {
    var bytes = 0
    var isDone = false
  }
  private let state = Lock(State())
  private let now: @Sendable () -> Int?

  /// `now` tells the memory of the moment, in bytes.
  init(_ now: @escaping @Sendable () -> Int? = { ProcessUsage.anonymousMemory() }) { self.now = now }

  /// In bytes; 0 before anything was measured, and where the kernel doesn't tell.
  var bytes: Int { state.withLock { $0.bytes } }

  /// Calls `body`, and looks meanwhile.
  func measure(_ body: () throws -> Void) throws {
    state.withLock { $0 = State() }
    let ended = DispatchSemaphore(value: 0)
    let thread = Thread { [self] in
      while !state.withLock({ $0.isDone }) {
        look()
        Thread.sleep(forTimeInterval: 0.002)
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
