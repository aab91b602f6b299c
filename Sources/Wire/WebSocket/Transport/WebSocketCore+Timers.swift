import Transport

/// The times at which something is due. One timer serves them all. What happens in the meantime doesn't move it: when it
/// fires, it is seen what is due really.
extension WebSocketCore {
  private static let shortestInterval = 0.05

  /// When to look again; nil for never.
  private var nextTime: MonotonicTime? {
    switch phase {
    case .open:
      var times: [MonotonicTime] = []
      if let heartbeat {
        times.append(lastPing + (isPingUnanswered ? answerTime(heartbeat) : heartbeat))
      }
      if let idleTimeout { times.append(lastReceived + idleTimeout) }
      return times.min()
    case .closing:
      return min(
        closeProgress + options.closeTimeout,
        closeBegan + max(options.closeTimeout, WebSocketOptions.longestClose))
    case .closed: return nil
    }
  }

  private var heartbeat: Double? { options.heartbeat.map { max(Self.shortestInterval, $0) } }
  private var idleTimeout: Double? { options.idleTimeout.map { max(Self.shortestInterval, $0) } }

  private func answerTime(_ heartbeat: Double) -> Double {
    options.answerTimeout.map { max(Self.shortestInterval, $0) }
      ?? min(heartbeat, WebSocketOptions.longestAnswer)
  }

  /// Sees to it that `call` comes when something is due.
  func armTimer(_ call: @escaping @Sendable (UInt64) -> Void) {
    // While the connection is open, times move only later, but for an answer. Closing brings a new one.
    if let timer, phase == .open ? !isTimerLate : timer.time <= closeProgress + options.closeTimeout {
      return
    }
    isTimerLate = false
    guard let time = nextTime else { return }
    if let timer { loop.cancel(timer.id) }
    timerNumber += 1
    let number = timerNumber
    timer = (number, loop.call(at: time) { call(number) }, time)
  }

  func timeHasCome(_ number: UInt64) {
    // Another timer may have taken the place of the one that calls.
    guard timer?.number == number else { return }
    timer = nil
    let now = MonotonicTime.now
    switch phase {
    case .open:
      beat(now)
      if phase == .open, let idleTimeout, lastReceived + idleTimeout <= now, !isReadingPaused {
        close(.webSocket(1001, "nothing has come for \(idleTimeout) s"))
      } else if isReadingPaused {
        // What hasn't been read says nothing about the peer.
        lastReceived = now
      }
    case .closing:
      if let time = nextTime, time <= now { finish(.webSocket(1006)) }
    case .closed: break
    }
  }

  private func beat(_ now: MonotonicTime) {
    guard let heartbeat else { return }
    if isPingUnanswered {
      if isReadingPaused {
        isPingUnanswered = false
      } else if lastPing + answerTime(heartbeat) <= now {
        return finish(.webSocket(1006, "the peer hasn't answered a ping in \(answerTime(heartbeat)) s"))
      }
    }
    if !isPingUnanswered, lastPing + heartbeat <= now {
      lastPing = now
      isPingUnanswered = true
      sendControl { session, output in session.write(ping: [], to: &output) }
    }
  }
}
