import Foundation
import Simulation
import StorageConformance
import SystemCalls
import TestSupport
import Touchstone

/// A script of steps during which the power may be cut: what the steps do to the files is recorded, and afterwards the
/// disk is looked at as a power cut at random moments would leave it.
package struct PowerLoss: Codable, Sendable {
  package var engine: String
  package var isFull: Bool
  /// Of the states of the disk.
  package var seed: UInt64
  package var states: Int
  package var steps: [MachineStep]

  private var durability: Durability { isFull ? .full : .normal }

  /// Draws one from a seed.
  package init(seed: UInt64, engine: String, steps count: Int, states: Int) {
    var random = SeededGenerator(seed: seed)
    self.engine = engine
    self.seed = seed
    self.states = states
    isFull = random.once(in: 2)
    steps = MachineStep.random(&random, engine: engine, count: count) { random in
      // Only syncs: what else fails changes nothing for the disk.
      random.once(in: 12)
        ? FailingCall(kind: .sync, after: random.below(3), error: random.pick([EIO, ENOSPC])) : nil
    }
  }

  /// A state after a request.
  private struct Entry {
    /// The recorded calls before and after the request.
    let start: Int
    let end: Int
    let isAcknowledged: Bool
    let shown: Shown
    let request: MachineRequest
    /// The state before it.
    let before: MachineState
  }

  /// How many states of the disk were looked at. Throws a `Mismatch` for the first wrong one.
  @discardableResult
  package func run() throws -> Int {
    try withFastDirectory { directory in
      let folder = directory + "/disk"
      guard mkdir(folder, 0o755) == 0 else { throw Mismatch("can't make \(folder)") }
      let prebuilt = try Prebuilt.make(
        in: directory, encrypted: ["sqlcipher", "lmdb-encrypted"].contains(engine))
      var status = stat()
      guard stat(folder, &status) == 0 else { throw Mismatch("can't look at \(folder)") }
      watch_folder(folder)
      record_calls()
      defer { forget_calls() }
      let entries: [Entry]
      do {
        defer { watch_folder(nil) }
        entries = try record(folder, prebuilt)
      }
      return try cut(entries, Disk(root: folder, inode: UInt64(status.st_ino)), prebuilt, directory)
    }
  }

  // MARK: The steps

  private func record(_ folder: String, _ prebuilt: [Prebuilt]) throws -> [Entry] {
    let database = MachineDatabase(folder: folder, engine: engine, durability: durability)
    var state = MachineState(engine: engine)
    var entries: [Entry] = []
    func perform(_ request: MachineRequest, failing: FailingCall?) throws {
      let start = recorded_calls()
      failing?.arm()
      let answer = database.perform(request)
      let failed = failing == nil ? nil : failed_call()
      let end = recorded_calls()
      var isAcknowledged = true
      let before = state
      if failed != nil, case .refused = answer {
        isAcknowledged = false
        let shown = try shownAfterFailure(database)
        guard let settled = state.settled(request, shown, prebuilt) else {
          throw Mismatch(
            "after a failed sync \(request) is neither done nor undone:\n    "
              + shown.difference(from: state.shown)
          )
        }
        state = settled
      } else {
        try state.take(request, answer, prebuilt) { database.perform(.operation(.document(id: $0))) }
      }
      entries.append(
        Entry(
          start: start, end: end, isAcknowledged: isAcknowledged, shown: state.shown, request: request,
          before: before))
    }
    try perform(.open, failing: nil)
    for (number, step) in steps.enumerated() {
      var failing: FailingCall?
      if case .failing(let call, _) = step { failing = call }
      do {
        for request in state.requests(step, prebuilt) {
          // A failed request may have closed it.
          if request.needsOpen != database.isOpen, let needed = request.needsOpen {
            try perform(needed ? .open : .close, failing: nil)
          }
          try perform(request, failing: failing)
        }
        if !database.isOpen { try perform(.open, failing: nil) }
      } catch { throw Mismatch("step \(number), \(step):\n  \(error)") }
    }
    try perform(.close, failing: nil)
    return entries
  }

  /// A database that refuses everything after a failure has to be right once it was opened again.
  private func shownAfterFailure(_ database: MachineDatabase) throws -> Shown {
    if case .shown(let shown) = database.show() { return shown }
    try? database.close()
    let opened = database.perform(.open)
    guard opened == .done else { throw Mismatch("after a failure it can't be opened again: \(opened)") }
    let reply = database.show()
    guard case .shown(let shown) = reply else { throw Mismatch("after a failure: \(reply)") }
    return shown
  }

  // MARK: The states of the disk

  private func cut(
    _ entries: [Entry], _ empty: Disk, _ prebuilt: [Prebuilt], _ directory: String
  ) throws -> Int {
    var random = SeededGenerator(seed: seed &+ 1)
    var fate = SeededGenerator(seed: seed &+ 2)
    var disk = empty
    let count = recorded_calls()
    var cuts = (0..<states).map { _ in random.below(count + 1) }.sorted()[...]
    for position in 0...count {
      while cuts.first == position {
        cuts.removeFirst()
        let place = directory + "/state"
        guard mkdir(place, 0o755) == 0 else { throw Mismatch("can't make \(place)") }
        defer { try? FileManager.default.removeItem(atPath: place) }
        var own = SeededGenerator(seed: random.next())
        try disk.cut(into: place, &own)
        try look(place, at: position, entries, prebuilt)
      }
      if position < count { try disk.follow(recorded_call(position), fate: &fate) }
    }
    return states
  }

  /// Opens a state, and compares it with what it may be after `position` calls.
  private func look(
    _ folder: String, at position: Int, _ entries: [Entry], _ prebuilt: [Prebuilt]
  ) throws {
    let safe = entries.lastIndex { $0.isAcknowledged && $0.end <= position } ?? -1
    let last = max(safe, entries.lastIndex { $0.start < position } ?? -1)
    let first = isFull ? safe : min(safe, 0)
    let moment =
      "power cut after call \(position)"
      + (last >= 0 ? ", in or after \(entries[last].request)" : "")
    guard let reply = MachineDatabase.shown(folder: folder, durability: durability) else {
      guard first < 0 else { throw Mismatch("\(moment): the database is gone") }
      return
    }
    guard case .shown(let shown) = reply else { throw Mismatch("\(moment): \(reply)") }
    let allowed = entries[max(0, first)...max(0, last)]
    guard !allowed.contains(where: { $0.shown == shown }) else { return }
    // What was refused and undone may be found in a log.
    let refused = allowed.filter { !$0.isAcknowledged }
    guard !refused.contains(where: { $0.before.settled($0.request, shown, prebuilt) != nil }) else { return }
    let nearest = entries[max(0, safe)].shown
    throw Mismatch(
      "\(moment): none of the \(allowed.count) states that it may be in\n    "
        + shown.difference(from: nearest)
    )
  }
}

extension FailingCall {
  func arm() { fail_call(kind.number, UInt(after), error, isHalf ? 1 : 0) }
}

extension MachineStep {
  /// Draws steps, some of which fail as `failing` says.
  static func random(
    _ random: inout SeededGenerator, engine: String, count: Int,
    failing: (inout SeededGenerator) -> FailingCall?
  ) -> [MachineStep] {
    // What is encrypted stays so.
    let engines =
      engine == "sqlcipher" || engine == "lmdb-encrypted"
      ? ["sqlcipher", "lmdb-encrypted"]
      : ["sqlite", "lmdb"] + (engine == "rocksdb" || engine == "wiredtiger" ? [engine] : [])
    var generator = StepGenerator(
      seed: random.next(), World.Settings(engine: engine, workers: 1, lastOnlyReads: false),
      engines: engines, usesHTTP: false)
    return (0..<count).map { _ in
      let step: MachineStep =
        switch random.below(40) {
        case 0: .replace(random.below(2))
        case 1: .changeKey(random.below(MachineDatabase.keys))
        case 2: .step(.convert(engine: random.pick(engines)))
        default: .step(generator.next())
        }
      return failing(&random).map { .failing($0, step) } ?? step
    }
  }
}

/// Runs `body` with the path of a temporary directory in memory, where there is one: states of a disk are many.
func withFastDirectory<Result>(_ body: (String) throws -> Result) throws -> Result {
  var template = Array("/dev/shm/touchstone-XXXXXX".utf8CString)
  guard mkdtemp(&template) != nil else { return try withTemporaryDirectory(body) }
  let path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  defer { try? FileManager.default.removeItem(atPath: path) }
  return try body(path)
}
