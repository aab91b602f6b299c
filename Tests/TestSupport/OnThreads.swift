import Foundation
import Storage

/// Calls `body` with 0 and so on up to `count`, each on a thread of its own, and waits for all of them.
///
/// They run beside one another however few processors there are, so that one may wait for another. (Those of
/// `DispatchQueue.concurrentPerform` come one after another on a single processor.)
public func onThreads(_ count: Int, _ body: @escaping @Sendable (Int) -> Void) {
  let ended = CountingSemaphore()
  for number in 0..<count {
    Thread.detachNewThread {
      body(number)
      ended.signal()
    }
  }
  for _ in 0..<count { ended.wait() }
}
