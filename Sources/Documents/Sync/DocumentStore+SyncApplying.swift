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
        do { outcomes.append(try writer.joined { try apply(revision, rule, remote, $0) }) } catch
          let error where !(error is StorageError)
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
      let applied = try writer.apply(
        key, body, history: revision.history, deleted: revision.isDeleted, rule)
      if applied == .conflict { return .conflict }
      if let remote { try writer.mutating { try writer.mark(key, revision.revision, remote: remote) } }
      return applied == .added ? .added : .known
    }
  }
}
