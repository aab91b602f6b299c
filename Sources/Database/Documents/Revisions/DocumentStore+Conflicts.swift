import Fleece
import Storage

extension DocumentStore {
  /// Keeps the branch of `revision`, and ends the other live branches.
  package func resolveConflict(of id: String, keeping revision: RevisionID, merged body: DocumentBody? = nil)
    throws
  {
    try withContent(of: body ?? [:]) {
      try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
        try writing { writer in
          let losers = try writer.otherLiveLeaves(of: key, than: revision)
          try writer.resolve(key, revision, losers: losers, body, isForeign: false, deleted: false)
        }
      }
    }
  }

  /// Inserts a revision that another database created, and resolves its conflict in the same transaction.
  @discardableResult
  package func apply(
    _ revision: PulledRevision, resolvingWith resolver: some ConflictResolver, attempts: Int = 10
  ) throws -> Bool {
    for _ in 0..<(max(1, attempts) - 1) {
      if let applied = try applyOnce(revision, resolvingWith: resolver) { return applied }
    }
    // In one transaction nobody else changes the document while the resolver runs.
    return try inBatch {
      if let applied = try applyOnce(revision, resolvingWith: resolver) { return applied }
      throw DocumentError(
        .conflict, "the resolver itself has changed the document; apply the revision again",
        documentID: revision.id)
    }
  }

  /// Inserts a revision with the resolution of its conflict. Returns nil if the document was changed while the
  /// resolver ran.
  private func applyOnce(_ revision: PulledRevision, resolvingWith resolver: some ConflictResolver) throws
    -> Bool?
  {
    let (current, conflict) = try reading { transaction, context in
      try self.conflict(with: revision, transaction, context)
    }
    guard let conflict, let remote = RevisionID(revision.history.first ?? "") else {
      // There is no conflict yet. The document may change before the write, and then there may be one.
      return try applyIfCurrent(revision, current, { _, _ in })
    }
    let resolution = try resolver.resolve(conflict)
    var merged: JSONValue?
    if case .merged(let value) = resolution { merged = value }
    return try applyIfCurrent(revision, current, merged: merged) { writer, key in
      try Self.write(resolution, of: conflict, remote, key, writer)
    }
  }

  private static func write(
    _ resolution: ConflictResolution, of conflict: Conflict, _ remote: RevisionID,
    _ key: UnsafeRawBufferPointer, _ writer: DocumentWriter
  ) throws {
    let local = conflict.local
    let losers = local.isDeleted ? [] : [local.id]
    var body: DocumentBody?
    var deleted = false
    var isForeign = false
    switch resolution {
    case .remote: break
    case .local: (body, deleted, isForeign) = (.value(local.body ?? [:]), local.isDeleted, true)
    case .merged(let merged): body = .value(merged)
    case .delete: if !conflict.remote.isDeleted { (body, deleted) = ([:], true) }
    }
    try writer.resolve(key, remote, losers: losers, body, isForeign: isForeign, deleted: deleted)
  }

  /// What a revision from elsewhere meets: the current revision, and the conflict with it if there is one.
  package struct MetRevision: Sendable {
    let current: RevisionID?
    /// The conflict, nil if there is none.
    package let conflict: Conflict?
  }

  /// Returns what a revision from elsewhere meets now.
  package func meet(_ revision: PulledRevision) throws -> MetRevision {
    try reading { transaction, context in
      let (current, conflict) = try self.conflict(with: revision, transaction, context)
      return MetRevision(current: current, conflict: conflict)
    }
  }

  /// How a conflict between databases ends.
  package enum SyncResolution: Sendable {
    /// As a resolver decided.
    case resolved(ConflictResolution)
    /// Both have the same content: the higher revision ID wins, in every database, and the other branch ends.
    case sameContent
  }

  /// Inserts a revision with the resolution of its conflict, and marks it as the current one of `remote`, in one
  /// transaction. Returns false if it is known already, and nil, with nothing changed, if the document has changed
  /// since `met`.
  package func apply(
    _ revision: PulledRevision, _ met: MetRevision, _ resolution: SyncResolution, remote: UInt32?
  ) throws -> Bool? {
    var merged: JSONValue?
    if case .resolved(.merged(let value)) = resolution { merged = value }
    let content = merged.map { DocumentBody.value($0) } ?? [:]
    return try withContent(of: content) {
      try inBatch {
        let applied = try applyIfCurrent(revision, met.current, merged: merged, isSynced: true) {
          writer, key in
          guard let conflict = met.conflict, let remote = RevisionID(revision.history.first ?? "") else {
            return
          }
          switch resolution {
          case .resolved(let resolution):
            try Self.write(resolution, of: conflict, remote, key, writer)
          case .sameContent:
            // Of tombstones the order of leaves chooses, as for all that know both.
            if !conflict.local.isDeleted { try writer.closeIfLeaf(key, min(conflict.local.id, remote)) }
          }
        }
        if applied != nil, let remote, let own = revision.history.first {
          try mark([(revision.id, own)], remote: remote)
        }
        return applied
      }
    }
  }

  /// Whether `revision` isn't the current one, but says the same: both are tombstones, or their bodies are equal. False if its body
  /// isn't stored.
  package func hasContentOfCurrent(_ revision: String, of id: String) throws -> Bool {
    guard let base = RevisionID(revision), let document = try document(id, includeDeleted: true),
      document.revisionID != base,
      let stored = try revisions(of: id, withBodies: false)?.first(where: { $0.id == base }),
      stored.isDeleted == document.isDeleted, let body = try syncBody(of: id, revision)
    else { return false }
    return try document.isDeleted || body.value() == document.value()
  }

  /// Puts the content of the current revision on top of `revision`, which lost against it here but is current in another
  /// database, and ends the branch of the current one. The other database can take the result. Returns false, and
  /// changes nothing, if the current revision is `revision` or descends from it, or if both are tombstones.
  package func continueBranch(of id: String, from revision: String) throws -> Bool {
    try inBatch {
      guard try syncKnowledge(of: [(id, revision)]) == [.known(.aside)], let base = RevisionID(revision),
        let document = try document(id, includeDeleted: true)
      else { return false }
      let (current, isDeleted) = (document.revisionID, document.isDeleted)
      if isDeleted,
        try revisions(of: id, withBodies: false)?.first(where: { $0.id == base })?.isDeleted ?? true
      {
        return false
      }
      let body = DocumentBody.value(try document.value())
      return try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
        try writing { writer in
          try writer.mutating {
            var encoded = try writer.encode(body, of: key, isForeign: true)
            encoded.mayMissBlobs = true
            _ = try writer.save(key, encoded, deleted: isDeleted, .branching(from: base))
            try writer.close(key, current)
            return true
          }
        }
      }
    }
  }

  /// Ends the branch of `revision` with a closed tombstone, because it was ended in another database, where `other` is current now.
  /// Returns false, and changes nothing, unless `revision` is current here and live, and `other` is another leaf.
  package func endBranch(of id: String, at revision: String, for other: String) throws -> Bool {
    guard let revision = RevisionID(revision), let other = RevisionID(other), revision != other else {
      return false
    }
    return try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { writer in
        try writer.joined { writer in
          guard try writer.currentRevision(of: key) == revision, !writer.tree.nodes[0].isDeleted,
            try writer.isLeaf(key, other)
          else { return false }
          try writer.mutating { try writer.close(key, revision) }
          return true
        }
      }
    }
  }

  /// Returns the current revision's ID and the conflict with `revision`, if there is one, in `transaction`.
  private func conflict(
    with revision: PulledRevision, _ transaction: any ReadTransaction, _ context: Context
  ) throws -> (RevisionID?, Conflict?) {
    guard let history = try history(of: revision.id, transaction, context) else { return (nil, nil) }
    let current = history.tree.revisionID(of: 0)
    // An invalid revision ID is rejected when the revision is applied.
    guard let id = RevisionID(revision.history.first ?? "") else { return (current, nil) }
    var ancestor: Int?
    for text in revision.history {
      ancestor = try RevisionID(text).flatMap { try history.index(of: $0) }
      if ancestor != nil { break }
    }
    // The revision is known, or it descends from the current revision.
    if try ancestor == 0 || history.index(of: id) != nil { return (current, nil) }
    let remote = Revision(
      id: id, parent: revision.history.dropFirst().first.flatMap { RevisionID($0) },
      isDeleted: revision.isDeleted, isLeaf: true, isCurrent: false, sequence: 0, hasBody: true,
      body: try revision.body.value())
    // The revision's nearest known ancestor may be on another branch. Then the common ancestor is older.
    var local: Set<Int> = []
    var index = 0
    while index >= 0 {
      local.insert(index)
      index = Int(history.tree.nodes[index].parent)
    }
    while let found = ancestor, !local.contains(found) {
      let parent = Int(history.tree.nodes[found].parent)
      ancestor = parent < 0 ? nil : parent
    }
    return (
      current,
      Conflict(
        documentID: revision.id, local: try history.revision(0, withBody: true), remote: remote,
        commonAncestor: try ancestor.map { try history.revision($0, withBody: true) })
    )
  }

  /// Applies the revision and then calls `body` if `current` is still the current revision. Returns nil if it
  /// isn't.
  private func applyIfCurrent(
    _ revision: PulledRevision, _ current: RevisionID?, merged: JSONValue? = nil, isSynced: Bool = false,
    _ body: (DocumentWriter, UnsafeRawBufferPointer) throws -> Void
  ) throws -> Bool? {
    try DocumentID.withValidated(revision.id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { writer in
        guard try writer.currentRevision(of: key) == current else { return nil }
        // An invalid body is rejected before anything has changed.
        if let merged { _ = try writer.encode(.value(merged), of: key) }
        var received = try writer.encode(revision.body, of: key, isForeign: true, hasRevisionID: true)
        received.mayMissBlobs = revision.allowsMissingBlobs
        received.keepsUnknownAttachments = isSynced
        guard try writer.apply(key, received, history: revision.history, deleted: revision.isDeleted) else {
          return false
        }
        // The revision is stored now. An error from here on fails the transaction.
        try writer.mutating { try body(writer, key) }
        return true
      }
    }
  }
}

extension DocumentBody {
  /// Returns the body as a value. Throws `invalidBody` when it isn't JSON.
  func value() throws -> JSONValue {
    switch self {
    case .value(let value): return value
    case .json(let bytes):
      do { return try bytes.withUnsafeBytes { try JSONValue(json: $0) } } catch {
        throw DocumentError(.invalidBody, "\(error)")
      }
    }
  }
}
