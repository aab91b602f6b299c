import Storage

/// One observer, and what it wasn't told yet.
///
/// Notes wait here as bytes. When there are too many of them, those of saves are dropped, and the observer catches
/// up from the changes that are stored: its memory is bounded but for the notes of purges, which are stored nowhere.
public final class ChangeObserver: Sendable {
  /// How many bytes of notes wait at most.
  static let maximumBytes = 1 << 20
  /// How many stored changes are read at a time.
  static let chunk = 4096

  private struct State {
    var notes: [[UInt8]] = []
    var bytes = 0
    /// The last sequence before it began.
    var since: UInt64 = 0
    /// Up to which sequence it was told; what the notes reach up to; and up to where it has to catch up.
    var told: UInt64 = 0
    var noted: UInt64 = 0
    var target: UInt64 = 0
    /// Notes of what the stored changes don't tell, from before what it catches up with.
    var unstored: [UInt8] = []
    var ready: [DocumentChange] = []
    var missedSince: UInt64?
    /// Whether something without a sequence has changed that it is told of.
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

  /// Which document it is about; nil for all.
  let documentID: String?
  /// Whose end ends it.
  let owner: ObjectIdentifier?
  /// Whether it is told, by a change without documents, of commits that change what has no sequence: a body under an old
  /// one, as a purge of revisions does, or when a document expires.
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

  // MARK: What the feed says

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
      // A commit from before it began, which is passed on only now.
      guard sequence >= state.since else { return nil }
      if documentID != nil {
        // Only the latest counts.
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
          guard note.isUnstored else { return }
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

  /// A commit has changed what has no sequence.
  func receiveUnsequenced() {
    guard includesUnsequenced else { return }
    state.withLock { $0.hasUnsequenced = true }
    wake()
  }

  /// No more will come.
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

  // MARK: What the observer does

  /// Ends it: nothing more is told.
  public func cancel() {
    store.feed.remove(self)
    state.withLock { state in
      state.isCancelled = true
      state.isFinished = true
      state.notes = []
      state.unstored = []
      state.ready = []
    }
    wake()
  }

  /// What wasn't told yet; waits for something. Nil after the end, and when the task is cancelled.
  public func next() async -> DatabaseChange? {
    while !Task.isCancelled {
      switch take() {
      case .change(let change): return change
      case .finished: return nil
      case .behind:
        await withCheckedContinuation { continuation in
          store.feed.workers.enqueue {
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
    store.feed.workers.enqueue { self.tellHandler() }
  }

  /// Tells the callback once, and comes again for the rest: one that is slow lets others in between.
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
    // Decoded without the lock: writers take it.
    let changes = ChangeNote.changes(of: lists, after: told)
    return changes.isEmpty ? take() : .change(DatabaseChange(changes: changes, missedSince: nil))
  }

  /// Reads what it missed from the stored changes: a piece of it.
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
      // Purged and made anew, or changed once more: that is told.
      let isThere = Set(noted.isEmpty ? [] : found.changes.map { ByteString($0.documentID) })
      state.withLock { state in
        state.ready += noted.filter { !isThere.contains(ByteString($0.documentID)) } + found.changes
        state.told = max(state.told, found.reached)
      }
    } catch {
      state.withLock { state in
        state.ready += noted
        state.missedSince = min(state.missedSince ?? told, told)
        state.told = max(state.told, target)
      }
    }
  }
}
