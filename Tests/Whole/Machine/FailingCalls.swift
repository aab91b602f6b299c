import Foundation
import Simulation
import StorageConformance
import TestSupport

/// A script of steps whose system calls fail. What was acknowledged is there afterwards, what was refused is done or
/// not done, and errors are typed.
package struct FailingCalls: Codable, Sendable {
  package var engine: String
  package var isFull: Bool
  package var steps: [MachineStep]

  /// Draws one from a seed.
  package init(seed: UInt64, engine: String, steps count: Int) {
    var random = SeededGenerator(seed: seed)
    self.engine = engine
    isFull = random.once(in: 2)
    steps = MachineStep.random(&random, engine: engine, count: count) { random in
      let kind = random.once(in: 3) ? .sync : random.pick(CallKind.allCases)
      return FailingCall(
        kind: kind, after: random.below(random.once(in: 3) ? 20 : 4), error: random.pick(kind.errors),
        isHalf: kind == .write && random.once(in: 2))
    }
  }

  /// How many calls failed. Throws a `Mismatch` for the first wrong answer.
  @discardableResult
  package func run() throws -> Int {
    try withFastDirectory { directory in
      let folder = directory + "/folder"
      guard mkdir(folder, 0o755) == 0 else { throw Mismatch("can't make \(folder)") }
      let prebuilt = try Prebuilt.make(
        in: directory, encrypted: ["sqlcipher", "lmdb-encrypted"].contains(engine))
      return try Runner(self, folder, prebuilt).run()
    }
  }

  private final class Runner {
    private let script: FailingCalls
    private let folder: String
    private let prebuilt: [Prebuilt]
    private var state: MachineState
    private var worker: MachineWorker
    private var failed = 0
    private var isOpen = false
    /// What was refused and undone since the last change, and the states before it. A log may still hold it, for another
    /// process to find after the death of this one.
    private var undone: [(before: MachineState, request: MachineRequest)] = []

    init(_ script: FailingCalls, _ folder: String, _ prebuilt: [Prebuilt]) throws {
      self.script = script
      self.folder = folder
      self.prebuilt = prebuilt
      state = MachineState(engine: script.engine)
      worker = try MachineWorker(folder: folder, engine: script.engine, isFull: script.isFull)
    }

    func run() throws -> Int {
      try open()
      for (number, step) in script.steps.enumerated() {
        var failing: FailingCall?
        if case .failing(let call, _) = step { failing = call }
        do {
          for request in state.requests(step, prebuilt) {
            if let needed = request.needsOpen, needed != isOpen {
              if needed { try open() } else { try perform(.close, nil) }
            }
            try perform(request, failing)
          }
          if !isOpen { try open() }
        } catch { throw Mismatch("step \(number), \(step):\n  \(error)") }
      }
      try perform(.close, nil)
      try worker.end()
      try restart()
      let shown = try show()
      recall(shown)
      guard shown == state.shown else {
        throw Mismatch(
          "at the end another process sees something else:\n    \(shown.difference(from: state.shown))")
      }
      try worker.kill()
      return failed
    }

    private func open() throws {
      if case .answer(.done) = try worker.ask(.open).reply {
        isOpen = true
        return
      }
      // Its failure may have taken the process's means: another process has to open it.
      try restart()
    }

    /// Kills the process, and lets another one open the database.
    private func restart() throws {
      try worker.kill()
      worker = try MachineWorker(folder: folder, engine: script.engine, isFull: script.isFull)
      let reply = try worker.ask(.open).reply
      guard case .answer(.done) = reply else { throw Mismatch("another process can't open it: \(reply)") }
      isOpen = true
    }

    private func show() throws -> Shown {
      let reply = try worker.ask(nil).reply
      guard case .shown(let shown) = reply else { throw Mismatch("it shows \(reply)") }
      return shown
    }

    private func perform(_ request: MachineRequest, _ failing: FailingCall?) throws {
      let outcome = try worker.ask(request, failing: failing)
      guard case .answer(let answer) = outcome.reply else { throw Mismatch("\(outcome)") }
      switch request {
      case .open: if answer == .done { isOpen = true }
      case .close: isOpen = false
      default: break
      }
      let before = state.shown
      guard let call = outcome.failed else {
        try state.take(request, answer, prebuilt, after: document)
        if state.shown != before { undone = [] }
        return
      }
      failed += 1
      var taken = state
      if (try? taken.take(request, answer, prebuilt, after: document)) != nil {
        state = taken
        if state.shown != before { undone = [] }
        if failed % 4 == 0 || failing?.kind == .open { try compare(request, call, answer) }
        return
      }
      guard let failing, FailingCalls.allows(answer, to: request, failing) else {
        throw Mismatch("\(call) failed, and \(request) is answered with \(answer)")
      }
      try settle(request, call, answer, restarts: failing.kind == .open)
    }

    private func document(_ id: String) throws -> Answer {
      guard case .answer(let answer) = try worker.ask(.operation(.document(id: id))).reply else {
        return .done
      }
      return answer
    }

    /// The same process shows it, or another one if this one was killed or can't go on.
    private func settle(
      _ request: MachineRequest, _ call: String, _ answer: Answer, restarts: Bool
    ) throws {
      let shown: Shown
      if failed % 3 != 0, !restarts, isOpen, case .shown(let here) = try worker.ask(nil).reply {
        shown = here
      } else {
        try restart()
        shown = try show()
      }
      recall(shown)
      guard let settled = state.settled(request, shown, prebuilt) else {
        throw Mismatch(
          "\(call) failed, \(request) is refused with \(answer), and is neither done nor undone:\n    "
            + shown.difference(from: state.shown)
        )
      }
      if settled.shown == state.shown { undone.append((state, request)) }
      state = settled
    }

    /// Takes what another process found in a log.
    private func recall(_ shown: Shown) {
      guard shown != state.shown else { return }
      for (before, request) in undone {
        if let found = before.settled(request, shown, prebuilt) { return state = found }
      }
    }

    private func compare(_ request: MachineRequest, _ call: String, _ answer: Answer) throws {
      try restart()
      let shown = try show()
      recall(shown)
      guard shown == state.shown else {
        throw Mismatch(
          "\(call) failed, \(request) is answered with \(answer), and another process sees:\n    "
            + shown.difference(from: state.shown)
        )
      }
    }
  }

  /// Whether an answer is one that a failed call may have: an error that says so, and doesn't call sound data damaged.
  private static func allows(_ answer: Answer, to request: MachineRequest, _ failing: FailingCall) -> Bool {
    switch answer {
    case .refused("ioError", let message), .refused("diskFull", let message), .refused("busy", let message):
      return !message.isEmpty
    // SQLite calls a page damaged that can't be read. SQLCipher can't say more of a file's first page.
    case .refused("corrupt", let message): return failing.kind == .read && message.contains("sql")
    // SQLite then opens the index of its log for reading only, until the database is closed.
    case .refused("forbidden", let message): return failing.kind == .open && message.contains("sql")
    // LMDB passes on what the system said last.
    case .refused("badRequest", _): return failing.kind == .lock
    // A check reports it as a fault.
    case .names(let faults):
      let reason = String(cString: strerror(failing.error))
      return request == .operation(.check)
        && faults.allSatisfy { fault in
          [reason, "can't be read", "disk I/O error"].contains { fault.contains($0) }
        }
    default: return false
    }
  }
}
