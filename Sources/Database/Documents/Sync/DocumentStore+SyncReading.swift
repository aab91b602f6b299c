import Bytes
import Blobs
import Fleece
import Storage

extension DocumentStore {
  // MARK: Changes

  /// Returns the changes after `since` and up to `end`, oldest first, at most `limit`, with the sequence that they
  /// reach: that of the last one, or `end`. With `remote`, the revisions that are known to be there are read too, and
  /// `withLeaves` all leaves.
  package func syncChanges(
    after since: UInt64, upTo end: UInt64, limit: Int, remote: UInt32? = nil, withLeaves: Bool = false
  ) throws -> (changes: [SyncChange], reached: UInt64) {
    try reading { transaction, context in
      guard since < end else { return ([], end) }
      let keyspaces = context.keyspaces
      let marks = try remote.flatMap { _ in try transaction.keyspace(named: SyncRecords.marks) }
      var changes: [SyncChange] = []
      var reached = end
      var key = ByteBuffer(capacity: 512)
      let tree = withLeaves ? RevisionTree() : nil
      let range = KeyRange(
        lower: .exclusive(Self.key(of: since)), upper: .inclusive(Self.key(of: min(end, maximumSequence))))
      if isInBatch { writer.beginScan() }
      defer { if isInBatch { writer.endScan() } }
      try transaction.scan(keyspaces.changes, range, order: .ascending, fetch: .entries) { name, value in
        let change = try StoredChange(value)
        guard let sequence = StoredChange.sequence(of: name) else {
          throw DocumentError(.damaged, "an entry of the list of changes can't be read")
        }
        let id = change.id
        let isDeleted = change.flags.contains(.deleted)
        var known: String?
        if let remote, let marks {
          id.withUnsafeBytes { SyncRecords.markKey(remote, $0, into: &key) }
          known = try Self.mark(at: key.bytes, marks, transaction)
        }
        let text = String(copying: id)
        let found = try transaction.read(id, in: isDeleted ? keyspaces.deleted : keyspaces.docs) { record in
          let record = try DocumentRecord(record)
          changes.append(
            SyncChange(
              sequence: sequence, id: text, revision: try record.currentRevision().text,
              isDeleted: isDeleted, known: known, bodyBytes: record.body.byteCount,
              otherLeaves: try tree?.otherLeaves(record.tree) ?? []))
        }
        guard found else {
          throw DocumentError(.damaged, "a change belongs to no document", documentID: text)
        }
        guard changes.count < limit else {
          reached = sequence
          return false
        }
        return true
      }
      return (changes, reached)
    }
  }

  private static func key(of sequence: UInt64) -> [UInt8] {
    (0..<8).map { UInt8(truncatingIfNeeded: sequence >> UInt64(56 - 8 * $0)) }
  }

  /// Returns the change of one document, nil if there is no such document.
  package func syncChange(of id: String, remote: UInt32?) throws -> SyncChange? {
    try reading { transaction, context in
      try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
        for (isDeleted, keyspace) in [(false, context.keyspaces.docs), (true, context.keyspaces.deleted)] {
          let change = try transaction.withValue(at: key.bytes, in: keyspace) { bytes in
            let record = try DocumentRecord(bytes)
            return SyncChange(
              sequence: record.sequence, id: id, revision: try record.currentRevision().text,
              isDeleted: isDeleted, known: try remote.flatMap { try mark(of: id, remote: $0) },
              bodyBytes: record.body.byteCount)
          }
          if let change { return change }
        }
        return nil
      }
    }
  }

  // MARK: Revisions

  /// Reads revisions with their histories and bodies, from one snapshot.
  package func syncRevisions(_ wanted: [SyncWanted]) throws -> [SyncReading] {
    try reading { transaction, context in
      let tree = RevisionTree()
      let sharedKeys = try sharedKeys(transaction, context)
      // Many may be of one document, which may have thousands of leaves.
      var last: String?
      return try wanted.map { wanted in
        try DocumentID.withValidated(wanted.id, maximum: DocumentID.maximumStoredBytes) { key in
          if let last, last.hasSameBytes(as: wanted.id),
            let reading = try readAside(wanted, tree, sharedKeys, transaction, context)
          {
            return reading
          }
          last = nil
          for keyspace in [context.keyspaces.docs, context.keyspaces.deleted] {
            let reading = try transaction.withValue(at: key.bytes, in: keyspace) {
              let record = try DocumentRecord($0)
              if record.history == nil { last = wanted.id }
              return try read(wanted, key, record, tree, sharedKeys, transaction, context)
            }
            if let reading { return reading }
          }
          return .missing
        }
      }
    }
  }

  private func read(
    _ wanted: SyncWanted, _ key: UnsafeRawBufferPointer, _ record: DocumentRecord, _ tree: RevisionTree,
    _ sharedKeys: SharedKeys, _ transaction: any ReadTransaction, _ context: Context
  ) throws -> SyncReading {
    try tree.decode(record.tree)
    var isWhole = record.history == nil
    func loadOlder() throws {
      guard !isWhole, let history = record.history else { return }
      isWhole = true
      try tree.addHistory(of: key, history, transaction)
    }
    var found = tree.index(of: wanted.revision)
    if found == nil, !isWhole {
      try loadOlder()
      found = tree.index(of: wanted.revision)
    }
    guard let found else { return .obsolete }
    let body =
      found == 0
      ? [UInt8](copying: record.body) : try bodyAside(of: tree.nodes[found], transaction, context)
    guard let body else { return .obsolete }
    let history = try history(wanted, of: found, tree) {
      guard !isWhole else { return false }
      try loadOlder()
      return true
    }
    return .revision(
      SyncRevision(
        id: wanted.id, history: history, isDeleted: tree.nodes[found].isDeleted,
        body: .fleece(body, sharedKeys)))
  }

  /// Reads a revision that isn't the current one of the document that was read last. `tree` has all its revisions. Returns nil for the current
  /// one, whose body is in the record.
  private func readAside(
    _ wanted: SyncWanted, _ tree: RevisionTree, _ sharedKeys: SharedKeys,
    _ transaction: any ReadTransaction, _ context: Context
  ) throws -> SyncReading? {
    guard let found = tree.index(of: wanted.revision) else { return .obsolete }
    guard found > 0 else { return nil }
    guard let body = try bodyAside(of: tree.nodes[found], transaction, context) else { return .obsolete }
    let history = try history(wanted, of: found, tree) { false }
    return .revision(
      SyncRevision(
        id: wanted.id, history: history, isDeleted: tree.nodes[found].isDeleted,
        body: .fleece(body, sharedKeys)))
  }

  /// The body of a revision that isn't the current one, nil if it isn't stored.
  private func bodyAside(
    of node: RevisionTree.Node, _ transaction: any ReadTransaction, _ context: Context
  ) throws -> [UInt8]? {
    guard node.flags.contains(.hasBody) else { return nil }
    let keyspace = node.isLeaf ? context.keyspaces.conflicts : context.keyspaces.bodies
    return try withSequenceKey(node.sequence) { key in
      try transaction.withValue(at: key.bytes, in: keyspace) { [UInt8](copying: try BodyRecord($0).body) }
    }
  }

  /// The history that goes with a revision to the peer. `loadOlder` adds older revisions to `tree`, and returns false if there are none.
  private func history(
    _ wanted: SyncWanted, of found: Int, _ tree: RevisionTree, loadOlder: () throws -> Bool
  ) throws -> [String] {
    // The history ends with a revision that the peer has, also if those before it are too many.
    let ancestors = wanted.ancestors + (wanted.known.map { [$0] } ?? [])
    var history = [wanted.revision]
    var next = Int(tree.nodes[found].parent)
    var oldest = found
    var hasAncestor = false
    while history.count <= wanted.maximumHistory || !ancestors.isEmpty && !hasAncestor {
      if next < 0 {
        // The oldest revision of the record may have older ones outside of it.
        let last = tree.nodes.count - 1
        guard try loadOlder() else { break }
        next = Int(tree.nodes[last].parent)
        if next < 0 { break }
      }
      oldest = next
      let id = StoredRevisionID(
        generation: tree.nodes[next].generation, suffix: tree.suffix(of: tree.nodes[next])
      ).text
      if !hasAncestor, ancestors.contains(where: { $0.hasSameBytes(as: id) }) {
        let isFar = history.count > wanted.maximumHistory
        if isFar { history.removeLast() }
        history.append(id)
        hasAncestor = true
        if isFar || !wanted.isWhole { break }
      } else if history.count <= wanted.maximumHistory {
        history.append(id)
      }
      next = Int(tree.nodes[next].parent)
    }
    if !hasAncestor, let known = wanted.known, let generation = RevisionID(known)?.generation,
      generation < tree.nodes[oldest].generation, tree.index(of: known) == nil
    {
      if history.count > wanted.maximumHistory { history.removeLast() }
      history.append(known)
    }
    return history
  }

  /// Reads the body of a stored revision, nil if it isn't stored any more.
  package func syncBody(of id: String, _ revision: String) throws -> SyncBody? {
    let wanted = SyncWanted(id: id, revision: revision, ancestors: [], maximumHistory: 0)
    guard case .revision(let found) = try syncRevisions([wanted])[0] else { return nil }
    return found.body
  }

  // MARK: What is known

  /// Returns what this database knows of revisions that a peer offers. With `remote`, the revision that is known to be current
  /// there counts as known also if it has been pruned here.
  package func syncKnowledge(of offered: [(id: String, revision: String)], remote: UInt32? = nil) throws
    -> [SyncKnowledge]
  {
    try reading { transaction, context in
      let tree = RevisionTree()
      let marks = try remote.flatMap { _ in try transaction.keyspace(named: SyncRecords.marks) }
      var markKey = ByteBuffer(capacity: 512)
      var packed = ByteBuffer(capacity: 256)
      // The document whose whole tree is in `tree`. Many revisions of one document may be offered, which may have thousands of leaves.
      var last: String?
      // Of its revisions before this generation, those that may be ancestors.
      var older: (generation: UInt64, ids: [String])?
      func knowledge(of revision: RevisionID) -> SyncKnowledge? {
        tree.index(of: revision, &packed).map { .known(tree.relation($0)) }
      }
      func missing(_ revision: RevisionID) -> SyncKnowledge {
        if let older, older.generation == revision.generation {
          return .missing(possibleAncestors: older.ids)
        }
        let ids = tree.possibleAncestors(before: revision.generation)
        older = (revision.generation, ids)
        return .missing(possibleAncestors: ids)
      }
      return try offered.map { offered in
        guard DocumentID.isStorable(offered.id), let revision = RevisionID(offered.revision) else {
          return .invalid
        }
        if let last, last.hasSameBytes(as: offered.id) {
          if let known = knowledge(of: revision) { return known }
          if marks == nil { return missing(revision) }
        }
        last = nil
        older = nil
        return try DocumentID.withValidated(offered.id, maximum: DocumentID.maximumStoredBytes) { key in
          for keyspace in [context.keyspaces.docs, context.keyspaces.deleted] {
            let knowledge = try transaction.withValue(at: key.bytes, in: keyspace) { bytes in
              let record = try DocumentRecord(bytes)
              try tree.decode(record.tree)
              if record.history == nil { last = offered.id }
              if let known = knowledge(of: revision) { return known }
              if let history = record.history, revision.generation < tree.oldestGeneration {
                try tree.addHistory(of: key, history, transaction)
                if tree.index(of: revision, &packed) != nil { return .known(.ancestor) }
              }
              if let remote, let marks {
                SyncRecords.markKey(remote, key, into: &markKey)
                let mark = try Self.mark(at: markKey.bytes, marks, transaction)
                if let mark, mark.hasSameBytes(as: offered.revision) { return .known(.ancestor) }
              }
              return missing(revision)
            }
            if let knowledge { return knowledge }
          }
          return .missing(possibleAncestors: [])
        }
      }
    }
  }

  /// Whether a stored revision isn't current, isn't a tombstone, and each leaf that descends from it is a tombstone; with `byDeletion`, one that doesn't
  /// end the branch for a conflict that was lost. False if it isn't stored.
  package func hasEnded(_ revision: String, of id: String, byDeletion: Bool) throws -> Bool {
    guard DocumentID.isStorable(id), let revision = RevisionID(revision) else { return false }
    return try reading { transaction, context in
      guard let history = try history(of: id, transaction, context) else { return false }
      let tree = history.tree
      guard let ended = tree.nodes.indices.first(where: { tree.revisionID(of: $0) == revision }),
        !tree.nodes[ended].isDeleted
      else { return false }
      return !tree.nodes.indices.contains { leaf in
        let flags = tree.nodes[leaf].flags
        guard flags.contains(.leaf),
          leaf == 0 || !flags.contains(.deleted) || byDeletion && flags.contains(.closed)
        else { return false }
        var next = leaf
        while next >= 0, next != ended { next = Int(tree.nodes[next].parent) }
        return next == ended
      }
    }
  }

  /// Returns the current revision of each document; nil for one that doesn't exist.
  package func currentRevisions(of ids: [String]) throws -> [CurrentRevision?] {
    try reading { transaction, context in
      try ids.map { id in
        guard DocumentID.isStorable(id) else { return nil }
        return try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
          for (isDeleted, keyspace) in [(false, context.keyspaces.docs), (true, context.keyspaces.deleted)] {
            let revision = try transaction.withValue(at: key.bytes, in: keyspace) {
              let record = try DocumentRecord($0)
              return CurrentRevision(
                revision: try record.currentRevision().text, isDeleted: isDeleted,
                hasOtherLeaves: try record.hasOtherLeaves)
            }
            if let revision { return revision }
          }
          return nil
        }
      }
    }
  }

  /// Returns the blobs that a body names and that this database doesn't have, each once.
  package func missingBlobs(of body: SyncBody) throws -> [MissingBlob] {
    guard let blobs else { return [] }
    var named: [MissingBlob] = []
    switch body {
    case .fleece(let bytes, let sharedKeys):
      named = try bytes.withUnsafeBytes { try self.blobs(namedIn: $0, sharedKeys) }
    case .json(let bytes):
      guard bytes.withUnsafeBytes({ mayNameBlob($0) }) else { return [] }
      let keys = SharedKeysBuilder(.empty)
      let encoder = BodyEncoder()
      do {
        try bytes.withUnsafeBytes { try encoder.encode(json: $0, keys: keys, withCanonicalJSON: false) }
      } catch { throw DocumentError(.invalidBody, "\(error)") }
      named = try self.blobs(namedIn: encoder.fleece, keys.snapshot())
    }
    return try named.filter { try !blobs.contains($0.digest) }
  }

  private func blobs(namedIn body: UnsafeRawBufferPointer, _ sharedKeys: SharedKeys) throws -> [MissingBlob] {
    guard mayNameBlob(body), let root = FleeceReader.root(of: body) else { return [] }
    var named: [MissingBlob] = []
    var known: Set<BlobDigest> = []
    try forEachBlobReference(in: root, sharedKeys: sharedKeys) { reference in
      guard let digest = reference.digest, known.insert(digest).inserted else { return }
      named.append(
        MissingBlob(digest, length: reference.storedLength, contentType: reference.contentType))
    }
    return named
  }
}

extension RevisionTree {
  /// The leaves of a stored tree but for the current revision.
  fileprivate func otherLeaves(_ bytes: RawSpan) throws -> [SyncLeaf] {
    try decode(bytes)
    // Leaves come first.
    return nodes.indices.dropFirst().prefix { nodes[$0].isLeaf }.map { index in
      SyncLeaf(revision: revisionID(of: index).description, isDeleted: nodes[index].isDeleted)
    }
  }

  /// The first ten revisions with bodies before a generation.
  fileprivate func possibleAncestors(before generation: UInt64) -> [String] {
    var ancestors: [String] = []
    for node in nodes.indices
    where nodes[node].generation < generation && nodes[node].flags.contains(.hasBody) {
      ancestors.append(revisionID(of: node).description)
      if ancestors.count == 10 { break }
    }
    return ancestors
  }

  /// The index of a revision, nil if it isn't in the tree or isn't a revision ID.
  fileprivate func index(of revision: String) -> Int? {
    var revision = revision
    return revision.withUTF8 { utf8 in
      guard let (generation, suffix) = RevisionID.parse(UnsafeRawBufferPointer(utf8)) else { return nil }
      var packed = ByteBuffer(capacity: 64)
      let isText = packed.append(suffix: suffix)
      return index(
        of: StoredRevisionID(
          generation: generation, suffix: StoredSuffix(bytes: packed.bytes, isText: isText)))
    }
  }

  /// What a node is to the current revision.
  fileprivate func relation(_ index: Int) -> SyncKnowledge.Relation {
    if index == 0 { return .current }
    var next = Int(nodes[0].parent)
    while next >= 0 {
      if next == index { return .ancestor }
      next = Int(nodes[next].parent)
    }
    return .aside
  }
}
