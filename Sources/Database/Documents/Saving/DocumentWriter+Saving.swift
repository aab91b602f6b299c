import Bytes
import Fleece
import Storage

/// The condition on the stored document for a local write.
enum Precondition {
  /// No condition. The write becomes a child of the revision it is based on if that is a leaf, otherwise of
  /// the current revision. With no base it tries to insert a new document first, which avoids a lookup.
  case lastWriteWins(basedOn: RevisionID?)
  /// The base exists and is a leaf. With no base, there is no live document.
  case based(on: RevisionID?)
  /// The base is known. If it isn't a leaf, the write adds a branch.
  case branching(from: RevisionID)
  /// As in CouchDB, with a revision ID of 32 digits. The base is a leaf; with no base, there is no live document, and the write goes on top
  /// of a tombstone unless it is a deletion.
  /// Of a document that isn't there the base is taken for known, and a deletion makes a tombstone.
  case edit(of: RevisionID?)

  /// Whether the write inserts a new document if there is none, and has no base.
  var mayInsert: Bool {
    switch self {
    case .lastWriteWins(basedOn: nil), .edit(of: nil): true
    default: false
    }
  }

  /// How many bytes of its digest the new revision's ID has.
  var digestBytes: Int {
    if case .edit = self { RevisionDigest.shortByteCount } else { RevisionDigest.byteCount }
  }
}

extension DocumentWriter {
  /// Adds a revision with this body. `closed` marks the end of a branch that lost a conflict.
  func save(
    _ id: UnsafeRawBufferPointer, _ body: EncodedBody, deleted: Bool = false, closed: Bool = false,
    _ precondition: Precondition
  ) throws -> SavedRevision {
    try checkWritable()
    let deleted = deleted || body.isDeletion
    if precondition.mayInsert, !mayHaveTombstones, !deleted, !body.mayNameBlobs,
      validations.isEmpty, let saved = try insertNew(id, body, precondition.digestBytes)
    {
      return saved
    }
    let isStored = try loadUnordered(id)
    var parent = -1
    /// The parent of the first revision that is stored.
    var outside: RevisionID?
    if isStored != nil {
      parent = try self.parent(for: precondition, deleting: deleted, id: id)
      // A branch needs the complete tree.
      if parent != 0 { try loadHistory(of: id) }
    } else if case .edit(let base) = precondition {
      outside = base
    } else if case .branching(let base) = precondition {
      throw DocumentError(
        .notFound, "there is no document, so the change can't be based on its revision \(base)",
        documentID: idText(id))
    } else if case .based(on: let base?) = precondition, !deleted {
      throw DocumentError(
        .conflict,
        "the change is based on revision \(base), but the document was purged; read it again,"
          + " or use lastWriteWins", documentID: idText(id))
    } else if deleted {
      throw DocumentError(
        .notFound, "there is no such document, so it can't be deleted", documentID: idText(id))
    }
    var generation: UInt64 = 1
    if parent >= 0 {
      let node = tree.nodes[parent]
      generation = node.generation + 1
      guard generation <= RevisionID.maximumGeneration else {
        throw DocumentError(
          .invalidRevisionID, "there can be no generation above that of \(tree.revisionID(of: parent))",
          documentID: idText(id))
      }
    } else if let outside {
      generation = outside.generation + 1
      guard generation <= RevisionID.maximumGeneration else {
        throw DocumentError(
          .invalidRevisionID, "there can be no generation above that of \(outside)", documentID: idText(id))
      }
    }
    let body = try settleBlobs(
      body, id, generation: generation, deleted: deleted, ancestor: parent, stored: isStored)
    // The end of a branch that lost a conflict isn't a deletion of the document.
    if !closed { try validate(id, body, deleted: deleted, parent: parent, stored: isStored) }
    text.removeAll()
    if parent >= 0 {
      let node = tree.nodes[parent]
      StoredRevisionID(generation: node.generation, suffix: tree.suffix(of: node)).appendText(to: &text)
    } else if let outside {
      var name = outside.description
      name.withUTF8 { text.append(UnsafeRawBufferPointer($0)) }
    }
    let digest = try digest.digest(parent: text.bytes, deleted: deleted, body: body.canonicalJSON)
    let new = StoredRevisionID(generation: generation, digest: digest, byteCount: precondition.digestBytes)
    if isStored != nil, var known = tree.index(of: new) {
      if !tree.isOrdered, tree.nodes[known].parent < 0 { try putInOrder(&known, &parent) }
      try loadHistory(of: id)
      return try saveKnown(known, on: parent, id, stored: isStored, generation, digest)
    }
    let sequence = try nextSequence()
    var flags: RevisionFlags = [.leaf, .hasBody]
    if deleted { flags.insert(.deleted) }
    if closed { flags.insert(.closed) }
    return try mutating {
      if isStored == nil { tree.removeAll() }
      let root = outside.map { add($0, sequence) }
      let index = tree.addChild(new, of: root ?? parent, sequence: sequence, flags: flags)
      try write(id, body, stored: isStored, newRevision: index, parent: parent, sequence)
      return saved(sequence, generation, digest)
    }
  }

  /// Adds a revision to `tree` that is known by its ID only. Returns its index.
  private func add(_ root: RevisionID, _ sequence: UInt64) -> Int {
    var suffix = root.suffix
    text.removeAll()
    let isText = suffix.withUTF8 { text.append(suffix: UnsafeRawBufferPointer($0)) }
    return tree.add(
      StoredRevisionID(generation: root.generation, suffix: StoredSuffix(bytes: text.bytes, isText: isText)),
      parent: -1, sequence: sequence, flags: [])
  }

  /// Handles a local save whose revision had arrived from another database without its parent: the same
  /// parent and body give the same ID everywhere. Joins the revision to its parent. If it has another parent,
  /// nothing changes.
  private func saveKnown(
    _ known: Int, on parent: Int, _ id: UnsafeRawBufferPointer, stored: Stored?, _ generation: UInt64,
    _ digest: UnsafeRawBufferPointer
  ) throws -> SavedRevision {
    guard tree.nodes[known].parent < 0 else { return saved(stored?.sequence ?? 0, generation, digest) }
    let sequence = try nextSequence()
    return try mutating {
      tree.join(known, to: parent)
      try write(id, nil, stored: stored, newRevision: known, parent: parent, sequence)
      return saved(sequence, generation, digest)
    }
  }

  private func saved(_ sequence: UInt64, _ generation: UInt64, _ digest: UnsafeRawBufferPointer)
    -> SavedRevision
  {
    SavedRevision(
      sequence: sequence, generation: generation,
      digest: digest.loadUnaligned(as: InlineArray<20, UInt8>.self))
  }

  /// Inserts the first revision of a document without looking it up. Returns nil if the ID is in use.
  private func insertNew(_ id: UnsafeRawBufferPointer, _ body: EncodedBody, _ digestBytes: Int) throws
    -> SavedRevision?
  {
    let digest = try digest.digest(
      parent: UnsafeRawBufferPointer(start: nil, count: 0), deleted: false, body: body.canonicalJSON)
    let last = lastSequence ?? 0
    guard last < maximumSequence else { return nil }
    let sequence = last + 1
    // The bytes of `tree` are gone.
    tree.forgetEncoded()
    treeBytes.removeAll()
    treeBytes.append(1)
    treeBytes.append((RevisionFlags.leaf.union(.hasBody)).rawValue)
    treeBytes.append(0)
    treeBytes.append(varint: sequence)
    StoredRevisionID(generation: 1, digest: digest, byteCount: digestBytes).append(to: &treeBytes)
    compose(flags: [], sequence, keyCount: body.sharedKeyCount, body: body.fleece)
    return try mutating {
      guard try transaction.insert(id, record.bytes, in: keyspaces.docs) else { return nil }
      try addChange(
        id, flags: [], sequence,
        current: StoredRevisionID(generation: 1, digest: digest, byteCount: digestBytes))
      try updateIndexes(id, old: nil, new: body.fleece)
      lastSequence = sequence
      return saved(sequence, 1, digest)
    }
  }

  /// Returns the index of the node that becomes the parent of a local write.
  private func parent(for precondition: Precondition, deleting: Bool, id: UnsafeRawBufferPointer) throws
    -> Int
  {
    let base: RevisionID?
    let canFail: Bool
    switch precondition {
    case .lastWriteWins(let revision): (base, canFail) = (revision, false)
    case .based(let revision): (base, canFail) = (revision, true)
    case .edit(let revision):
      if let revision {
        if let index = leaf(revision) { return index }
      } else if tree.nodes[0].isDeleted, !deleting {
        return 0
      }
      throw DocumentError(
        .conflict,
        "the change is based on revision \(revision?.description ?? "none"), but the current one is"
          + " \(tree.revisionID(of: 0))", documentID: idText(id))
    case .branching(let revision):
      guard let index = try index(of: revision, in: id) else {
        throw DocumentError(
          .notFound, "the change is based on revision \(revision), which the document doesn't have",
          documentID: idText(id))
      }
      return index
    }
    if let base {
      if let index = leaf(base) { return index }
      if canFail {
        throw DocumentError(
          .conflict,
          "the change is based on revision \(base), but the current one is \(tree.revisionID(of: 0));"
            + " read the document again, or use lastWriteWins", documentID: idText(id))
      }
    }
    if tree.nodes[0].isDeleted {
      // A tombstone may be overwritten, but it can't be deleted again.
      guard deleting else { return 0 }
      throw DocumentError(.notFound, "the document is already deleted", documentID: idText(id))
    }
    guard canFail else { return 0 }
    throw DocumentError(
      .conflict, "a document with this ID exists already; read it and change it, or use lastWriteWins",
      documentID: idText(id))
  }

  /// Returns the index of the revision if it is a leaf of the document in `tree`.
  private func leaf(_ revision: RevisionID) -> Int? {
    index(of: revision).flatMap { tree.nodes[$0].isLeaf ? $0 : nil }
  }

  /// Returns the index of the revision in `tree`. Loads older revisions if it may be one of them.
  func index(of revision: RevisionID, in id: UnsafeRawBufferPointer) throws -> Int? {
    if let index = index(of: revision) { return index }
    guard try addsOlder(revision.generation, of: id) else { return nil }
    return index(of: revision)
  }

  /// Returns the index of the revision in `tree`.
  func index(of revision: RevisionID) -> Int? {
    var suffix = revision.suffix
    text.removeAll()
    let isText = suffix.withUTF8 { text.append(suffix: UnsafeRawBufferPointer($0)) }
    return tree.index(of: self.suffix(revision.generation, 0, isText))
  }
}
