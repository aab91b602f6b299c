import Storage

/// A time that tests move.
package final class ManualTimer: CallTimer {
  private struct State {
    var now = 0.0
    var next = 0
    var scheduled: [Int: (time: Double, body: @Sendable () -> Void)] = [:]
    var delays: [Double] = []
  }
  private let state = Lock(State())

  package init() {}

  package var now: Double { state.withLock { $0.now } }
  /// The delays that were asked for, in order.
  package var delays: [Double] { state.withLock { $0.delays } }
  /// How many calls are to come.
  package var count: Int { state.withLock { $0.scheduled.count } }

  package func schedule(after seconds: Double, _ body: @escaping @Sendable () -> Void) -> TimerToken {
    let number = state.withLock { state in
      state.next += 1
      state.delays.append(seconds)
      state.scheduled[state.next] = (state.now + seconds, body)
      return state.next
    }
    return TimerToken { [self] in state.withLock { $0.scheduled[number] = nil } }
  }

  /// Lets time pass, and makes the calls that are due, in the order of their times.
  package func advance(by seconds: Double) {
    let due = state.withLock { state in
      state.now += seconds
      let due = state.scheduled.filter { $0.value.time <= state.now }
      for number in due.keys { state.scheduled[number] = nil }
      return due.values.sorted { $0.time < $1.time }
    }
    for item in due { item.body() }
  }
}
