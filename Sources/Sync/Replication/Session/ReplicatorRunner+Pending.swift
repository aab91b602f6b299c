import Documents
import Storage

// The documents whose current revisions aren't pushed yet.
extension ReplicatorRunner {
  func pendingDocumentIDs() throws -> Set<String> {
    guard configuration.direction.pushes else { return [] }
    var pending: Set<String> = []
    let base = try pendingBase()
    try forEachPending(base) { pending.insert($0.id) }
    for id in base.conflicts.ids where try isPending(id, base) { pending.insert(id) }
    return pending
  }

  func isPending(_ id: String) throws -> Bool {
    guard configuration.direction.pushes else { return false }
    return try isPending(id, pendingBase())
  }

  private func isPending(_ id: String, _ base: PendingBase) throws -> Bool {
    try configuration.database.replicating { store in
      guard let change = try store.syncChange(of: id, remote: base.remote),
        change.sequence > base.pushed || base.conflicts.contains(id)
      else { return false }
      return try isPending(change, base, store)
    }
  }

  private func isPending(_ change: SyncChange, _ base: PendingBase, _ store: DocumentStore) throws -> Bool {
    // A session proposes what is marked and doubted, and so does this.
    if change.sequence > base.unproven, let known = change.known, known.hasSameBytes(as: change.revision) {
      return false
    }
    if let ids = configuration.documentIDs, !ids.contains(where: { $0.hasSameBytes(as: change.id) }) {
      return false
    }
    guard let filter = configuration.pushFilter else { return true }
    let wanted = SyncWanted(id: change.id, revision: change.revision, ancestors: [], maximumHistory: 0)
    guard case .revision(let revision) = try store.syncRevisions([wanted])[0] else { return false }
    return try filter(FilteredRevision(revision))
  }

  /// The stored checkpoint; nil if there is none.
  func savedCheckpoint() throws -> Checkpoint? {
    let (checkpointer, _) = try prepare(configuration)
    return try configuration.database.replicating { try checkpointer.readStored($0)?.checkpoint }
  }

  /// What decides whether a change is pending.
  private struct PendingBase {
    /// The sequence up to which all is pushed.
    let pushed: UInt64
    /// The last sequence whose mark isn't trusted.
    let unproven: UInt64
    /// The documents that were refused before that sequence.
    let conflicts: OpenConflicts
    /// The number of the remote database.
    let remote: UInt32
  }

  /// From the present session, or what the next one finds.
  private func pendingBase() throws -> PendingBase {
    let (_, remote) = try prepare(configuration)
    if let reached = reached.withLock({ $0 }) {
      return PendingBase(
        pushed: reached.pushed, unproven: reached.unproven, conflicts: reached.conflicts, remote: remote)
    }
    let saved = try savedCheckpoint()
    // Without a checkpoint, a session doubts all marks.
    return PendingBase(
      pushed: saved?.pushed ?? 0, unproven: saved?.unproven ?? .max,
      conflicts: saved?.conflicts ?? OpenConflicts(), remote: remote)
  }

  private func forEachPending(_ base: PendingBase, _ body: (SyncChange) -> Void) throws {
    var since = base.pushed
    while true {
      let begin = since
      let (changes, reached) = try configuration.database.replicating { store in
        let (changes, reached) = try store.syncChanges(
          after: begin, upTo: store.lastSequence, limit: 1_000, remote: base.remote)
        return (try changes.filter { try isPending($0, base, store) }, changes.count < 1_000 ? nil : reached)
      }
      for change in changes { body(change) }
      guard let reached else { return }
      since = reached
    }
  }
}
