// The passive side: what a database answers to a replicator. Local peers use it, and so does whatever takes connections.

import Blobs
import Documents
import Fleece
import Storage
import Touchstone

/// Answers a replicator's requests over a database. Its calls block: they are for threads that may wait.
package final class PassiveResponder: Sendable {
  /// What a passive database allows.
  package struct Options: Sendable {
    /// Whether it takes revisions.
    package var acceptsRevisions = true
    /// Whether it gives revisions.
    package var givesRevisions = true
    /// Whether it refuses every revision that makes a conflict, however it comes.
    package var refusesConflicts = false
    /// The filters that a pull may name.
    package var filters: [String: NamedFilter] = [:]
    /// Makes, for each batch of revisions, what looks at each of them before they are stored, not in a transaction, and throws what refuses
    /// the revision. What the closure itself throws refuses them all. Nil: nothing looks.
    package var checks: (@Sendable () throws -> @Sendable (SyncRevision) throws -> Void)?

    package init() {}
  }

  package let database: Database
  package let options: Options
  /// What this connection's peer has pushed.
  let echoes = EchoRanges()

  package init(_ database: Database, _ options: Options = Options()) {
    self.database = database
    self.options = options
  }

  // MARK: Checkpoints

  /// Returns the checkpoint that a peer has stored here, or nil.
  package func checkpoint(_ id: String) throws -> StoredCheckpoint? {
    try database.replicating { store in
      try store.peerCheckpoint(id).map { StoredCheckpoint(json: $0.json, revision: "\($0.revision)-cc") }
    }
  }

  /// Stores a peer's checkpoint and returns its new revision. Throws HTTP 409 unless `revision` is the stored one, empty
  /// if there is none, and HTTP 400 unless the checkpoint is a JSON object. A database that is open for reading only forgets it:
  /// the peer has replicated all the same, and compares everything the next time.
  package func setCheckpoint(_ id: String, _ json: [UInt8], basedOn revision: String) throws -> String {
    guard (try? json.withUnsafeBytes({ try JSONValue(json: $0) }))?.object != nil else {
      throw ReplicationError(.http, 400, "a checkpoint isn't a JSON object")
    }
    var base: UInt64?
    if !revision.isEmpty {
      guard revision.hasSuffix("-cc"), let number = UInt64(revision.dropLast(3)), number > 0 else {
        throw ReplicationError.conflict("the checkpoint has another revision than \(revision)")
      }
      base = number
    }
    guard !database.isReadOnly else { return "\((base ?? 0) &+ 1)-cc" }
    guard let new = try database.replicatingChanges({ try $0.setPeerCheckpoint(id, json, basedOn: base) })
    else {
      throw ReplicationError.conflict(
        "the checkpoint has another revision than \(revision.isEmpty ? "none" : revision)")
    }
    return "\(new)-cc"
  }

  // MARK: Push

  /// Answers proposed changes:
  ///
  /// | here | proposed parent | answer |
  /// |---|---|---|
  /// | missing | none | send |
  /// | missing | given | conflict |
  /// | the proposed revision is current | any | known |
  /// | live | none | conflict |
  /// | deleted | none | send |
  /// | deleted, and the proposed live revision lost against that, or is an ancestor of it | none | conflict |
  /// | current = parent | given | send |
  /// | current ≠ parent | given | conflict |
  ///
  /// The answer is `ended` in the place of a conflict, or of sending a revision that is known, if its branch was deleted here.
  package func answer(_ changes: [ProposedChange]) throws -> ProposalAnswer {
    try checkAcceptsRevisions()
    return try database.replicating { store in
      let current = try store.currentRevisions(of: changes.map(\.id))
      let statuses = try zip(changes, current).map { change, current -> ProposalStatus in
        let parent = change.remoteRevision.flatMap { $0.isEmpty ? nil : $0 }
        guard let current else { return parent == nil ? .send : .conflict(current: "") }
        if current.revision.hasSameBytes(as: change.revision) { return .known }
        guard let parent else {
          if try current.isDeleted && !hasLost(change, store) { return .send }
          return try conflict(change, current, store)
        }
        guard current.revision.hasSameBytes(as: parent) else { return try conflict(change, current, store) }
        return try hasEnded(change, current, store, byDeletion: true) ? .ended(current: parent) : .send
      }
      return ProposalAnswer(statuses, maximumHistory: store.maximumTreeDepth)
    }
  }

  private func conflict(_ change: ProposedChange, _ current: CurrentRevision, _ store: DocumentStore) throws
    -> ProposalStatus
  {
    // A branch that lost against a tombstone has a closed one. Nobody has deleted it.
    try hasEnded(change, current, store, byDeletion: current.isDeleted)
      ? .ended(current: current.revision) : .conflict(current: current.revision)
  }

  private func hasEnded(
    _ change: ProposedChange, _ current: CurrentRevision, _ store: DocumentStore, byDeletion: Bool
  ) throws -> Bool {
    try current.hasOtherLeaves && store.hasEnded(change.revision, of: change.id, byDeletion: byDeletion)
  }

  /// Whether a proposed revision is known here, isn't current, and isn't a tombstone. To send it once more would change nothing, and the
  /// peer would take it for the current one here. The current one is a tombstone that ended another branch, or this one: then the
  /// peer has purged the document and made it anew with the content that it had, or hasn't pulled the tombstone yet.
  private func hasLost(_ change: ProposedChange, _ store: DocumentStore) throws -> Bool {
    guard let revision = RevisionID(change.revision),
      case .known = try store.syncKnowledge(of: [(change.id, change.revision)])[0]
    else { return false }
    return try store.revisions(of: change.id, withBodies: false)?.first { $0.id == revision }?.isDeleted
      == false
  }

  /// Answers changes that a peer offers without asking about conflicts. Throws 409 if conflicts are refused here.
  package func answer(_ changes: [OfferedChange]) throws -> OfferAnswers {
    try checkAcceptsRevisions()
    guard !options.refusesConflicts else {
      throw ReplicationError(.blip, 409, "this database takes no conflicts; propose the changes")
    }
    return try database.replicating { store in
      let answers = try store.syncKnowledge(of: changes.map { ($0.id, $0.revision) }).map {
        knowledge -> OfferAnswer in
        switch knowledge {
        case .known, .invalid: .unwanted
        case .missing(let ancestors): .wanted(possibleAncestors: ancestors)
        }
      }
      return OfferAnswers(answers, maximumHistory: store.maximumTreeDepth)
    }
  }

  /// Returns the blobs that a revision names and that aren't here. They must be stored before it.
  package func missingBlobs(of body: SyncBody) throws -> [MissingBlob] {
    try database.replicating { try $0.missingBlobs(of: body) }
  }

  /// Stores revisions in one transaction. Returns the error of each; nil if it is durable.
  package func insert(_ revisions: [OutgoingRevision]) throws -> [ReplicationError?] {
    try apply(revisions.map { ($0.revision, $0.allowsNoConflict) }).map { outcome in
      switch outcome {
      case .added, .known: nil
      case .conflict: .conflictsHere
      case .refused(let error): .refused(error)
      }
    }
  }

  /// Stores revisions in one transaction. A revision that allows no conflict has the outcome `conflict` instead of making
  /// one.
  package func apply(_ revisions: [(revision: SyncRevision, allowsNoConflict: Bool)]) throws -> [SyncOutcome]
  {
    try checkAcceptsRevisions()
    guard let check = try options.checks?() else { return try applyChecked(revisions) }
    var outcomes = [SyncOutcome?](repeating: nil, count: revisions.count)
    for (index, revision) in revisions.enumerated() {
      do { try check(revision.revision) } catch { outcomes[index] = .refused(error) }
    }
    let wanted = revisions.indices.filter { outcomes[$0] == nil }
    for (index, outcome) in zip(wanted, try applyChecked(wanted.map { revisions[$0] })) {
      outcomes[index] = outcome
    }
    return outcomes.compactMap { $0 }
  }

  private func applyChecked(_ revisions: [(revision: SyncRevision, allowsNoConflict: Bool)]) throws
    -> [SyncOutcome]
  {
    guard !revisions.isEmpty else { return [] }
    return try database.replicatingChanges { store in
      let (outcomes, range) = try store.inBatch {
        let start = try store.lastSequence
        let outcomes = try apply(revisions, store)
        return (outcomes, try areCurrent(revisions, outcomes, store) ? (start, try store.lastSequence) : nil)
      }
      if let range { echoes.add(after: range.0, upTo: range.1) }
      return outcomes
    }
  }

  private func apply(_ revisions: [(revision: SyncRevision, allowsNoConflict: Bool)], _ store: DocumentStore)
    throws
    -> [SyncOutcome]
  {
    // Almost always all have the same rule.
    let allowed = revisions.map { !($0.allowsNoConflict || options.refusesConflicts) }
    guard allowed.contains(true), allowed.contains(false) else {
      return try store.apply(
        revisions.map(\.revision), allowed.first == true ? .allow : .reportUnlessNew)
    }
    return try zip(revisions, allowed).map { revision, isAllowed in
      try store.apply([revision.revision], isAllowed ? .allow : .reportUnlessNew)[0]
    }
  }

  /// Whether all that were stored or known are current now. A new document that makes no conflict is, without a look. One that was known
  /// may have ended another branch, after which neither of them is current.
  private func areCurrent(
    _ revisions: [(revision: SyncRevision, allowsNoConflict: Bool)], _ outcomes: [SyncOutcome],
    _ store: DocumentStore
  ) throws -> Bool {
    let unsure = zip(revisions, outcomes).compactMap { revision, outcome -> SyncRevision? in
      switch outcome {
      case .added: break
      case .known: return revision.revision
      case .conflict, .refused: return nil
      }
      let isSure =
        (revision.allowsNoConflict || options.refusesConflicts) && !revision.revision.isDeleted
        && revision.revision.replaces == nil && revision.revision.history.count == 1
      return isSure ? nil : revision.revision
    }
    if unsure.isEmpty { return true }
    return try zip(unsure, store.currentRevisions(of: unsure.map(\.id))).allSatisfy { revision, current in
      current?.revision.hasSameBytes(as: revision.revision) ?? false
    }
  }

  package func checkAcceptsRevisions() throws {
    guard options.acceptsRevisions else {
      throw ReplicationError.forbidden("Attempting to push to a pull-only replicator")
    }
  }

  // MARK: Pull

  func checkGivesRevisions() throws {
    guard options.givesRevisions else {
      throw ReplicationError.forbidden("Attempting to pull from a push-only replicator")
    }
  }
}
