/// Heartbeats: signs of life that a feed sends when it has been quiet for `heartbeat` milliseconds. Without heartbeats the same
/// time is its end.
extension ChangesFeed {
  /// Whether a heartbeat is due while it reads: scripts may take long to choose nothing.
  var isLate: Bool {
    reader.options.heartbeat != nil && state.withLock { $0.deadline <= watches.timers.timer.now }
  }

  /// A sign of life. The first one of server-sent events is an empty line.
  func sign() -> [UInt8] {
    let hadSent = state.withLock { state in
      defer { state.own.hasSent = true }
      return state.own.hasSent
    }
    let isEvent = reader.options.feed == .eventsource && hadSent
    return Array((isEvent ? "event: heartbeat\ndata: \n\n" : "\n").utf8)
  }
}
