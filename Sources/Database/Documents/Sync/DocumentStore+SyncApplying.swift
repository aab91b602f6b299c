import Bytes
import Storage

extension DocumentStore {
  /// Adds revisions that sync delivers, in one transaction, and returns what became of each. With `remote`, each
  /// revision that was added or known is marked as that remote's current one.
  ///
  /// A revision that is refused changes nothing, and the others are added. Throws what fails the transaction; then
  /// nothing has changed.
  package func apply(
    _ revisions: [SyncRevision], _ rule: SyncConflictRule, remote: UInt32? = nil
  ) throws -> [SyncOutcome] {
    try writing { writer in
      var outcomes: [SyncOutcome] = []
      outcomes.reserveCapacity(revisions.count)
      for revision in revisions {
        do { outcomes.append(try writer.joined { try apply(revision, rule, remote, $0) }) } catch let error
          where !(error is StorageError)
        {
          // What fails the transaction fails it at its end too.
          outcomes.append(.refused(error))
        }
      }
      return outcomes
    }
  }

  private func apply(
    _ revision: SyncRevision, _ rule: SyncConflictRule, _ remote: UInt32?, _ writer: DocumentWriter
  ) throws -> SyncOutcome {
    try DocumentID.withValidated(revision.id, maximum: DocumentID.maximumStoredBytes) { key in
      let body = try writer.encode(revision.body, of: key)
      // The tombstone or the revision that it takes the place of.
      let replaced = try revision.replaces.flatMap { replaces in
        try writer.currentRevision(of: key).flatMap { $0.description.hasSameBytes(as: replaces) ? $0 : nil }
      }
      var applied = try writer.apply(
        key, body, history: revision.history, deleted: revision.isDeleted, replaced == nil ? rule : .report)
      if let replaced {
        if applied == .conflict {
          let body = try writer.encode(revision.body, of: key)
          applied = try writer.apply(
            key, body, history: revision.history, deleted: revision.isDeleted, .allow)
          // Tombstones need that only to change their order.
          if try writer.currentRevision(of: key) == replaced || !revision.isDeleted
            || !writer.tree.nodes[0].isDeleted
          {
            try writer.mutating { try writer.closeIfLeaf(key, replaced) }
          }
        } else if applied == .known, try writer.currentRevision(of: key) == replaced,
          !replaced.description.hasSameBytes(as: revision.revision)
        {
          // It lost against that one here. A deletion that is to take its place ends that one's branch, and so does a live leaf: the
          // sender has deleted that branch.
          guard
            try revision.isDeleted
              || !writer.tree.nodes[0].isDeleted
                && RevisionID(revision.revision).map({ try writer.isLeaf(key, $0, isLive: true) }) ?? false
          else { return .conflict }
          try writer.mutating { try writer.closeIfLeaf(key, replaced) }
        }
      }
      if applied == .conflict { return .conflict }
      // One that comes behind its own descendant, because its blobs took longer, isn't current there any more.
      if let remote, try applied == .added || !writer.isOlderThanMark(key, revision.revision, remote: remote)
      {
        try writer.mutating { try writer.mark(key, revision.revision, remote: remote) }
      }
      return applied == .added ? .added : .known
    }
  }
}
