import Storage
import Synchronization

/// Notifies observers of commits, in the order of the commits.
///
/// A writer queues its notes inside its transaction, where transactions are ordered. After the commit, the
/// thread that finds the first queued commit complete publishes it. So writers that share a commit and return
/// in any order are published in the order of their sequences. No thread waits.
final class ObserverNotifier: Sendable {
  private struct State {
    /// Transactions that aren't published yet, oldest first.
    var line: [ObservedCommit] = []
    /// The last sequence that observers were notified of.
    var published: UInt64 = 0
    /// The number of the last recorded purge that observers were notified of.
    var publishedPurges: UInt64 = 0
    var observers: [ObjectIdentifier: ChangeObserver] = [:]
    var ofDocument: [ByteString: [ChangeObserver]] = [:]
    var count = 0
  }

  private let state = Lock(State())
  private let active = Atomic<Bool>(false)
  /// Run callbacks and catch-up reads. `maximum` bounds the number of observers that are busy at once.
  let workers = Workers(maximum: 4)

  /// Called when the first observer was added, and when the last one was removed.
  let onActivity = Lock<(@Sendable () -> Void)?>(nil)

  /// Whether there are observers now.
  var hasObservers: Bool { state.withLock { $0.count > 0 } }

  /// Whether there are observers.
  @inline(__always)
  var isActive: Bool { active.load(ordering: .sequentiallyConsistent) }

  // MARK: Observers

  /// Adds an observer, which is notified of what comes after `last`: the sequence of the last commit, and the
  /// number of the last recorded purge.
  func add(_ observer: ChangeObserver, last: () throws -> (sequence: UInt64, purge: UInt64)) throws {
    state.withLock { state in
      state.count += 1
      // Writers check this flag from now on. Commits made before the sequence is read aren't reported.
      active.store(true, ordering: .sequentiallyConsistent)
    }
    let sequence, purge: UInt64
    do { (sequence, purge) = try last() } catch {
      state.withLock { state in
        state.count -= 1
        rest(&state)
      }
      throw error
    }
    state.withLock { state in
      // No observer was notified before. Otherwise, existing observers may still wait for notes of earlier
      // commits.
      if state.observers.isEmpty, state.ofDocument.isEmpty {
        state.published = max(state.published, sequence)
        state.publishedPurges = max(state.publishedPurges, purge)
      }
      observer.begin(after: sequence)
      if let id = observer.documentID.map({ ByteString($0) }) {
        state.ofDocument[id, default: []].append(observer)
      } else {
        state.observers[ObjectIdentifier(observer)] = observer
      }
    }
    activityChanged()
  }

  private func activityChanged() { onActivity.withLock { $0 }?() }

  /// Removes the observer.
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
    activityChanged()
  }

  /// Ends the observers of an owner, or all if it is nil. They receive their pending changes, then the end.
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

  /// Without observers and queued commits, writers don't need to queue notes.
  private func rest(_ state: inout State) {
    if state.count == 0, state.line.isEmpty { active.store(false, ordering: .sequentiallyConsistent) }
  }

  // MARK: Commits

  /// Queues a transaction. Called inside the transaction.
  func enqueue(_ commit: ObservedCommit) { state.withLock { $0.line.append(commit) } }

  /// Sets the outcome of a transaction and publishes the commits that are ready.
  func resolve(_ commit: ObservedCommit, isCommitted: Bool) {
    state.withLock { state in
      commit.outcome = isCommitted ? .committed : .failed
      advance(&state)
    }
  }

  /// Publishes a commit that wasn't queued: the first observer was added during the commit.
  func publishLate(_ commit: ObservedCommit) {
    state.withLock { state in
      commit.outcome = .committed
      state.line.append(commit)
      advance(&state)
    }
  }

  /// The last sequence and the last recorded purge that observers were notified of.
  var position: (sequence: UInt64, purge: UInt64) { state.withLock { ($0.published, $0.publishedPurges) } }

  /// Reports that other processes have written up to `sequence`, and their purges after `purge`. Returns false if
  /// it has to be tried again: while commits of this process are queued, whose order isn't known, if another
  /// thread has reported purges since, and if later commits than `sequence` were reported before these purges.
  func notice(_ sequence: UInt64, _ purges: PurgeRecord, after purge: UInt64) -> Bool {
    state.withLock { state in
      guard state.line.isEmpty else { return false }
      guard purges.newest <= purge || state.publishedPurges == purge else { return false }
      // A later commit may have made a purged document again.
      guard purges.notes.isEmpty || state.published <= sequence else { return false }
      let isNews = !purges.notes.isEmpty || purges.isIncomplete
      guard sequence > state.published || isNews else {
        state.publishedPurges = max(state.publishedPurges, purges.newest)
        return true
      }
      publish(
        ObservedCommit(
          after: state.published, upTo: max(sequence, state.published), notes: nil, unstored: purges.notes,
          isIncomplete: purges.isIncomplete), &state)
      state.publishedPurges = max(state.publishedPurges, purges.newest)
      return true
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
    defer {
      state.published = max(state.published, commit.end)
      // Otherwise purges of another process come before, which aren't reported yet.
      if let purges = commit.purges, purges.lowerBound == state.publishedPurges + 1 {
        state.publishedPurges = purges.upperBound
      }
    }
    if commit.isIncomplete {
      for observer in Array(state.observers.values) + state.ofDocument.values.joined() {
        observer.miss(since: state.published)
      }
    }
    if commit.isUnsequenced { for observer in state.observers.values { observer.receiveUnsequenced() } }
    // Without notes, or after commits of another process, observers read the saves from the stored changes.
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
