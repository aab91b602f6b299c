import Fleece
import Storage

extension DocumentStore {
  /// The live leaf revisions of a conflicted document with their bodies, the current one first; empty when there is
  /// no conflict.
  public func conflicts(of id: String) throws -> [Revision] {
    let live = try leaves(of: id)
    return live.count > 1 ? live : []
  }

  /// Ends a conflict: the branch of `revision`, a leaf, goes on, every other live branch ends with a closed
  /// tombstone. With `body`, a merge or another choice becomes a new revision on top of `revision`.
  ///
  /// Each revision that this makes takes a sequence. Throws `notFound` when there is no such document or revision,
  /// and `conflict` when the revision isn't a leaf any more. Without other live leaves and without a body nothing
  /// changes.
  public func resolveConflict(of id: String, keeping revision: RevisionID, merged body: DocumentBody? = nil)
    throws
  {
    try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { writer in
        let losers = try writer.otherLiveLeaves(of: key, than: revision)
        try writer.resolve(key, revision, losers: losers, body, isForeign: false, deleted: false)
      }
    }
  }

  /// Inserts a revision that another database made, and asks `resolver` when it doesn't descend from the current
  /// one. False when it was known already: then nothing changes.
  ///
  /// Revision and resolution are stored in one transaction: nobody sees the conflict. The incoming branch goes on;
  /// the local one, when it is live, ends with a closed tombstone. Throws what `resolver` throws, `conflict` when the
  /// document was changed meanwhile `attempts` times, and what `apply(_:)` throws.
  @discardableResult
  public func apply(
    _ revision: PulledRevision, resolvingWith resolver: some ConflictResolver, attempts: Int = 10
  ) throws -> Bool {
    for _ in 0..<max(1, attempts) {
      let (current, conflict) = try reading { transaction, context in
        try self.conflict(with: revision, transaction, context)
      }
      guard let conflict, let remote = RevisionID(revision.history.first ?? "") else {
        // None yet; the document may be changed before this is written, and then there may be one.
        if let applied = try applyIfCurrent(revision, current, { _, _ in }) { return applied }
        continue
      }
      let resolution = try resolver.resolve(conflict)
      var merged: JSONValue?
      if case .merged(let value) = resolution { merged = value }
      let applied = try applyIfCurrent(revision, current, merged: merged) { writer, key in
        let local = conflict.local
        let losers = local.isDeleted ? [] : [local.id]
        var body: DocumentBody?
        var deleted = false
        var isForeign = false
        switch resolution {
        case .remote: break
        case .local:
          (body, deleted, isForeign) = (.value(local.body ?? [:]), local.isDeleted, true)
        case .merged(let merged): body = .value(merged)
        case .delete: if !conflict.remote.isDeleted { (body, deleted) = ([:], true) }
        }
        try writer.resolve(key, remote, losers: losers, body, isForeign: isForeign, deleted: deleted)
      }
      if let applied { return applied }
    }
    throw DocumentError(
      .conflict, "the document was changed \(max(1, attempts)) times while its conflict was being resolved",
      documentID: revision.id)
  }

  /// The current revision's ID, and the conflict that `revision` would be, as `transaction` sees it.
  private func conflict(
    with revision: PulledRevision, _ transaction: any ReadTransaction, _ context: Context
  ) throws -> (RevisionID?, Conflict?) {
    guard let history = try history(of: revision.id, transaction, context) else { return (nil, nil) }
    let current = history.tree.revisionID(of: 0)
    // What isn't a revision ID is refused when it is applied.
    guard let id = RevisionID(revision.history.first ?? "") else { return (current, nil) }
    var ancestor: Int?
    for text in revision.history {
      ancestor = try RevisionID(text).flatMap { try history.index(of: $0) }
      if ancestor != nil { break }
    }
    // Known itself, or on top of what is current.
    if try ancestor == 0 || history.index(of: id) != nil { return (current, nil) }
    let remote = Revision(
      id: id, parent: revision.history.dropFirst().first.flatMap { RevisionID($0) },
      isDeleted: revision.isDeleted, isLeaf: true, isCurrent: false, sequence: 0, hasBody: true,
      body: try revision.body.value())
    // The revision's ancestor may be on another branch than the current one; what is common to both is older then.
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

  /// Applies the revision and then does `body`, when `current` is still the current revision; nil when it isn't.
  private func applyIfCurrent(
    _ revision: PulledRevision, _ current: RevisionID?, merged: JSONValue? = nil,
    _ body: (DocumentWriter, UnsafeRawBufferPointer) throws -> Void
  ) throws -> Bool? {
    try DocumentID.withValidated(revision.id, maximum: DocumentID.maximumStoredBytes) { key in
      try writing { writer in
        guard try writer.currentRevision(of: key) == current else { return nil }
        // What can't be a body is refused before anything has changed.
        if let merged { try writer.encode(.value(merged), of: key) }
        try writer.encode(revision.body, of: key, isForeign: true, hasRevisionID: true)
        writer.bodyBlobs.mayBeMissing = revision.allowsMissingBlobs
        guard try writer.apply(key, history: revision.history, deleted: revision.isDeleted) else {
          return false
        }
        // The revision is stored: what fails now fails the transaction.
        try writer.mutating { try body(writer, key) }
        return true
      }
    }
  }
}

extension DocumentBody {
  /// The body as a value. Throws `invalidBody` for what isn't JSON.
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
