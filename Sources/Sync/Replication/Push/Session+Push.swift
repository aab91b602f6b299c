import Bytes
import Documents
import Storage
import Touchstone

extension Session {
  func beginPush() throws {
    if configuration.isContinuous {
      let hasNews = Lock(false)
      push?.observer = try database.observeForReplication { [weak self] in
        let isFirst = hasNews.withLock { hasNews in
          defer { hasNews = true }
          return !hasNews
        }
        guard isFirst else { return }
        self?.enqueue { session in
          hasNews.withLock { $0 = false }
          session.push?.mayHaveMore = true
          try session.scan()
          session.step()
        }
      }
    } else {
      push?.end = try database.replicating { try $0.lastSequence }
    }
    try scan()
  }

  /// Reads and proposes changes, as many as may be in flight.
  func scan() throws {
    guard !stopsNewWork, var push else { return }
    // The copy is the only reference to its arrays.
    self.push = nil
    defer { self.push = push }
    let documentIDs = configuration.documentIDs.map { Set($0.map { ByteString($0) }) }
    while push.lists < PushState.listsInFlight,
      push.proposed + push.queued.count - push.head < peer.revisionsInFlight
    {
      var items = push.again
      push.again = []
      if items.isEmpty {
        guard push.refused.count < PushState.maximumRefused else { break }
        let (scanned, end, remote) = (push.scanned, push.end, remote)
        let (changes, reached) = try database.replicating { store in
          try store.syncChanges(
            after: scanned, upTo: end ?? store.lastSequence, limit: PushState.listCount, remote: remote,
            withLeaves: peer.exchangesLeaves && !configuration.replicatesOnlyWinners)
        }
        let isAhead = reached > scanned
        push.scanned = max(scanned, reached)
        push.mayHaveMore = changes.count == PushState.listCount
        for change in changes.map(PushChange.init) {
          items += try takeOtherLeaves(of: change, &push, documentIDs)
          if let item = try take(change, &push, documentIDs) { items.append(item) }
        }
        if changes.isEmpty, isAhead { push.progress.pass(push.scanned) }
        if items.isEmpty {
          if push.mayHaveMore { continue }
          break
        }
      }
      propose(items, &push)
    }
  }

  /// What is on its way is known by this.
  func key(_ change: PushChange) -> ByteString {
    ByteString(change.isOtherLeaf ? change.id + "\u{0}" + change.revision : change.id)
  }

  /// The other leaves of a document as changes of their own. The checkpoint doesn't pass the document before all are done.
  private func takeOtherLeaves(
    of change: PushChange, _ push: inout PushState, _ documentIDs: Set<ByteString>?
  ) throws -> [PushState.Item] {
    guard !change.otherLeaves.isEmpty, documentIDs?.contains(ByteString(change.id)) ?? true else { return [] }
    var items: [PushState.Item] = []
    for leaf in change.otherLeaves {
      let leafChange = PushChange(leaf, of: change)
      guard push.active[key(leafChange)] == nil, try passes(leafChange) else { continue }
      progress.total += 1
      push.active.updateValue(nil, forKey: key(leafChange))
      items.append(
        PushState.Item(
          change: leafChange, ticket: push.progress.append(change.sequence - 1)))
    }
    return items
  }

  /// Decides whether a change is proposed now.
  private func take(_ change: PushChange, _ push: inout PushState, _ documentIDs: Set<ByteString>?) throws
    -> PushState.Item?
  {
    let id = key(change)
    // What is marked says nothing of other leaves.
    let isThere =
      trustsMark(of: change) && change.otherLeaves.isEmpty
      && change.known.map { $0.hasSameBytes(as: change.revision) } ?? false
    guard !isThere, documentIDs?.contains(ByteString(change.id)) ?? true, try passes(change) else {
      push.progress.pass(change.sequence)
      return nil
    }
    progress.total += 1
    var change = change
    // A peer that has lost the document would take the revision for a conflict with itself.
    if let known = change.known, known.hasSameBytes(as: change.revision) { change.known = nil }
    let item = PushState.Item(change: change, ticket: push.progress.append(change.sequence))
    if let waiting = push.active[id] {
      // The newest change of a document waits for the one on its way.
      if let waiting {
        push.progress.complete(waiting.ticket)
        progress.completed += 1
      }
      push.active[id] = .some(item)
      return nil
    }
    push.active.updateValue(nil, forKey: id)
    return item
  }

  func passes(_ change: PushChange) throws -> Bool {
    guard let filter = configuration.pushFilter else { return true }
    let wanted = SyncWanted(id: change.id, revision: change.revision, ancestors: [], maximumHistory: 0)
    guard case .revision(let revision) = try database.replicating({ try $0.syncRevisions([wanted]) })[0]
    else {
      return true
    }
    return try filter(FilteredRevision(revision))
  }

  private func propose(_ items: [PushState.Item], _ push: inout PushState) {
    push.lists += 1
    push.proposed += items.count
    let changes = items.map { item in
      ProposedChange(
        id: item.change.id, revision: item.change.revision, remoteRevision: item.change.known,
        sequence: item.change.sequence, isDeleted: item.change.isDeleted, bodyBytes: item.change.bodyBytes)
    }
    peer.propose(changes, allowingConflicts: configuration.pushesConflicts) { [weak self] result in
      self?.enqueue { session in
        switch result {
        case .failure(let error): session.end(error)
        case .success(let answer):
          try session.take(answer, for: items)
          try session.send()
          try session.scan()
          session.step()
        }
      }
    }
  }

  private func take(_ answer: ProposalAnswer, for items: [PushState.Item]) throws {
    push?.lists -= 1
    push?.proposed -= items.count
    push?.maximumHistory = max(1, answer.maximumHistory)
    guard answer.statuses.count == items.count else {
      throw ReplicationError(
        .http, 400, "the peer answered \(answer.statuses.count) of \(items.count) proposed changes")
    }
    var known: [(id: String, revision: String)] = []
    var surprising: [(id: String, revision: String)] = []
    for (item, status) in zip(items, answer.statuses) {
      switch status {
      case .send: push?.queued.append(item)
      case .known:
        if item.change.known == nil { surprising.append((item.change.id, item.change.revision)) }
        if !item.change.isOtherLeaf { known.append((item.change.id, item.change.revision)) }
        done(item, nil, isReported: false)
      case .conflict(let current):
        if let current, try proposeAgain(item, on: current) { continue }
        try conflicts(item, .conflict("the document has another revision there"), current: current)
      case .ended(let current):
        if try end(item, for: current) { continue }
        // What names the peer's revision, the peer takes.
        if let known = item.change.known, known.hasSameBytes(as: current) {
          push?.queued.append(item)
          continue
        }
        if try proposeAgain(item, on: current) { continue }
        try conflicts(item, .conflict("the document has another revision there"), current: current)
      case .refused(let error): done(item, error)
      }
    }
    try mayHaveOthers(surprising)
    try mark(known)
  }

  /// Proposes documents whose current revision isn't what the peer has, as the pull has found out.
  func proposeAgain(_ ids: [String]) throws {
    guard push != nil, !ids.isEmpty, !stopsNewWork else { return }
    _ = try queueAgain(ids) { known, current in !known.hasSameBytes(as: current) }
    try scan()
  }

  /// Proposes documents whose current revision was there once, while the peer offers only an ancestor of it or another leaf now: it may have
  /// purged them and made them anew. A peer that has the revision says so.
  func proposeLost(_ ids: [String]) throws {
    guard push != nil, !ids.isEmpty, !stopsNewWork else { return }
    progress.total += try queueAgain(ids) { known, current in known.hasSameBytes(as: current) }
    try scan()
  }

  /// Notes the same documents in a session that doesn't push. The next one that does proposes them: nothing else leads it to them.
  func rememberLost(_ ids: [String]) throws {
    let remote = remote
    for id in ids where !checkpointer.openConflicts.contains(id) {
      guard let change = try database.replicating({ try $0.syncChange(of: id, remote: remote) }),
        let known = change.known, known.hasSameBytes(as: change.revision)
      else { continue }
      checkpointer.openConflicts.insert(id)
    }
  }

  /// Queues those of the documents that are wanted by what is known of the peer's revision and by the current one here. Returns how many
  /// that are. Documents on their way are left to that.
  private func queueAgain(
    _ ids: [String], if isWanted: (_ known: String, _ current: String) -> Bool
  ) throws -> UInt64 {
    let (documentIDs, remote) = (configuration.documentIDs.map { Set($0.map { ByteString($0) }) }, remote)
    var count: UInt64 = 0
    for id in ids where push?.active[ByteString(id)] == nil {
      guard
        let change = try database.replicating({ try $0.syncChange(of: id, remote: remote) }).map(
          PushChange.init),
        let known = change.known, isWanted(known, change.revision),
        documentIDs?.contains(ByteString(id)) ?? true, try passes(change)
      else { continue }
      // Its sequence is done, or the change is found again.
      push?.active.updateValue(nil, forKey: ByteString(id))
      push?.again.append(PushState.Item(change: change, ticket: -1))
      count += 1
    }
    return count
  }

  func mark(_ revisions: [(id: String, revision: String)]) throws {
    guard !revisions.isEmpty else { return }
    let remote = remote
    if !checkpointer.hasMarked {
      guard try !database.replicating({ try $0.unmarked(revisions, remote: remote).isEmpty }) else { return }
      try willMark()
    }
    try database.replicatingChanges { try $0.mark(revisions, remote: remote) }
  }

  /// Ends the way of a change, and begins that of the newer one that waited for it. With `isOpen` its sequence isn't done until
  /// somebody completes it.
  func done(
    _ item: PushState.Item, _ error: ReplicationError?, isReported: Bool = true, isUndone: Bool = false,
    isOpen: Bool = false
  ) {
    let id = key(item.change)
    if error == nil { settle(item.change.id) }
    if let newer = push?.active.removeValue(forKey: id), let newer {
      push?.active.updateValue(nil, forKey: id)
      push?.again.append(newer)
    }
    // What the next session tries again, the checkpoint doesn't pass.
    let isUndone = isUndone || error?.isTransient ?? false
    if isUndone {
      push?.progress.abandon(item.ticket)
    } else if !isOpen {
      push?.progress.complete(item.ticket)
    }
    progress.completed += 1
    if isReported {
      replicated([
        ReplicatedDocument(
          id: item.change.id, revisionID: item.change.revision, isDeleted: item.change.isDeleted,
          isPush: true, error: error, isUndone: isUndone)
      ])
    }
  }
}
