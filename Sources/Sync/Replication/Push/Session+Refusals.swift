// What becomes of pushed changes that the peer refuses as conflicts, or forbids.
//
// A refused change may be a conflict that the pull brings, and then the resolution is pushed. It may also be that the peer has
// lost what this side takes for its revision: it was erased, or restored from an older copy. So a change is proposed again
// with what is known by then of the peer's revision, at most three times, and once without naming one. What stays refused is
// asked for by a session of its own (`Session+Fetching.swift`). If that doesn't end the conflict, it is reported, and the
// checkpoint names it, so that each run proposes it and reports it again.

import Bytes
import Documents
import Storage
import Touchstone

extension Session {
  /// The peer has a revision that is known here, but it wasn't known that the peer has it: this side ended before it took note
  /// of the answer. Takes note now, and proposes the change once more. Returns false if there is no use in that.
  func proposeAgain(_ item: PushState.Item, on current: String) throws -> Bool {
    // It has no such document.
    if current.isEmpty { return proposeAlone(item) }
    let (id, remote) = (item.change.id, remote)
    guard item.attempts < PushState.attempts, !current.hasSameBytes(as: item.change.known ?? ""),
      case .known(let relation) = try database.replicating({
        try $0.syncKnowledge(of: [(id, current)], remote: remote)
      })[0],
      relation != .current
    else { return false }
    try mark([(id, current)])
    guard let now = try database.replicating({ try $0.syncChange(of: id, remote: remote) }) else {
      return false
    }
    propose(item, again: PushChange(now))
    return true
  }

  /// The peer knew the revision and has deleted its branch, so that `current` is current there. If `current` is a leaf here, the
  /// branch ends here too. Returns false, and changes nothing, otherwise; also in a session that doesn't pull, because a push changes
  /// nothing here.
  func end(_ item: PushState.Item, for current: String) throws -> Bool {
    let (id, revision) = (item.change.id, item.change.revision)
    guard pull != nil, !item.change.isOtherLeaf,
      try database.replicatingChanges({ try $0.endBranch(of: id, at: revision, for: current) })
    else { return false }
    done(item, nil, isReported: false)
    try mark([(id, current)])
    // Another leaf may have won.
    try proposeAgain([id])
    return true
  }

  /// Proposes a change without naming a revision of the peer, unless that was done.
  private func proposeAlone(_ item: PushState.Item) -> Bool {
    guard item.change.known != nil, !item.hasTriedAlone else { return false }
    var (refused, change) = (item, item.change)
    refused.refusedParent = change.known
    change.known = nil
    propose(refused, again: change)
    return true
  }

  private func propose(_ item: PushState.Item, again change: PushChange) {
    var next = item
    next.hasTriedAlone = item.hasTriedAlone || item.change.known == nil
    next.change = change
    next.attempts += 1
    push?.again.append(next)
  }

  /// The peer has another revision, `current` if it says which. The pull brings the other branch; then the conflict is
  /// resolved, and the result is pushed. If it is known meanwhile what the peer has, the change is proposed once more.
  func conflicts(
    _ item: PushState.Item, _ error: ReplicationError, current: String? = nil, isSent: Bool = false
  ) throws {
    guard !item.change.isOtherLeaf else { return done(item, error) }
    let (id, remote) = (item.change.id, remote)
    let mayTryAgain = item.attempts < PushState.attempts
    if mayTryAgain, pull != nil, isSent, let known = item.change.known {
      // The peer has the same on its own branch. With another revision for each peer that has one, two of them would go on for ever.
      if !peer.agreesOnRevisions, try database.replicating({ try $0.hasContentOfCurrent(known, of: id) }) {
        return done(item, nil, isReported: false)
      }
      // The peer's revision lost here, but the peer takes only what descends from it.
      do { _ = try database.replicatingChanges { try $0.continueBranch(of: id, from: known) } } catch let
        failure as DocumentError
      { return done(item, ReplicationError(failure)) }
    }
    let now = try database.replicating { try $0.syncChange(of: id, remote: remote) }
    if mayTryAgain, let now, let known = now.known,
      !known.hasSameBytes(as: item.change.known ?? item.refusedParent ?? "")
        || !now.revision.hasSameBytes(as: item.change.revision)
    {
      return propose(item, again: PushChange(now))
    }
    let mayBeGone = current == nil && !isSent
    if mayBeGone, pull == nil || !trustsMarks, proposeAlone(item) { return }
    let key = key(item.change)
    // A newer change of the document takes its place.
    if let waiting = push?.active[key], waiting != nil { return done(item, error, isReported: false) }
    settle(id)
    let refused = PushState.Refused(
      item: item, error: error, mayBeGone: mayBeGone,
      isMarked: now?.known?.hasSameBytes(as: item.change.revision) ?? false,
      isRemembered: checkpointer.openConflicts.insert(id))
    done(item, error, isReported: false, isOpen: !refused.isRemembered)
    guard pull != nil, !configuration.isContinuous || isFetchable(id) else {
      abandonUnlessRemembered(refused)
      return tell(refused)
    }
    push?.refused[key] = refused
    scheduleFetch()
  }

  /// A revision was pulled. It settles a conflict of its document, unless that was purged and made anew since.
  func pulled(_ id: String) throws {
    if let refused = push?.refused[ByteString(id)] {
      if try !isOpen(refused) { settle(id) }
    } else if checkpointer.openConflicts.contains(id) {
      let remote = remote
      let now = try database.replicating { try $0.syncChange(of: id, remote: remote) }
      // What differs from the other side's has a sequence of its own.
      if now.map({ $0.known?.hasSameBytes(as: $0.revision) ?? false }) ?? true { settle(id) }
    }
  }

  /// Another change of the document was replicated, or is on its way.
  func settle(_ id: String) {
    checkpointer.openConflicts.remove(id)
    guard let isEmpty = push?.refused.isEmpty, !isEmpty,
      let refused = push?.refused.removeValue(forKey: ByteString(id))
    else { return }
    push?.progress.complete(refused.item.ticket)
  }

  /// Nothing is left of a conflict.
  func settle(_ refused: PushState.Refused) {
    checkpointer.openConflicts.remove(refused.item.change.id)
    push?.progress.complete(refused.item.ticket)
  }

  /// The checkpoint passes a conflict only if it names it.
  func abandonUnlessRemembered(_ refused: PushState.Refused) {
    if !refused.isRemembered { push?.progress.abandon(refused.item.ticket) }
  }

  /// Whether nothing has followed a refused change. What has changed since has a sequence of its own. What was marked since was
  /// replicated.
  func isOpen(_ refused: PushState.Refused) throws -> Bool {
    let (id, remote) = (refused.item.change.id, remote)
    guard let now = try database.replicating({ try $0.syncChange(of: id, remote: remote) }) else {
      return false
    }
    return now.revision.hasSameBytes(as: refused.item.change.revision)
      && (refused.isMarked || !(now.known?.hasSameBytes(as: now.revision) ?? false))
  }

  /// Nothing else follows in a one-shot session: proposes what is refused without naming a revision of the peer, leaves it to the
  /// session that asks for these documents, or reports it.
  func settleRefused() throws {
    let all =
      (push?.refused.values).map { $0.sorted { $0.item.change.sequence < $1.item.change.sequence } } ?? []
    push?.refused = [:]
    for refused in all {
      let item = refused.item
      guard try isOpen(refused) else {
        settle(refused)
        continue
      }
      if refused.mayBeGone, proposeAlone(item) {
        push?.active.updateValue(nil, forKey: key(item.change))
        progress.completed -= 1
        continue
      }
      abandonUnlessRemembered(refused)
      if isFetchable(item.change.id) { unfetched.append(item.change.id) } else { tell(refused) }
    }
    // The next session asks for these before it goes on.
    if unfetched.count >= PushState.maximumRefused { windDown() }
    try scan()
  }

  /// A continuous session ends before it has asked for the documents that were refused last. A one-shot one has settled them.
  func reportRefused() {
    guard configuration.isContinuous, let refused = push?.refused.values else { return }
    for refused in refused.sorted(by: { $0.item.change.sequence < $1.item.change.sequence }) {
      report(refused)
    }
  }

  /// Reports a conflict that another look at the other side doesn't end.
  private func tell(_ refused: PushState.Refused) {
    checkpointer.told.insert(refused.item.change.id)
    report(refused)
  }

  private func report(_ refused: PushState.Refused) {
    let change = refused.item.change
    replicated([
      ReplicatedDocument(
        id: change.id, revisionID: change.revision, isDeleted: change.isDeleted, isPush: true,
        error: refused.error)
    ])
  }

  // MARK: HTTP 403

  /// Keeps a change that the peer forbids for the first time. What gives this user access may be on its way.
  func keepsForbidden(_ item: PushState.Item, _ error: ReplicationError) -> Bool {
    guard error.domain == .http, error.code == 403, !item.wasForbidden, !stopsNewWork else { return false }
    // A newer change of the document takes its place.
    if let waiting = push?.active[key(item.change)], waiting != nil { return false }
    var item = item
    item.wasForbidden = true
    push?.forbidden.append(item)
    return true
  }

  /// Proposes what was forbidden once more, when nothing else is left to push.
  func sendForbiddenAgain() throws {
    guard let push, !push.forbidden.isEmpty, !stopsNewWork, !push.mayHaveMore, push.lists == 0,
      push.again.isEmpty, push.active.count == push.forbidden.count
    else { return }
    self.push?.again = push.forbidden
    self.push?.forbidden = []
    try scan()
  }
}
