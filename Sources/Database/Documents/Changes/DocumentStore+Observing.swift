import Storage

extension DocumentStore {
  /// Observes later commits, of all documents or of one, until `cancel()`. `owner` groups observers that are
  /// ended together (`endObservers`).
  ///
  /// With a `handler`, the handler is called on a background thread, one call at a time. Without one,
  /// `next()` waits for changes. With `includesUnsequenced`, commits of this process with changes that have
  /// no new sequence are reported as a change without documents: an import below the last sequence, or an
  /// expiration time.
  package func observe(
    _ documentID: String? = nil, owner: ObjectIdentifier? = nil, includesUnsequenced: Bool = false,
    handler: (@Sendable (DatabaseChange) -> Void)? = nil
  ) throws -> ChangeObserver {
    let observer = ChangeObserver(
      self, documentID: documentID, owner: owner, includesUnsequenced: includesUnsequenced, handler: handler)
    try notifier.add(observer) { try committedPosition() }
    return observer
  }

  /// Ends the observers of `owner`, or all if it is nil. They receive their pending changes first.
  package func endObservers(of owner: ObjectIdentifier? = nil) { notifier.end(of: owner) }

  /// Notifies observers of commits and recorded purges of other processes. A write in this process does the same
  /// for commits. Returns false if some may still be missing, because this process was committing.
  @discardableResult
  package func noticeChanges() throws -> Bool {
    guard notifier.isActive else { return true }
    let position = notifier.position
    let (sequence, purges) = try withSnapshot { transaction, context in
      (
        try Self.lastSequence(transaction, context.keyspaces),
        try PurgeRecord(after: position.purge, by: purgeWriter, transaction, context.keyspaces)
      )
    }
    return notifier.notice(sequence, purges, after: position.purge)
  }

  /// Whether there are observers.
  package var isObserved: Bool { notifier.hasObservers }

  /// Calls `body` whenever an observer is added or removed. `body` asks `isObserved`.
  package func onObservers(_ body: (@Sendable () -> Void)?) { notifier.onActivity.withLock { $0 = body } }

  /// Runs `body`, which closes the engine, while no background work is running. If it succeeds, all observers
  /// end.
  package func closing(_ body: () throws -> Void) throws {
    try background.alone(body)
    endObservers()
  }

  /// Runs `body` while no background work is running. A snapshot there would keep an engine from reclaiming
  /// space.
  package func withoutBackground<Result>(_ body: () throws -> Result) rethrows -> Result {
    try background.alone(body)
  }

  /// Runs `body`, which reads or writes in the background. Closing the engine waits for it. Calls must not be
  /// nested.
  package func inBackground<Result>(_ body: () throws -> Result) rethrows -> Result {
    try background.pass(body)
  }

  /// Returns the sequence of the last commit, even inside a batch, and the number of the last recorded purge.
  private func committedPosition() throws -> (sequence: UInt64, purge: UInt64) {
    try withSnapshot { (try Self.lastSequence($0, $1.keyspaces), try PurgeRecord.newest($0)) }
  }

  /// Returns the stored changes after `begin` and up to `end`, at most `limit`, in the form for observers,
  /// and the last sequence that they cover. With a document ID, only the change of that document.
  func observedChanges(after begin: UInt64, upTo end: UInt64, limit: Int, of documentID: String?) throws -> (
    changes: [DocumentChange], reached: UInt64
  ) {
    try withSnapshot { transaction, context in
      var found: [DocumentChange] = []
      guard documentID == nil else {
        let change = try documentID.flatMap { try observed($0, nil, transaction, context) }
        if let change, change.sequence > begin, change.sequence <= end { found.append(change) }
        return (found, end)
      }
      var reached = end
      var changes: [(id: String, flags: UInt8, sequence: UInt64)] = []
      let range = KeyRange(lower: .exclusive(sequenceBytes(begin)), upper: .inclusive(sequenceBytes(end)))
      if begin < end {
        try transaction.scan(context.keyspaces.changes, range) { key, value in
          let change = try StoredChange(value)
          guard let sequence = StoredChange.sequence(of: key) else {
            throw DocumentError(.damaged, "an entry of the list of changes can't be read")
          }
          changes.append((String(copying: change.id), change.flags.rawValue, sequence))
          guard changes.count < limit else {
            reached = sequence
            return false
          }
          return true
        }
      }
      for change in changes {
        if let observed = try observed(change.id, change.flags, transaction, context) {
          found.append(observed)
        }
      }
      return (found, reached)
    }
  }

  private func sequenceBytes(_ sequence: UInt64) -> [UInt8] {
    let sequence = min(sequence, maximumSequence)
    return (0..<8).map { UInt8(truncatingIfNeeded: sequence >> UInt64(56 - 8 * $0)) }
  }

  /// Returns the last change of a document. Reads its flags if they aren't given.
  private func observed(
    _ id: String, _ flags: UInt8?, _ transaction: any ReadTransaction, _ context: Context
  ) throws -> DocumentChange? {
    let document = try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      func document(in keyspace: Keyspace) throws -> Document? {
        try transaction.withValue(at: key.bytes, in: keyspace) {
          try Document(id: id, record: $0, sharedKeys: context.sharedKeys, blobs: blobSource)
        }
      }
      return try document(in: context.keyspaces.docs) ?? document(in: context.keyspaces.deleted)
    }
    guard let document else { return nil }
    let flagsOfChange =
      try flags
      ?? withSequenceKey(document.sequence) { key in
        try transaction.withValue(at: key.bytes, in: context.keyspaces.changes) {
          try StoredChange($0).flags.rawValue
        }
      } ?? 0
    return DocumentChange(
      kind: .saved, documentID: id, revisionID: document.revisionID, sequence: document.sequence,
      isDeleted: document.isDeleted, isConflicted: document.isConflicted,
      isFromSync: DocumentRecord.Flags(rawValue: flagsOfChange).contains(.fromSync))
  }
}
