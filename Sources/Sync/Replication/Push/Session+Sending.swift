import Bytes
import Documents
import Storage
import Touchstone

// What the peer wants of the proposed changes is sent, and its answers are taken.

extension Session {
  /// Sends accepted revisions, as many as may be in flight.
  func send() throws {
    while let state = push, !stopsNewWork, state.head < state.queued.count,
      state.sent < peer.revisionsInFlight,
      state.sentBytes < PushState.bytesInFlight
    {
      var end = state.head
      var size = 0
      while end < state.queued.count, end - state.head < PushState.listCount, size < PushState.bytesTogether {
        size += state.queued[end].change.bodyBytes
        end += 1
      }
      let part = Array(state.queued[state.head..<end])
      push?.head = end
      if end == state.queued.count {
        push?.queued.removeAll(keepingCapacity: true)
        push?.head = 0
      }
      let wanted = part.map { item in
        // Where all leaves go, the branch of a pruned revision is ended (`closes`). Whole histories go too: the other side may have lost
        // what it had when it was asked.
        SyncWanted(
          id: item.change.id, revision: item.change.revision, ancestors: item.change.known.map { [$0] } ?? [],
          maximumHistory: state.maximumHistory, known: peer.exchangesLeaves ? nil : item.change.known,
          isWhole: peer.exchangesLeaves)
      }
      let readings = try database.replicating { try $0.syncRevisions(wanted) }
      var sent: [PushState.Item] = []
      var revisions: [OutgoingRevision] = []
      var unavailable: [UnavailableRevision] = []
      for (item, reading) in zip(part, readings) {
        switch reading {
        case .revision(var revision):
          revision.replaces = item.change.known
          sent.append(item)
          var outgoing = OutgoingRevision(
            revision, sequence: item.change.sequence, allowsNoConflict: !configuration.pushesConflicts)
          if peer.exchangesLeaves { outgoing.closes = try prunedAncestor(item.change.known, revision) }
          revisions.append(outgoing)
        case .obsolete, .missing:
          // A newer change follows, or the document was purged.
          let code = if case .missing = reading { 404 } else { 410 }
          unavailable.append(
            UnavailableRevision(
              id: item.change.id, revision: item.change.revision,
              sequence: RemoteSequence(json: "\(item.change.sequence)"), code: code))
          done(item, nil, isReported: false)
        }
      }
      if !unavailable.isEmpty { peer.unavailable(unavailable) }
      guard !revisions.isEmpty else { continue }
      let bytes = revisions.map(\.revision.body.byteCount)
      let mayNameBlobs = revisions.map(\.revision.body.mightNameBlob)
      push?.hasSent = true
      push?.sent += revisions.count
      push?.sentBytes += bytes.reduce(0, +)
      let items = sent
      peer.send(revisions) { [weak self] answers in
        guard let self else { return }
        let answered = answers.compactMap { answer -> Answered? in
          guard items.indices.contains(answer.index) else { return nil }
          let lacksBlob = mayNameBlobs[answer.index] && answer.error?.isAbsence == true
          return Answered(
            item: items[answer.index], bytes: bytes[answer.index], error: answer.error,
            isUndone: answer.isUndone || lacksBlob)
        }
        let isFirst = waitingAnswers.withLock { waiting in
          defer { waiting += answered }
          return waiting.isEmpty
        }
        if isFirst { enqueue { try $0.takeAnswers() } }
      }
    }
  }

  /// The revision that the peer has, if the history that is sent doesn't lead to it: it has been pruned, or too much has
  /// between them.
  private func prunedAncestor(_ known: String?, _ revision: SyncRevision) throws -> String? {
    guard let known else { return nil }
    if let place = revision.history.firstIndex(where: { $0.hasSameBytes(as: known) }) {
      let history = revision.history[...place].compactMap { RevisionID($0) }
      return RevisionHistory.dense(history).last?.description.hasSameBytes(as: known) == true ? nil : known
    }
    guard case .missing = try database.replicating({ try $0.syncKnowledge(of: [(revision.id, known)]) })[0]
    else { return nil }
    return known
  }

  /// The answer to a revision that was sent.
  struct Answered: Sendable {
    let item: PushState.Item
    let bytes: Int
    let error: ReplicationError?
    let isUndone: Bool
  }

  /// Takes the answers that have come since the last call. Their marks are one transaction.
  private func takeAnswers() throws {
    let answers = waitingAnswers.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
    push?.sent -= answers.count
    push?.sentBytes -= answers.reduce(0) { $0 + $1.bytes }
    // The next revisions go out while the marks are written.
    try send()
    // The marks come before newer changes of the same documents, which are based on them.
    try mark(
      answers.filter { $0.error == nil && !$0.item.change.isOtherLeaf }.map {
        ($0.item.change.id, $0.item.change.revision)
      })
    for answer in answers {
      if let error = answer.error, error.domain == .http, error.code == 409, !answer.isUndone {
        try conflicts(answer.item, error, isSent: true)
      } else {
        doneSending(answer.item, answer.error, isUndone: answer.isUndone)
      }
      crossed(byPushOf: answer.item, isTaken: answer.error == nil)
    }
    try proposeCrossed()
    try scan()
    try send()
    step()
  }

  private func doneSending(_ item: PushState.Item, _ error: ReplicationError?, isUndone: Bool) {
    let id = key(item.change)
    if !isUndone, let error, keepsForbidden(item, error) { return }
    if error == nil, case .some(.some(let newer)) = push?.active[id] {
      // It is now known what the remote has.
      var change = newer.change
      change.known = item.change.revision
      push?.active[id] = .some(PushState.Item(change: change, ticket: newer.ticket))
    }
    done(item, error, isUndone: isUndone)
    if let error, error.isTransient { failedTransiently(error) }
  }
}
