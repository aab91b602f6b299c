import Storage

/// A feed that does something when its time has come.
protocol TimedFeed: AnyObject, Sendable {
  /// Its time may have come. Returns when to ask again; nil if it asks itself.
  func tick(now: Double) -> Double?
}

/// Calls feeds at their times, with one call of the timer for all of them.
final class SharedFeedTimer: Sendable {
  private struct Entry {
    let time: Double
    weak var feed: (any TimedFeed)?
  }

  private struct State {
    /// A heap: the earliest comes first.
    var entries: [Entry] = []
    /// When the timer calls next.
    var scheduled: (time: Double, token: TimerToken)?
  }

  let timer: any CallTimer
  private let state = Lock(State())

  init(_ timer: any CallTimer) { self.timer = timer }

  /// Calls `feed.tick` at that time. A feed has one call at most.
  func call(_ feed: any TimedFeed, at time: Double) {
    state.withLock { state in
      Self.push(Entry(time: time, feed: feed), to: &state.entries)
      schedule(&state)
    }
    // It may have come meanwhile.
    if time <= timer.now { run() }
  }

  private func schedule(_ state: inout State) {
    guard let first = state.entries.first else { return }
    if let scheduled = state.scheduled {
      guard first.time < scheduled.time else { return }
      scheduled.token.cancel()
    }
    let token = timer.schedule(after: max(0, first.time - timer.now)) { [weak self] in self?.run() }
    state.scheduled = (first.time, token)
  }

  private func run() {
    let due = state.withLock { state in
      state.scheduled = nil
      let now = timer.now
      var due: [Entry] = []
      // The clock of the timer may be a little behind.
      while let first = state.entries.first, first.time <= now + 0.001 {
        due.append(Self.pop(from: &state.entries))
      }
      return due
    }
    var later: [(time: Double, feed: any TimedFeed)] = []
    for entry in due {
      if let feed = entry.feed, let time = feed.tick(now: timer.now) { later.append((time, feed)) }
    }
    state.withLock { state in
      for (time, feed) in later { Self.push(Entry(time: time, feed: feed), to: &state.entries) }
      schedule(&state)
    }
  }

  private static func push(_ entry: Entry, to entries: inout [Entry]) {
    entries.append(entry)
    var index = entries.count - 1
    while index > 0, entries[index].time < entries[(index - 1) / 2].time {
      entries.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
  }

  private static func pop(from entries: inout [Entry]) -> Entry {
    entries.swapAt(0, entries.count - 1)
    let first = entries.removeLast()
    var index = 0
    while true {
      var least = index
      for child in [2 * index + 1, 2 * index + 2] where child < entries.count {
        if entries[child].time < entries[least].time { least = child }
      }
      guard least != index else { return first }
      entries.swapAt(index, least)
      index = least
    }
  }
}
