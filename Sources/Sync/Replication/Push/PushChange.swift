import Documents

/// A revision that may be pushed: the current one of a document that has changed, or another leaf of it.
struct PushChange: Sendable {
  /// The sequence of the document's latest change.
  let sequence: UInt64
  let id: String
  let revision: String
  let isDeleted: Bool
  /// The revision that is known to be current on the peer.
  var known: String?
  /// The size of the current body in bytes.
  let bodyBytes: Int
  let otherLeaves: [SyncLeaf]
  /// Whether it isn't the current revision of its document.
  let isOtherLeaf: Bool

  init(_ change: SyncChange) {
    sequence = change.sequence
    id = change.id
    revision = change.revision
    isDeleted = change.isDeleted
    known = change.known
    bodyBytes = change.bodyBytes
    otherLeaves = change.otherLeaves
    isOtherLeaf = false
  }

  /// Another leaf of the document.
  init(_ leaf: SyncLeaf, of change: PushChange) {
    sequence = change.sequence
    id = change.id
    revision = leaf.revision
    isDeleted = leaf.isDeleted
    bodyBytes = change.bodyBytes
    otherLeaves = []
    isOtherLeaf = true
  }
}
