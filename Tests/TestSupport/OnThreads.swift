import Foundation
import Storage

/// Calls `body` with each number from 0 up to but not including `count`, each on its own thread, and waits
/// for all of them.
///
/// All calls run concurrently, even on few processors, so one may wait for another.
/// `DispatchQueue.concurrentPerform` runs them one after another on a single processor.
package func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let ended = CountingSemaphore()
  for number in 0..<count {
    Thread.detachNewThread {
      body(number)
      ended.signal()
    }
  }
  for _ in 0..<count { ended.wait() }
}
