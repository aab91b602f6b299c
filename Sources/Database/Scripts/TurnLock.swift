import System

/// Lets one thread at a time use a value, in the order in which threads asked for it. Those that are in a hurry go before
/// the others, but not for ever.
///
/// Unlike a `Lock`, it is fair: a thread that uses the value again and again, each time for long, doesn't keep others out.
final class TurnLock<Value>: @unchecked Sendable {
  private struct Queue {
    var isTaken = false
    var hurried: [CountingSemaphore] = []
    var others: [CountingSemaphore] = []
    /// How many in a hurry have gone before others since one of these had its turn.
    var overtakers = 0
  }

  private static var mostOvertakers: Int { 16 }
  private let queue = Lock(Queue())
  private var value: Value

  init(_ value: Value) { self.value = value }

  /// Waits for a turn, and runs `body`. It must not ask for another turn.
  func withTurn<Result>(inHurry: Bool = false, _ body: (inout Value) throws -> Result) rethrows -> Result {
    let waiting: CountingSemaphore? = queue.withLock { queue in
      guard queue.isTaken else {
        queue.isTaken = true
        return nil
      }
      let semaphore = CountingSemaphore()
      if inHurry { queue.hurried.append(semaphore) } else { queue.others.append(semaphore) }
      return semaphore
    }
    waiting?.wait()
    defer { end() }
    return try body(&value)
  }

  /// Runs `body` if nobody has the turn. Returns nil otherwise.
  @discardableResult
  func withFreeTurn<Result>(_ body: (inout Value) throws -> Result) rethrows -> Result? {
    let isFree = queue.withLock { queue in
      defer { queue.isTaken = true }
      return !queue.isTaken
    }
    guard isFree else { return nil }
    defer { end() }
    return try body(&value)
  }

  private func end() {
    queue.withLock { queue in
      let othersWait = !queue.others.isEmpty
      if !queue.hurried.isEmpty, !othersWait || queue.overtakers < Self.mostOvertakers {
        if othersWait { queue.overtakers += 1 }
        queue.hurried.removeFirst().signal()
      } else if othersWait {
        queue.overtakers = 0
        queue.others.removeFirst().signal()
      } else {
        queue.isTaken = false
      }
    }
  }
}
