// Documents that this side asks for once more, whatever the checkpoint says.
//
// A document is purged here, or expires, and is made again under its ID. The other side refuses it: it has another revision,
// which the pull doesn't bring, because its checkpoint has passed that one. So a session that pulls and has such conflicts at its
// end names them to the replicator, which makes one more connection. Its session asks for just these documents, from the
// beginning, and pushes what becomes of them. What is refused once more is told. Each connection has one pull, so this holds
// for all peers.
//
// Over HTTP no revision is refused. There it is a sign that the other side has a revision already, and this side didn't know that: a
// document that was purged here and made anew with the same content, or that came back from elsewhere.

import Bytes
import Documents
import Storage
import Touchstone

extension Session {
  /// Whether the conflict of a document is worth another look at the other side.
  func isFetchable(_ id: String) -> Bool {
    pull != nil && !checkpointer.told.contains(id)
      && !(fetching?.contains { $0.hasSameBytes(as: id) } ?? false)
  }

  /// A continuous session waits a moment: its pull may be about to bring the other branch.
  func scheduleFetch() {
    guard configuration.isContinuous, refusalToken == nil else { return }
    refusalToken = configuration.timer.schedule(after: configuration.refusalDelay) { [weak self] in
      self?.enqueue { session in
        session.refusalToken = nil
        try session.fetchRefused()
      }
    }
  }

  /// Ends a continuous session in which conflicts are left, so that the next one asks for these documents.
  private func fetchRefused() throws {
    guard !stopsNewWork, let all = push?.refused, !all.isEmpty else { return }
    push?.refused = [:]
    for refused in all.values {
      guard try isOpen(refused) else {
        settle(refused)
        continue
      }
      abandonUnlessRemembered(refused)
      unfetched.append(refused.item.change.id)
    }
    if !unfetched.isEmpty { windDown() }
    step()
  }

  /// Proposes what was refused in earlier runs, once, when nothing else is left to do.
  func proposeConflicts() throws {
    guard push != nil, !checkpointer.openConflicts.isEmpty, !stopsNewWork else { return }
    let remote = remote
    for id in checkpointer.openConflicts.ids {
      let key = ByteString(id)
      guard push?.active[key] == nil, push?.refused[key] == nil, !checkpointer.told.contains(id) else {
        continue
      }
      guard let found = try database.replicating({ try $0.syncChange(of: id, remote: remote) }) else {
        checkpointer.openConflicts.remove(id)
        continue
      }
      let change = PushChange(found)
      if let known = change.known, known.hasSameBytes(as: change.revision) {
        // It is there, and perhaps with other leaves.
        if peer.exchangesLeaves, fetching == nil {
          if isFetchable(id), !unfetched.contains(id) { unfetched.append(id) }
        } else {
          checkpointer.openConflicts.remove(id)
        }
        continue
      }
      guard try passes(change) else { continue }
      progress.total += 1
      push?.active.updateValue(nil, forKey: key)
      push?.again.append(PushState.Item(change: change, ticket: -1))
    }
    if configuration.isContinuous, !unfetched.isEmpty { windDown() }
    try scan()
  }

  /// Takes note of revisions that the peer has although nothing has said so before. Where all leaves go both ways it may have others of
  /// the same documents, which the pull has passed before these documents were purged here.
  func mayHaveOthers(_ known: [(id: String, revision: String)]) throws {
    guard peer.exchangesLeaves, hadPulled, fetching == nil, !known.isEmpty else { return }
    let remote = remote
    for (id, _) in try database.replicating({ try $0.unmarked(known, remote: remote) }) {
      checkpointer.openConflicts.insert(id)
      hasProposedConflicts = false
    }
  }
}
