/// Heartbeats: signs of life that a feed sends when it has been quiet for `heartbeat` milliseconds. Without heartbeats the same
/// time is its end.
extension ChangesFeed {
  /// Its time may have come. Returns when to ask again; nil if it asks itself.
  func tick(now: Double) -> Double? {
    let (next, runs) = state.withLock { state -> (Double?, Bool) in
      guard state.phase == .waiting else {
        state.isTimed = false
        return (nil, false)
      }
      guard state.deadline <= now + 0.001 else { return (state.deadline, false) }
      state.isTimed = false
      state.isDue = true
      state.phase = .running
      return (nil, true)
    }
    if runs { watches.workers.enqueue { [self] in run() } }
    return next
  }

  /// Whether a heartbeat is due while it reads: scripts may take long to choose nothing.
  var isLate: Bool {
    reader.options.heartbeat != nil && state.withLock { $0.deadline <= watches.timers.timer.now }
  }

  /// A sign of life. The first one of server-sent events is an empty line.
  func sign() -> [UInt8] {
    let hadSent = state.withLock { state in
      defer { state.hasSent = true }
      return state.hasSent
    }
    let isEvent = reader.options.feed == .eventsource && hadSent
    return Array((isEvent ? "event: heartbeat\ndata: \n\n" : "\n").utf8)
  }
}
