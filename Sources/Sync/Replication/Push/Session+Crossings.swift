// Documents that cross: one was changed on both sides, and the push of the change here meets the pull of the change there.
//
// The pull decides with what was current there before the peer took the pushed revision, and marks that. Afterwards the pushed one
// may be current there, and it isn't offered back. So a document that has crossed is proposed once more, on top of what the peer
// took last. A peer that has it already says so.

import Bytes
import Documents

/// Which documents have crossed in a session that pushes and pulls.
struct Crossings {
  /// Documents that were pulled while a revision of theirs was on its way.
  private var pulled: Set<ByteString> = []
  /// The revisions that the peer took last, and those before them.
  private var taken: [ByteString: String] = [:]
  private var takenBefore: [ByteString: String] = [:]
  /// Documents to propose, with what the peer has taken.
  private var crossed: [(id: String, revision: String)] = []
  /// What was offered before a revision was taken arrives soon after.
  private static let takenCount = 10_000

  /// A document was pulled, with its history. `isOnItsWay`: a revision of it is being pushed.
  mutating func pull(_ id: String, _ history: [String], isOnItsWay: Bool) {
    let key = ByteString(id)
    let last = taken[key] ?? takenBefore[key]
    let goesOn = last.map { last in history.contains { $0.hasSameBytes(as: last) } } ?? false
    if goesOn {
      // The next history may end with this revision.
      taken[key] = nil
      takenBefore[key] = nil
    }
    if isOnItsWay {
      pulled.insert(key)
    } else if let last, !goesOn {
      crossed.append((id, last))
    }
  }

  /// The peer has taken a revision.
  mutating func take(_ id: String, _ revision: String) {
    let key = ByteString(id)
    if pulled.remove(key) != nil { crossed.append((id, revision)) }
    if taken.count >= Self.takenCount {
      takenBefore = taken
      taken = [:]
    }
    taken[key] = revision
  }

  /// A revision isn't on its way any more, and the peer hasn't taken it.
  mutating func end(_ id: String) { pulled.remove(ByteString(id)) }

  /// Returns the documents to propose, once.
  mutating func takeCrossed() -> [(id: String, revision: String)] {
    guard !crossed.isEmpty else { return [] }
    defer { crossed = [] }
    return crossed
  }
}

extension Session {
  /// Takes note of a stored revision of the peer.
  func crossed(byPullOf revision: SyncRevision) {
    guard !peer.exchangesLeaves, let active = push?.active else { return }
    push?.crossings.pull(
      revision.id, revision.history, isOnItsWay: active[ByteString(revision.id)] != nil)
  }

  /// Takes note of the answer to a pushed revision.
  func crossed(byPushOf item: PushState.Item, isTaken: Bool) {
    guard !peer.exchangesLeaves, pull != nil else { return }
    if isTaken {
      push?.crossings.take(item.change.id, item.change.revision)
    } else {
      push?.crossings.end(item.change.id)
    }
  }

  /// Proposes what has crossed.
  func proposeCrossed() throws {
    guard let crossed = push?.crossings.takeCrossed(), !crossed.isEmpty else { return }
    let remote = remote
    try willMark()
    try database.replicatingChanges { try $0.mark(crossed, remote: remote, movesBack: false) }
    try proposeAgain(crossed.map(\.id))
  }
}
