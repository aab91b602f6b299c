import Storage
import Synchronization

/// Tells observers what was committed, in the order of the commits.
///
/// A writer puts its notes in line inside its transaction, where transactions are in order. After the commit, whoever
/// finds the head of the line committed passes it on: so writers that share a commit, and return in any order, are
/// told in the order of their sequences. Nobody waits.
final class ChangeFeed: Sendable {
  private struct State {
    /// Transactions that aren't passed on yet, oldest first.
    var line: [ObservedCommit] = []
    /// Up to which sequence observers were told.
    var published: UInt64 = 0
    var observers: [ObjectIdentifier: ChangeObserver] = [:]
    var ofDocument: [ByteString: [ChangeObserver]] = [:]
    var count = 0
  }

  private let state = Lock(State())
  private let active = Atomic<Bool>(false)
  /// For callbacks and for catching up: so many observers may be busy at once.
  let workers = Workers(maximum: 4)

  /// Whether somebody observes.
  @inline(__always)
  var isActive: Bool { active.load(ordering: .sequentiallyConsistent) }

  // MARK: Observers

  /// Makes the observer known. `lastSequence` reads the sequence of the last commit: it is told what comes after.
  func add(_ observer: ChangeObserver, lastSequence: () throws -> UInt64) throws {
    state.withLock { state in
      state.count += 1
      // From now on writers look here. What they commit before the sequence is read isn't told.
      active.store(true, ordering: .sequentiallyConsistent)
    }
    let sequence: UInt64
    do { sequence = try lastSequence() } catch {
      state.withLock { state in
        state.count -= 1
        rest(&state)
      }
      throw error
    }
    state.withLock { state in
      // Nobody was told of anything before; others who observe may not have been told of it yet.
      if state.observers.isEmpty, state.ofDocument.isEmpty {
        state.published = max(state.published, sequence)
      }
      observer.begin(after: sequence)
      if let id = observer.documentID.map({ ByteString($0) }) {
        state.ofDocument[id, default: []].append(observer)
      } else {
        state.observers[ObjectIdentifier(observer)] = observer
      }
    }
  }

  /// Forgets the observer.
  func remove(_ observer: ChangeObserver) {
    state.withLock { state in
      if let id = observer.documentID.map({ ByteString($0) }) {
        guard let index = state.ofDocument[id]?.firstIndex(where: { $0 === observer }) else { return }
        state.ofDocument[id]?.remove(at: index)
        if state.ofDocument[id]?.isEmpty ?? false { state.ofDocument[id] = nil }
      } else {
        guard state.observers.removeValue(forKey: ObjectIdentifier(observer)) != nil else { return }
      }
      state.count -= 1
      rest(&state)
    }
  }

  /// Ends the observers of an owner, all of them without one: they get what they were told, then the end.
  func end(of owner: ObjectIdentifier? = nil) {
    let ended = state.withLock { state in
      (Array(state.observers.values) + state.ofDocument.values.joined()).filter {
        owner == nil || $0.owner == owner
      }
    }
    for observer in ended {
      remove(observer)
      observer.finish()
    }
  }

  /// Without observers, and with nothing in line, writers need not look here any more.
  private func rest(_ state: inout State) {
    if state.count == 0, state.line.isEmpty { active.store(false, ordering: .sequentiallyConsistent) }
  }

  // MARK: Commits

  /// Puts a transaction in line: called inside it.
  func enqueue(_ commit: ObservedCommit) { state.withLock { $0.line.append(commit) } }

  /// Says how it ended, and passes on what can be.
  func resolve(_ commit: ObservedCommit, isCommitted: Bool) {
    state.withLock { state in
      commit.outcome = isCommitted ? .committed : .failed
      advance(&state)
    }
  }

  /// Passes on a commit that wasn't in line: it came while the first observer did, or from another process.
  func publishLate(_ commit: ObservedCommit) {
    state.withLock { state in
      commit.outcome = .committed
      state.line.append(commit)
      advance(&state)
    }
  }

  /// Another process wrote up to `sequence`, if nothing of this one is on its way.
  func notice(_ sequence: UInt64) {
    state.withLock { state in
      guard state.line.isEmpty, sequence > state.published else { return }
      publish(
        ObservedCommit(after: state.published, upTo: sequence, notes: nil, unstored: []), &state)
    }
  }

  private func advance(_ state: inout State) {
    var done = 0
    while done < state.line.count, state.line[done].outcome != .open {
      if state.line[done].outcome == .committed { publish(state.line[done], &state) }
      done += 1
    }
    state.line.removeFirst(done)
    rest(&state)
  }

  private func publish(_ commit: ObservedCommit, _ state: inout State) {
    defer { state.published = max(state.published, commit.end) }
    if commit.isUnsequenced { for observer in state.observers.values { observer.receiveUnsequenced() } }
    // Without its notes, or after commits of another process, what was saved is read from the stored changes.
    guard let notes = commit.notes, commit.begin <= state.published else {
      for observer in state.observers.values { observer.fallBehind(upTo: commit.end, commit.unstored) }
      for observer in state.ofDocument.values.joined() {
        observer.fallBehind(upTo: commit.end, commit.unstored)
      }
      return
    }
    for observer in state.observers.values { observer.receive(notes, upTo: commit.end) }
    guard !state.ofDocument.isEmpty else { return }
    ChangeNote.forEach(notes) { note, bytes in
      guard let observers = state.ofDocument[ByteString(note.id)] else { return }
      let note = Array(bytes)
      for observer in observers { observer.receive(note, upTo: commit.end) }
    }
  }
}
