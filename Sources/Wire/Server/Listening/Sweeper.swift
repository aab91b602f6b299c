import Logs
import System

/// A thread that looks at all connections, and cuts off those that have had their time.
final class Sweeper: Sendable {
  private static let interval = 0.2
  /// While sockets linger: what comes has to be dropped before the kernel's buffer is full.
  private static let lingeringInterval = 0.005
  private let core: ServerCore
  private let stopSignal = CountingSemaphore()
  private let ended = CountingSemaphore()
  private let worker = Workers(maximum: 1)
  /// Whether slow clients hold all threads. Only the sweeper's thread uses it.
  private nonisolated(unsafe) var isStarved = false

  init(_ core: ServerCore) { self.core = core }

  func start() {
    worker.enqueue { [self] in
      var nextLook = 0.0
      while !stopSignal.wait(seconds: core.lingering.isEmpty ? Self.interval : Self.lingeringInterval) {
        let now = MonotonicClock.now
        core.lingering.drain(now: now)
        guard now >= nextLook else { continue }
        nextLook = now + Self.interval / 2
        isStarved = core.threads.areStarved
        for connection in core.table.all { look(at: connection, now) }
      }
      core.lingering.closeAll()
      ended.signal()
    }
  }

  func stop() {
    stopSignal.signal()
    ended.wait()
  }

  private func look(at connection: ServerConnection, _ now: Double) {
    worker.assertCurrent("the sweeper")
    let limits = core.limits
    let phase = connection.phase.load(ordering: .relaxed)
    let seconds = now - connection.phaseSince
    switch phase {
    case .waiting:
      let isFirst = connection.requests.load(ordering: .relaxed) == 0
      if core.isStopping, connection.exchange == nil { return connection.cutOff(keepingSent: true) }
      if seconds > (isFirst ? limits.headerSeconds : limits.idleSeconds) {
        return cutOff(connection, "no request came", keepingSent: true)
      }
      lookForEnd(connection)
    case .working:
      if seconds > limits.handlerSeconds, let exchange = connection.exchange, !exchange.isAnswered {
        Log.write(
          .warning, .network, nil, "listener: no answer in \(limits.handlerSeconds) s for \(connection.peer)")
        var answer = core.errorAnswer(503, "the answer takes too long")
        answer.closesConnection = true
        exchange.timeOut(answer)
      }
      lookForClient(connection, now)
    case .receiving, .sending:
      if connection.isPaused.load(ordering: .relaxed)
        || phase == .receiving && connection.exchange?.isBodyUnasked == true
      {
        let since = connection.progress.pausedSince ?? now
        connection.progress.pausedSince = since
        // A feed may wait for as long as it likes.
        if now - since > limits.handlerSeconds, phase == .receiving || connection.exchange?.isProduced == true
        {
          return cutOff(connection, "nothing was done for it in \(limits.handlerSeconds) s")
        }
        connection.progress.slowSince = nil
        connection.progress.phase = .waiting
        lookForClient(connection, now)
      } else {
        connection.progress.pausedSince = nil
        measure(connection, phase, now)
        if phase == .receiving { lookForEnd(connection) }
      }
    case .closing: measure(connection, phase, now)
    case .upgraded: break
    }
  }

  /// Whether the client will never send the rest of its request. The library doesn't see an end that came together with
  /// the bytes before it: it waits for an event that has been.
  private func lookForEnd(_ connection: ServerConnection) {
    guard connection.isAtEnd else { return connection.progress.looksEnded = false }
    if connection.progress.looksEnded { return connection.cutOff(keepingSent: true) }
    // It may be on the way to the library.
    connection.progress.looksEnded = true
  }

  /// Whether the client of a connection that waits for this side is still there.
  private func lookForClient(_ connection: ServerConnection, _ now: Double) {
    let state = connection.peerState()
    if state.isGone { return connection.cutOff() }
    guard state.isHalfClosed else { return connection.progress.halfClosedSince = nil }
    let since = connection.progress.halfClosedSince ?? now
    connection.progress.halfClosedSince = since
    if now - since >= core.limits.halfClosedSeconds { connection.cutOff() }
  }

  /// Whether the client sends or takes enough.
  private func measure(_ connection: ServerConnection, _ phase: ServerConnection.Phase, _ now: Double) {
    let bytes =
      phase == .receiving ? connection.bytesIn.load(ordering: .relaxed) : connection.confirmedBytes
    guard connection.progress.phase == phase, connection.progress.bytes <= bytes else {
      connection.progress.phase = phase
      connection.progress.bytes = bytes
      connection.progress.since = now
      connection.progress.slowSince = nil
      return
    }
    let (slowSeconds, slowBytes) = demand
    let seconds = now - connection.progress.since
    guard seconds >= min(1, slowSeconds / 2) else { return }
    let isSlow = Double(bytes - connection.progress.bytes) < Double(slowBytes) * seconds
    if isSlow {
      let since = connection.progress.slowSince ?? connection.progress.since
      connection.progress.slowSince = since
      if now - since >= slowSeconds {
        cutOff(connection, phase == .receiving ? "it sends too slowly" : "it takes its answer too slowly")
      }
    } else {
      connection.progress.slowSince = nil
    }
    connection.progress.bytes = bytes
    connection.progress.since = now
  }

  /// How slow a client may be for how long. While slow clients hold all threads, less is borne.
  private var demand: (seconds: Double, bytesPerSecond: Int) {
    let limits = core.limits
    guard isStarved else { return (limits.slowSeconds, limits.slowBytesPerSecond) }
    return (
      min(limits.slowSeconds, limits.busySeconds), max(limits.slowBytesPerSecond, limits.busyBytesPerSecond)
    )
  }

  private func cutOff(_ connection: ServerConnection, _ reason: String, keepingSent: Bool = false) {
    Log.write(.info, .network, nil, "listener: cut off \(connection.peer): \(reason)")
    connection.cutOff(keepingSent: keepingSent)
  }
}
