import Logs
import Storage
import Touchstone

/// Sees to it that of all processes with a database one at a time does some work for it in the background: asks for the turn until it has
/// it, asks then whether it still has it, and ends the work when it is lost.
///
/// The work is called on a lane of one thread. Nothing waits there for the turn: the lane is asked again by the timer.
final class TurnKeeper: Sendable {
  /// What is done in the turn. All is called on the lane.
  struct Work: Sendable {
    /// The turn is held: the work may begin. If it throws, the turn is given back, and asked for again later.
    let begin: @Sendable () throws -> Void
    /// The turn is still held.
    let goOn: @Sendable () -> Void
    /// The turn is lost: another process may have it by now. `ended` is called when nothing of the work runs any more.
    let end: @Sendable (_ ended: @escaping @Sendable () -> Void) -> Void
  }

  private enum Phase {
    /// Somebody else has the turn, or it couldn't be asked for.
    case waiting
    /// The turn is held. Who had it may not have noticed yet that it is lost.
    case settling
    case held
    /// It was lost, and the work is ending.
    case lost
    case ended
  }

  private struct State {
    var phase = Phase.waiting
    var turn: (any WorkTurn)?
    /// Whether another process has had the turn, as far as is known.
    var wasTaken = false
    /// Whether it was logged why the turn isn't held.
    var isLogged = false
    var token: TimerToken?
  }

  private let database: Database
  private let purpose: String
  private let timer: any CallTimer
  private let seconds: Double
  private let lane: Workers
  private let work: Work
  private let state = Lock(State())

  /// - Parameters:
  ///   - purpose: a word for the work, the same in all processes.
  ///   - seconds: how often is asked for the turn, and whether it is still held.
  ///   - lane: workers with one thread.
  init(
    _ database: Database, for purpose: String, _ timer: any CallTimer, seconds: Double, _ lane: Workers,
    _ work: Work
  ) {
    self.database = database
    self.purpose = purpose
    self.timer = timer
    self.seconds = seconds
    self.lane = lane
    self.work = work
  }

  deinit { state.withLock { $0.turn }?.giveBack() }

  /// Whether the work may be done.
  var isHeld: Bool { state.withLock { $0.phase == .held } }

  /// Asks for the turn for the first time. Called on the lane, once.
  func start() { ask() }

  /// Gives the turn back, when nothing of the work runs any more. It isn't asked for again.
  func end() {
    let (turn, token) = state.withLock { state in
      defer { state = State(phase: .ended) }
      return (state.turn, state.token)
    }
    token?.cancel()
    turn?.giveBack()
  }

  // MARK: Steps

  private func step() {
    switch state.withLock({ $0.phase }) {
    case .waiting: ask()
    case .settling: isStillHeld() ? begin() : lose()
    case .held:
      guard isStillHeld() else { return lose() }
      work.goOn()
      later(seconds)
    case .lost, .ended: break
    }
  }

  /// Makes the next step after some time.
  private func later(_ seconds: Double) {
    let token = timer.schedule(after: seconds) { [weak self] in
      self?.lane.enqueue { [weak self] in self?.step() }
    }
    let isWanted = state.withLock { state in
      guard state.phase != .ended else { return false }
      state.token = token
      return true
    }
    if !isWanted { token.cancel() }
  }

  private func ask() {
    do {
      guard let turn = try turn() else { return }
      guard try database.take(turn) else {
        state.withLock { $0.wasTaken = true }
        log(.info, "another process, or another service of this one, does this work")
        return later(seconds)
      }
      let settles = state.withLock { state -> Bool? in
        guard state.phase == .waiting else { return nil }
        let settles = state.wasTaken && turn.canBeLost
        if settles { state.phase = .settling }
        return settles
      }
      guard let settles else { return }
      // Whoever had it asks as often as this one does, and then ends what runs.
      if settles { later(2 * seconds) } else { begin() }
    } catch {
      // Another process may have had the turn meanwhile.
      state.withLock { $0.wasTaken = true }
      log(LogText.level(of: error), "it can't be found out who does this work: \(LogText.of(error))")
      later(seconds)
    }
  }

  /// The turn, which is made if there is none. Nil after the end.
  private func turn() throws -> (any WorkTurn)? {
    let (known, hasEnded) = state.withLock { ($0.turn, $0.phase == .ended) }
    if known != nil || hasEnded { return known }
    let turn = try database.workTurn(for: purpose)
    return state.withLock { state in
      guard state.phase != .ended else { return nil }
      state.turn = turn
      return turn
    }
  }

  private func isStillHeld() -> Bool {
    do { return try state.withLock { $0.turn }?.isStillHeld() ?? false } catch {
      log(LogText.level(of: error), "it can't be found out who does this work: \(LogText.of(error))")
      return false
    }
  }

  private func begin() {
    let isWanted = state.withLock { state in
      guard state.phase != .ended else { return false }
      state.phase = .held
      state.isLogged = false
      return true
    }
    guard isWanted else { return }
    do { try work.begin() } catch {
      log(LogText.level(of: error), "the work can't begin: \(LogText.of(error))")
      let turn = takeTurn(leaving: .waiting)
      turn?.giveBack()
    }
    later(seconds)
  }

  private func lose() {
    let wasHeld = isHeld
    guard let turn = takeTurn(leaving: wasHeld ? .lost : .waiting) else { return }
    if wasHeld { Log.write(.warning, .sync, database.name, "the turn to work as \(purpose) was lost") }
    turn.giveBack()
    guard wasHeld else { return later(seconds) }
    work.end { [weak self] in
      self?.lane.enqueue { [weak self] in
        guard let self else { return }
        state.withLock { if $0.phase == .lost { $0.phase = .waiting } }
        step()
      }
    }
  }

  /// Forgets the turn. Nil after the end.
  private func takeTurn(leaving phase: Phase) -> (any WorkTurn)? {
    state.withLock { state in
      guard state.phase != .ended else { return nil }
      state.phase = phase
      state.wasTaken = true
      defer { state.turn = nil }
      return state.turn
    }
  }

  /// Logs why the turn isn't held, once until it is held again.
  private func log(_ level: LogLevel, _ text: String) {
    let isNew = state.withLock { state in
      defer { state.isLogged = true }
      // After the end, a turn that was given back can't be asked for.
      return !state.isLogged && state.phase != .ended
    }
    if isNew { Log.write(level, .sync, database.name, "\(purpose): \(text)") }
  }
}
