import Logs
import Storage

/// An observer and its pending changes.
///
/// Notes wait as bytes. When there are too many, the notes of saves are dropped and the observer reads the
/// stored changes instead. So its memory is bounded, except for the notes of purges, which aren't stored.
package final class ChangeObserver: Sendable {
  /// The maximum number of bytes of waiting notes.
  static let maximumBytes = 1 << 20
  /// The maximum number of stored changes that are read at a time.
  static let chunk = 4096

  private struct State {
    var notes: [[UInt8]] = []
    var bytes = 0
    /// The last sequence before the observation began.
    var since: UInt64 = 0
    /// The last delivered sequence, the last sequence of the notes, and the sequence to catch up to.
    var told: UInt64 = 0
    var noted: UInt64 = 0
    var target: UInt64 = 0
    /// Notes that the stored changes don't cover, from before the changes to catch up with.
    var unstored: [UInt8] = []
    var ready: [DocumentChange] = []
    var missedSince: UInt64?
    /// Whether a change without a sequence is to be reported.
    var hasUnsequenced = false
    var isFinished = false
    var isCancelled = false
    var isScheduled = false
    var waiter: CheckedContinuation<Void, Never>?

    var isBehind: Bool { target > told || !unstored.isEmpty }
    var hasNews: Bool {
      !ready.isEmpty || missedSince != nil || isBehind || !notes.isEmpty || hasUnsequenced
    }
  }

  /// The observed document, nil for all documents.
  let documentID: String?
  /// The owner. Ending the owner's observers ends this one.
  let owner: ObjectIdentifier?
  /// Whether commits with changes without a new sequence are reported, as a change without documents: an
  /// import below the last sequence, or an expiration time.
  private let includesUnsequenced: Bool
  private let handler: (@Sendable (DatabaseChange) -> Void)?
  private let store: DocumentStore
  private let state = Lock(State())

  init(
    _ store: DocumentStore, documentID: String?, owner: ObjectIdentifier?, includesUnsequenced: Bool = false,
    handler: (@Sendable (DatabaseChange) -> Void)?
  ) {
    self.store = store
    self.documentID = documentID
    self.owner = owner
    self.includesUnsequenced = includesUnsequenced
    self.handler = handler
  }

  // MARK: Calls by the notifier

  func begin(after sequence: UInt64) {
    state.withLock { state in
      state.since = sequence
      state.told = sequence
      state.noted = sequence
      state.target = sequence
    }
  }

  func receive(_ notes: [UInt8], upTo sequence: UInt64) {
    let overflow: Bool? = state.withLock { state in
      // A commit from before the observation began that is published only now.
      guard sequence >= state.since else { return nil }
      if documentID != nil {
        // Only the latest note of a single document counts.
        state.notes.removeAll(keepingCapacity: true)
        state.bytes = 0
      }
      state.notes.append(notes)
      state.bytes += notes.count + 32
      state.noted = max(state.noted, sequence)
      return state.bytes > ChangeObserver.maximumBytes
    }
    guard let overflow else { return }
    if overflow { return fallBehind(upTo: sequence, []) }
    wake()
  }

  func fallBehind(upTo sequence: UInt64, _ unstored: [UInt8]) {
    state.withLock { state in
      guard sequence >= state.since else { return }
      for notes in state.notes + [unstored] {
        ChangeNote.forEach(notes) { note, bytes in
          guard note.isPurge else { return }
          if let documentID, !documentID.utf8.elementsEqual(note.id) { return }
          state.unstored.append(contentsOf: bytes)
        }
      }
      state.notes = []
      state.bytes = 0
      state.noted = max(state.noted, sequence)
      state.target = max(state.target, state.noted)
    }
    wake()
  }

  /// Is told that changes were missed after a sequence. More news follow at once.
  func miss(since sequence: UInt64) {
    state.withLock { $0.missedSince = min($0.missedSince ?? sequence, max(sequence, $0.since)) }
  }

  /// Receives a commit that made changes without a sequence.
  func receiveUnsequenced() {
    guard includesUnsequenced else { return }
    state.withLock { $0.hasUnsequenced = true }
    wake()
  }

  /// Ends the observer after its pending changes.
  func finish() {
    state.withLock { $0.isFinished = true }
    wake()
  }

  private func wake() {
    let (waiter, isToSchedule) = state.withLock { state in
      let waiter = state.waiter
      state.waiter = nil
      let isToSchedule = handler != nil && !state.isScheduled && !state.isCancelled && state.hasNews
      if isToSchedule { state.isScheduled = true }
      return (waiter, isToSchedule)
    }
    waiter?.resume()
    if isToSchedule { schedule() }
  }

  // MARK: Delivering changes

  /// Ends the observer. Pending changes are dropped.
  package func cancel() {
    store.notifier.remove(self)
    state.withLock { state in
      state.isCancelled = true
      state.isFinished = true
      state.notes = []
      state.unstored = []
      state.ready = []
    }
    wake()
  }

  /// Waits for changes and returns those that are pending. Nil after the end, and when the task is cancelled.
  package func next() async -> DatabaseChange? {
    while !Task.isCancelled {
      switch take() {
      case .change(let change): return change
      case .finished: return nil
      case .behind:
        await withCheckedContinuation { continuation in
          store.notifier.workers.enqueue {
            self.catchUp()
            continuation.resume()
          }
        }
      case .nothing:
        await withTaskCancellationHandler {
          await withCheckedContinuation { wait($0) }
        } onCancel: {
          wake()
        }
      }
    }
    return nil
  }

  private func wait(_ continuation: CheckedContinuation<Void, Never>) {
    // A task that was cancelled has called `wake` already, or will find the continuation.
    let other = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard !state.hasNews, !state.isFinished, !Task.isCancelled else { return continuation }
      let other = state.waiter
      state.waiter = continuation
      return other
    }
    other?.resume()
  }

  private func schedule() {
    store.notifier.workers.enqueue { self.tellHandler() }
  }

  /// Calls the handler once and schedules itself again for the rest, so that a slow handler doesn't block
  /// others.
  private func tellHandler() {
    if case .change(let change) = takeCaughtUp() { handler?(change) }
    let isMore = state.withLock { state in
      state.isScheduled = state.hasNews && !state.isCancelled
      return state.isScheduled
    }
    if isMore { schedule() }
  }

  private func takeCaughtUp() -> Taken {
    let taken = take()
    guard case .behind = taken else { return taken }
    catchUp()
    return take()
  }

  private enum Taken {
    case nothing, behind, finished
    case change(DatabaseChange)
  }

  private func take() -> Taken {
    var lists: [[UInt8]] = []
    var told: UInt64 = 0
    let taken = state.withLock { state -> Taken in
      if state.isCancelled { return .finished }
      if !state.ready.isEmpty || state.missedSince != nil {
        let change = DatabaseChange(changes: state.ready, missedSince: state.missedSince)
        state.ready = []
        state.missedSince = nil
        return .change(change)
      }
      if state.isBehind { return .behind }
      if state.hasUnsequenced, state.notes.isEmpty {
        state.hasUnsequenced = false
        return .change(DatabaseChange(changes: [], missedSince: nil))
      }
      if state.notes.isEmpty { return state.isFinished ? .finished : .nothing }
      lists = state.notes
      told = state.told
      state.notes = []
      state.bytes = 0
      state.told = max(state.told, state.noted)
      state.target = max(state.target, state.told)
      return .nothing
    }
    guard !lists.isEmpty else { return taken }
    // Decoded without the lock, which writers take.
    let changes = ChangeNote.changes(of: lists, after: told)
    return changes.isEmpty ? take() : .change(DatabaseChange(changes: changes, missedSince: nil))
  }

  /// Reads one chunk of the missed changes from the stored changes.
  private func catchUp() {
    let (told, target, unstored) = state.withLock { state in
      defer { state.unstored = [] }
      return (state.told, state.target, state.unstored)
    }
    let noted = ChangeNote.changes(of: [unstored], after: 0)
    do {
      let found = try store.background.pass {
        try store.observedChanges(
          after: told, upTo: target, limit: ChangeObserver.chunk, of: documentID)
      }
      // A document that was purged and created again, or changed again, is reported with its stored change.
      let isThere = Set(noted.isEmpty ? [] : found.changes.map { ByteString($0.documentID) })
      state.withLock { state in
        state.ready += noted.filter { !isThere.contains(ByteString($0.documentID)) } + found.changes
        state.told = max(state.told, found.reached)
      }
    } catch {
      Log.write(
        .warning, .database, store.logPath,
        "an observer missed changes after the sequence \(told), because they couldn't be read: \(LogText.of(error))"
      )
      state.withLock { state in
        state.ready += noted
        state.missedSince = min(state.missedSince ?? told, told)
        state.told = max(state.told, target)
      }
    }
  }
}
