import Documents

/// What happens to pulled revisions that don't descend from the current one.
enum LeafRule: Sendable {
  /// Each is a conflict, and resolved.
  case resolve
  /// They are branches of their own, as in CouchDB.
  case keep
  /// Live ones are conflicts with a live current one. A tombstone that isn't current has lost a conflict elsewhere.
  case resolveLive

  init(_ configuration: ReplicatorConfiguration, _ peer: any Peer) {
    guard peer.exchangesLeaves else {
      self = .resolve
      return
    }
    if case .standard = configuration.conflictResolver { self = .keep } else { self = .resolveLive }
  }

  /// Stores revisions in one transaction.
  func apply(_ revisions: [SyncRevision], to store: DocumentStore, remote: UInt32) throws -> [SyncOutcome] {
    switch self {
    case .resolve: return try store.apply(revisions, .report, remote: remote)
    case .keep: return try store.apply(revisions, .allow, remote: remote)
    case .resolveLive:
      guard revisions.contains(where: \.isDeleted) else {
        return try store.apply(revisions, .reportUnlessDeleted, remote: remote)
      }
      return try store.inBatch {
        try revisions.map { revision in
          try store.apply([revision], revision.isDeleted ? .allow : .reportUnlessDeleted, remote: remote)[0]
        }
      }
    }
  }
}
