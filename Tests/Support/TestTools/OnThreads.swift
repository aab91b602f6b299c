import Foundation
import Storage
import StorageConformance

/// Calls `body` with each number from 0 up to but not including `count`, each on its own thread, and waits
/// for all of them. Throws what went wrong on the threads.
///
/// All calls run concurrently, even on few processors, so one may wait for another.
/// `DispatchQueue.concurrentPerform` runs them one after another on a single processor.
package func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) throws -> Void) throws {
  let failures = Lock<[String]>([])
  let ended = CountingSemaphore()
  for number in 0..<count {
    Thread.detachNewThread {
      do { try body(number) } catch { failures.withLock { $0.append("thread \(number): \(error)") } }
      ended.signal()
    }
  }
  for _ in 0..<count { ended.wait() }
  let found = failures.withLock { $0 }
  guard found.isEmpty else { throw ConformanceFailure(found.joined(separator: "\n")) }
}
