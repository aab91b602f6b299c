import Foundation
import Storage

/// The result of a closure that runs on a thread of its own.
final class TestThreadResult<Value: Sendable>: Sendable {
  private let result = Lock<Result<Value, any Error>?>(nil)
  private let ended = CountingSemaphore()

  init(_ body: @escaping @Sendable () throws -> Value) {
    Thread.detachNewThread { [self] in
      let result = Result { try body() }
      self.result.withLock { $0 = result }
      ended.signal()
    }
  }

  /// Waits for the closure. It can be called once.
  func value() throws -> Value {
    ended.wait()
    guard let result = result.withLock({ $0 }) else { throw StorageError(.closed, "there is no result") }
    return try result.get()
  }
}
