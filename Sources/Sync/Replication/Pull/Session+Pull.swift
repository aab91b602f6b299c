import Bytes
import Documents
import Storage
import Touchstone

extension PullState.Key {
  /// What was asked for when this came.
  fileprivate init(_ revision: IncomingRevision) {
    self.init(id: revision.revision.id, revision: revision.asked)
  }
}

/// The pull of a session: what is offered and awaited.
struct PullState {
  /// A revision of a document.
  struct Key: Hashable {
    let id: String
    let revision: String

    static func == (a: Key, b: Key) -> Bool {
      a.id.utf8.elementsEqual(b.id.utf8) && a.revision.utf8.elementsEqual(b.revision.utf8)
    }
    func hash(into hasher: inout Hasher) {
      // Equal bytes are equal strings.
      hasher.combine(id)
    }
  }

  var progress: SequenceQueue<RemoteSequence>
  /// The revisions that were asked for.
  var awaited: [Key: Int] = [:]
  var hasCaughtUp = false
  /// The number of parts that are being stored.
  var stores = 0
  /// Offered lists that aren't answered yet, and sequences that were reached after them.
  var held: [Held] = []

  enum Held {
    case offer([OfferedChange], @Sendable (OfferAnswers) -> Void)
    case reached(RemoteSequence)
  }

  init(reached: RemoteSequence?) { progress = SequenceQueue(reached: reached) }

  var isIdle: Bool { hasCaughtUp && awaited.isEmpty && held.isEmpty && stores == 0 }
}

extension Session: PullSink {
  func offered(_ changes: [OfferedChange], _ answer: @escaping @Sendable (OfferAnswers) -> Void) {
    enqueue { session in
      guard let awaited = session.pull?.awaited.count, let held = session.pull?.held.count else { return }
      if awaited >= session.peer.revisionsInFlight || held > 0 {
        session.pull?.held.append(.offer(changes, answer))
      } else {
        try session.answer(changes, answer)
      }
      session.step()
    }
  }

  private func answer(_ changes: [OfferedChange], _ answer: @Sendable (OfferAnswers) -> Void) throws {
    guard !stopsNewWork else { return }
    let lost = changes.filter(\.isAccessLost)
    if !lost.isEmpty, configuration.purgesOnLostAccess { try purge(lost.map(\.id)) }
    let documentIDs = configuration.documentIDs.map { Set($0.map { ByteString($0) }) }
    let remote = remote
    let (knowledge, depth) = try database.replicating { store in
      (
        try store.syncKnowledge(of: changes.map { ($0.id, $0.revision) }, remote: remote),
        store.maximumTreeDepth
      )
    }
    var answers: [OfferAnswer] = []
    answers.reserveCapacity(changes.count)
    var known: [(id: String, revision: String)] = []
    var older: [String] = []
    var goneBack: [String] = []
    for (change, knowledge) in zip(changes, knowledge) {
      guard !change.isAccessLost, documentIDs?.contains(ByteString(change.id)) ?? true else {
        pass(change.sequence)
        answers.append(.unwanted)
        continue
      }
      switch knowledge {
      case .known(let relation):
        if relation == .current {
          known.append((change.id, change.revision))
        } else if !peer.exchangesLeaves {
          known.append((change.id, change.revision))
          older.append(change.id)
        } else {
          goneBack.append(change.id)
        }
        pass(change.sequence)
        answers.append(.unwanted)
      case .invalid:
        pass(change.sequence)
        answers.append(.unwanted)
        replicated([
          ReplicatedDocument(
            id: change.id, revisionID: change.revision, isDeleted: change.isDeleted, isPush: false,
            error: ReplicationError(.http, 400, "the document's ID isn't valid here"))
        ])
      case .missing(let ancestors):
        if let ticket = isFetching ? -1 : pull?.progress.append(change.sequence) {
          let key = PullState.Key(id: change.id, revision: change.revision)
          if let earlier = pull?.awaited.updateValue(ticket, forKey: key) {
            pull?.progress.complete(earlier)
          } else {
            order.ask(change.id, change.revision)
          }
        }
        progress.total += 1
        answers.append(.wanted(possibleAncestors: ancestors))
      }
    }
    if push == nil { try rememberLost(older + goneBack) }
    try mark(known)
    // Now it is known what the peer has, and it isn't what is current here.
    try proposeAgain(older)
    if !goneBack.isEmpty {
      // Of these it offers what is current here, too.
      let there = Set(known.map { ByteString($0.id) })
      try proposeLost(goneBack.filter { !there.contains(ByteString($0)) })
    }
    answer(OfferAnswers(answers, maximumHistory: depth))
  }

  /// Takes note of a sequence that has nothing to do. Documents that are asked for once more come behind the checkpoint.
  private func pass(_ sequence: RemoteSequence) {
    if !isFetching { pull?.progress.pass(sequence) }
  }

  func received(
    _ revisions: [IncomingRevision], _ done: @escaping @Sendable ([Result<Void, ReplicationError>]) -> Void
  ) {
    enqueue { session in
      guard let pull = session.pull else { return }
      // A peer can't store what wasn't asked for.
      let isAwaited = revisions.map { pull.awaited[PullState.Key($0)] != nil }
      let awaited = isAwaited.contains(false) ? zip(revisions, isAwaited).filter(\.1).map(\.0) : revisions
      if !awaited.isEmpty { try session.willMark() }
      session.pull?.stores += 1
      session.inserter.store(awaited) { [weak session] results in
        var all = results[...]
        done(
          isAwaited.map { isAwaited in
            guard isAwaited, let result = all.popFirst() else {
              return .failure(ReplicationError(.http, 400, "this revision wasn't asked for"))
            }
            return result.map { _ in }
          })
        session?.enqueue { session in try session.stored(awaited, results) }
      }
    }
  }

  /// Purges documents that the user can't read there any more.
  private func purge(_ documentIDs: [String]) throws {
    try database.replicatingChanges { store in
      for id in documentIDs { try store.purgeIfStored(id) }
    }
  }

  private func stored(_ revisions: [IncomingRevision], _ results: [RevisionInserter.InsertResult]) throws {
    pull?.stores -= 1
    let wasFull = push?.isFull ?? false
    for (revision, result) in zip(revisions, results) {
      guard let ticket = pull?.awaited.removeValue(forKey: PullState.Key(revision)) else { continue }
      order.end(revision.revision.id)
      progress.completed += 1
      switch result {
      case .success(let inserted):
        pull?.progress.complete(ticket)
        if inserted != .nothing { try pulled(revision.revision.id) }
        crossed(byPullOf: revision.revision)
      case .failure(let error) where Self.isFinal(error): pull?.progress.complete(ticket)
      case .failure(let error):
        pull?.progress.abandon(ticket)
        if error.isTransient { failedTransiently(error) }
      }
    }
    replicated(
      zip(revisions, results).compactMap { revision, result in
        var error: ReplicationError?
        switch result {
        case .success(.nothing): return nil
        case .success: break
        case .failure(let failure): error = failure
        }
        let hadConflict = if case .success(.resolved) = result { true } else { false }
        return ReplicatedDocument(
          id: revision.revision.id, revisionID: revision.revision.revision,
          isDeleted: revision.revision.isDeleted, isPush: false, hadConflict: hadConflict,
          error: error, isUndone: error.map { !Self.isFinal($0) } ?? false)
      })
    try proposeCrossed()
    if wasFull { try scan() }
    try answerHeld()
    step()
  }

  /// What the database refuses for good, and what is too large for it, isn't asked for again. Other failures are, by the next session.
  private static func isFinal(_ error: ReplicationError) -> Bool {
    error.domain == .http && [403, 413].contains(error.code)
  }

  private func answerHeld() throws {
    while !stopsNewWork, let first = pull?.held.first, (pull?.awaited.count ?? 0) < peer.revisionsInFlight {
      pull?.held.removeFirst()
      switch first {
      case .offer(let changes, let answer): try self.answer(changes, answer)
      case .reached(let sequence): pass(sequence)
      }
    }
  }

  func unavailable(_ revisions: [UnavailableRevision]) {
    enqueue { session in
      for revision in revisions {
        let key = PullState.Key(id: revision.id, revision: revision.revision)
        guard let ticket = session.pull?.awaited.removeValue(forKey: key) else { continue }
        session.order.end(revision.id)
        session.pull?.progress.complete(ticket)
        session.progress.completed += 1
      }
      try session.answerHeld()
      session.step()
    }
  }

  func unreadable(_ documentID: String, _ revision: String, _ error: ReplicationError) {
    enqueue { session in
      let isFinal = Self.isFinal(error)
      let key = PullState.Key(id: documentID, revision: revision)
      guard let ticket = session.pull?.awaited.removeValue(forKey: key) else { return }
      // Its sequence stays open, so that the next session asks for it again, unless that is of no use.
      if isFinal { session.pull?.progress.complete(ticket) } else { session.pull?.progress.abandon(ticket) }
      session.order.end(documentID)
      session.progress.completed += 1
      if error.isTransient { session.failedTransiently(error) }
      session.replicated([
        ReplicatedDocument(
          id: documentID, revisionID: revision, isDeleted: false, isPush: false, error: error,
          isUndone: !isFinal)
      ])
      try session.answerHeld()
      session.step()
    }
  }

  func caughtUp(at sequence: RemoteSequence?) {
    enqueue { session in
      // The changes before this one may not have been looked at.
      guard !session.stopsNewWork else { return }
      session.pull?.hasCaughtUp = true
      if let sequence {
        if session.pull?.held.isEmpty ?? true {
          session.pass(sequence)
        } else {
          if case .reached? = session.pull?.held.last { session.pull?.held.removeLast() }
          session.pull?.held.append(.reached(sequence))
        }
      }
      session.step()
    }
  }
}

extension DocumentStore {
  /// Purges a document, if there is one with this ID.
  func purgeIfStored(_ id: String) throws {
    do { try purge(id) } catch let error as DocumentError
      where [.notFound, .invalidDocumentID].contains(error.code)
    {}
  }
}
