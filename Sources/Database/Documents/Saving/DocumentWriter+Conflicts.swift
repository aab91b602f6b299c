import Fleece
import Storage

extension DocumentWriter {
  /// Returns the ID of the document's current revision, nil if there is no document.
  func currentRevision(of id: UnsafeRawBufferPointer) throws -> RevisionID? {
    try checkWritable()
    return try loadUnordered(id).map { _ in tree.revisionID(of: 0) }
  }

  /// Returns the live leaves of the document besides `revision`, in order. Throws `conflict` unless `revision` is a
  /// leaf.
  func otherLiveLeaves(of id: UnsafeRawBufferPointer, than revision: RevisionID) throws -> [RevisionID] {
    try checkWritable()
    guard try loadUnordered(id) != nil else {
      throw DocumentError(.notFound, "there is no such document", documentID: idText(id))
    }
    guard let index = try index(of: revision, in: id) else {
      throw DocumentError(
        .notFound, "there is no revision \(revision) of the document", documentID: idText(id))
    }
    guard tree.nodes[index].isLeaf else {
      throw DocumentError(
        .conflict, "the revision \(revision) isn't a leaf any more; read the conflicts again",
        documentID: idText(id))
    }
    let leaves = tree.nodes.indices.filter {
      $0 != index && tree.nodes[$0].isLeaf && !tree.nodes[$0].isDeleted
    }
    let order = tree.isOrdered ? leaves : leaves.sorted { tree.precedes($0, $1) }
    return order.map { tree.revisionID(of: $0) }
  }

  /// Adds `body`, if there is one, on top of `revision`, and ends the branches of the leaves `losers`. One that `revision` has turned out
  /// to descend from has no branch to end.
  func resolve(
    _ id: UnsafeRawBufferPointer, _ revision: RevisionID, losers: [RevisionID], _ body: DocumentBody?,
    isForeign: Bool, deleted: Bool
  ) throws {
    if let body {
      // This comes first: the body may be rejected, and then nothing has changed.
      var body = try encode(body, of: id, isForeign: isForeign)
      // A stored local body may still wait for its blobs.
      body.mayMissBlobs = isForeign
      _ = try save(id, body, deleted: deleted, .based(on: revision))
    }
    try mutating {
      for loser in losers { try closeIfLeaf(id, loser) }
    }
  }

  /// Ends the branch of a revision, if it is a leaf that isn't a tombstone or is current.
  func closeIfLeaf(_ id: UnsafeRawBufferPointer, _ revision: RevisionID) throws {
    guard try loadUnordered(id) != nil, let index = try index(of: revision, in: id), tree.nodes[index].isLeaf,
      index == 0 || !tree.nodes[index].isDeleted
    else { return }
    try close(id, revision)
  }

  /// Whether a revision is a leaf; with `isLive`, one that isn't a tombstone.
  func isLeaf(_ id: UnsafeRawBufferPointer, _ revision: RevisionID, isLive: Bool = false) throws -> Bool {
    guard try loadUnordered(id) != nil, let index = try index(of: revision, in: id) else { return false }
    return tree.nodes[index].isLeaf && !(isLive && tree.nodes[index].isDeleted)
  }

  /// Ends the branch of a leaf that lost a conflict with a closed tombstone.
  func close(_ id: UnsafeRawBufferPointer, _ leaf: RevisionID) throws {
    _ = try save(id, encode([:], of: id), deleted: true, closed: true, .based(on: leaf))
  }
}
