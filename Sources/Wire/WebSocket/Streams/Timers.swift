/// What is to be called later: a heap of times. Not for concurrent use.
struct Timers {
  private struct Entry {
    var time: MonotonicTime
    var number: UInt64
  }

  private var heap: [Entry] = []
  /// The calls that are still wanted. The heap may hold more, which were cancelled.
  private var calls: [UInt64: @Sendable () -> Void] = [:]
  private var nextNumber: UInt64 = 0

  /// The number of calls that are wanted.
  var count: Int { calls.count }
  /// The number of entries, also of cancelled ones. For tests.
  var entryCount: Int { heap.count }

  /// When the next call is due, perhaps earlier.
  var nextTime: MonotonicTime? { heap.first?.time }

  /// Adds a call. Returns the number to cancel it by.
  mutating func add(_ time: MonotonicTime, _ call: @escaping @Sendable () -> Void) -> UInt64 {
    nextNumber += 1
    calls[nextNumber] = call
    heap.append(Entry(time: time, number: nextNumber))
    rise(heap.count - 1)
    return nextNumber
  }

  /// Cancels a call; does nothing if it was made.
  mutating func cancel(_ number: UInt64) {
    calls[number] = nil
    guard heap.count > 64, heap.count > 2 * calls.count else { return }
    heap.removeAll { calls[$0.number] == nil }
    // An ascending array is a heap.
    heap.sort { $0.time < $1.time }
  }

  /// Removes and returns the calls that are due, in the order of their times.
  mutating func takeDue(_ now: MonotonicTime) -> [@Sendable () -> Void] {
    var due: [@Sendable () -> Void] = []
    while let first = heap.first, first.time <= now {
      if let call = calls.removeValue(forKey: first.number) { due.append(call) }
      heap.swapAt(0, heap.count - 1)
      heap.removeLast()
      sink(0)
    }
    return due
  }

  private mutating func rise(_ start: Int) {
    var index = start
    while index > 0, heap[index].time < heap[(index - 1) / 2].time {
      heap.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  private mutating func sink(_ start: Int) {
    var index = start
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < heap.count {
        if heap[child].time < heap[least].time { least = child }
      }
      if least == index { return }
      heap.swapAt(index, least)
      index = least
    }
  }
}
