import Storage

extension DocumentStore {
  /// Begins to observe what is committed from now on: all documents, or one. `owner` is who may end it with others
  /// (`endObservers`).
  ///
  /// With a `handler`, that is called on a thread of its own, one call at a time; without, `next()` waits for
  /// changes. It lasts until `cancel()`. With `includesUnsequenced` a change without documents tells of commits of this
  /// process that changed what has no sequence: a body under an old one, or when a document expires.
  public func observe(
    _ documentID: String? = nil, owner: ObjectIdentifier? = nil, includesUnsequenced: Bool = false,
    handler: (@Sendable (DatabaseChange) -> Void)? = nil
  ) throws -> ChangeObserver {
    let observer = ChangeObserver(
      self, documentID: documentID, owner: owner, includesUnsequenced: includesUnsequenced, handler: handler)
    try feed.add(observer) { try committedSequence() }
    return observer
  }

  /// Ends the observers of `owner`, all of them when it is nil: they are told what they weren't yet, then no more.
  public func endObservers(of owner: ObjectIdentifier? = nil) { feed.end(of: owner) }

  /// Looks whether another process has committed changes, and tells observers. A write in this process looks as well.
  public func noticeChanges() throws {
    guard feed.isActive else { return }
    feed.notice(try committedSequence())
  }

  /// Runs `body`, which closes the engine, while nothing is done in the background. When it succeeds all observers
  /// end.
  public func closing(_ body: () throws -> Void) throws {
    try background.alone(body)
    endObservers()
  }

  /// Runs `body` while nothing is done in the background: a snapshot there would keep an engine from giving space back.
  public func withoutBackground<Result>(_ body: () throws -> Result) rethrows -> Result {
    try background.alone(body)
  }

  /// Runs `body`, which reads or writes in the background: closing the engine waits for it. Not to be nested.
  public func inBackground<Result>(_ body: () throws -> Result) rethrows -> Result {
    try background.pass(body)
  }

  /// The sequence of the last commit, also inside a batch.
  private func committedSequence() throws -> UInt64 {
    try withSnapshot { try Self.lastSequence($0, $1.keyspaces) }
  }

  /// The stored changes after a sequence and up to another, at most `limit`, as observers are told, and up to where
  /// that reaches. With an ID, of that document only.
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
            throw DocumentError(.damaged, "an entry of the changes can't be read")
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

  /// The last change of a document. Its flags are read when they aren't given.
  private func observed(
    _ id: String, _ flags: UInt8?, _ transaction: any ReadTransaction, _ context: Context
  ) throws -> DocumentChange? {
    let document = try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      func document(in keyspace: Keyspace) throws -> Document? {
        try transaction.withValue(at: key.bytes, in: keyspace) {
          try Document(id: id, record: $0, sharedKeys: context.sharedKeys)
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
