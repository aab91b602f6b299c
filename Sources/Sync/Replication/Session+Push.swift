import Bytes
import Documents
import Storage
import Touchstone

/// The push of a session: changes are read in order, proposed in lists, and sent in parts.
struct PushState {
  /// A change on its way.
  struct Item: Sendable {
    var change: PushChange
    let ticket: Int
    /// How often the peer refused it as a conflict.
    var attempts = 0
    /// Whether it was proposed without naming a revision of the peer.
    var hasTriedAlone = false
    /// The revision that it had named before.
    var refusedParent: String?
    /// Whether the peer has refused it with HTTP 403.
    var wasForbidden = false
  }

  /// The most changes of a list.
  static let listCount = 200
  /// The most lists without an answer.
  static let listsInFlight = 5
  /// The most bytes that are sent and not answered, and those of a part.
  static let bytesInFlight = 4 << 20
  static let bytesTogether = 1 << 20

  var progress: SequenceQueue<UInt64>
  /// The last sequence that was read.
  var scanned: UInt64
  /// The last sequence that a one-shot push reads. Nil: no limit.
  var end: UInt64?
  var lists = 0
  var proposed = 0
  var queued: [Item] = []
  var head = 0
  var sent = 0
  var sentBytes = 0
  var maximumHistory = 20
  /// The documents on their way, each with the newer change that waits for it. Where all leaves go, each has its own way.
  var active: [ByteString: Item?] = [:]
  /// Changes to propose before others: of documents whose earlier change has just been done, and of those of which the
  /// pull has found out what the peer has.
  var again: [Item] = []
  /// How often a change is proposed that the peer refuses as a conflict.
  static let attempts = 3
  /// The latest refused change of each document that the pull may settle (`Session+Refusals.swift`).
  var refused: [ByteString: Refused] = [:]
  /// Changes that were refused with HTTP 403 for the first time. They are `active`.
  var forbidden: [Item] = []

  /// A change that the peer refuses as a conflict.
  struct Refused {
    let item: Item
    let error: ReplicationError
    /// Whether the peer may have no such document, as far as it has said.
    let mayBeGone: Bool
    /// Whether it was marked as the peer's revision although the peer says otherwise: one of the two was restored from an older copy.
    let isMarked: Bool
    /// Whether the checkpoint names it, and so passes its sequence.
    let isRemembered: Bool
  }
  /// The most refused changes that are kept. No other changes are read meanwhile.
  static let maximumRefused = 1_000

  /// Documents that were pulled meanwhile (`Session+Crossings.swift`).
  var crossings = Crossings()
  /// Whether there may be changes after `scanned`.
  var mayHaveMore = true
  /// Whether revisions were sent.
  var hasSent = false
  /// Whether the end of the pull was noticed.
  var hasSeenPull = false
  var observer: ChangeObserver?

  init(after sequence: UInt64) {
    progress = SequenceQueue(reached: sequence)
    scanned = sequence
  }

  var isIdle: Bool { !mayHaveMore && active.isEmpty && lists == 0 && again.isEmpty }
  /// Whether it reads no more changes before some of the refused ones are settled, and nothing else is on its way.
  var isFull: Bool {
    refused.count >= Self.maximumRefused && active.count == forbidden.count && lists == 0 && again.isEmpty
  }
}

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
      case .refused(let error): done(item, error)
      }
    }
    try mayHaveOthers(surprising)
    try mark(known)
  }

  /// Proposes documents whose current revision isn't what the peer has, as the pull has found out.
  func proposeAgain(_ ids: [String]) throws {
    guard push != nil, !ids.isEmpty, !stopsNewWork else { return }
    let (documentIDs, remote) = (configuration.documentIDs.map { Set($0.map { ByteString($0) }) }, remote)
    for id in ids where push?.active[ByteString(id)] == nil {
      guard
        let change = try database.replicating({ try $0.syncChange(of: id, remote: remote) }).map(
          PushChange.init),
        let known = change.known, !known.hasSameBytes(as: change.revision),
        documentIDs?.contains(ByteString(id)) ?? true, try passes(change)
      else { continue }
      // Its sequence is done, or the change is found again.
      push?.active.updateValue(nil, forKey: ByteString(id))
      push?.again.append(PushState.Item(change: change, ticket: -1))
    }
    try scan()
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
      push?.hasSent = true
      push?.sent += revisions.count
      push?.sentBytes += bytes.reduce(0, +)
      let items = sent
      peer.send(revisions) { [weak self] answers in
        guard let self else { return }
        let answered = answers.compactMap { answer in
          items.indices.contains(answer.index)
            ? Answered(
              item: items[answer.index], bytes: bytes[answer.index], error: answer.error,
              isUndone: answer.isUndone)
            : nil
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
