import Blobs
import Bytes
import Fleece
import Storage

/// A document of a snapshot with its whole revision tree, in place. It can't escape the closure that receives
/// it.
package struct DocumentTree: ~Escapable {
  /// The ID's UTF-8.
  package let idBytes: RawSpan
  /// The sequence of the document's latest change.
  package let sequence: UInt64
  /// The revisions with the bodies that are stored: the current revision first, then the other leaves, then
  /// their ancestors by generation. The pointers are valid only inside the closure, which the compiler
  /// doesn't check.
  package let revisions: UnsafeBufferPointer<ForeignRevision>
  /// The expiration time in milliseconds since 1970, or nil.
  package let expiration: Int64?

  @_lifetime(copy idBytes)
  init(
    idBytes: RawSpan, sequence: UInt64, revisions: UnsafeBufferPointer<ForeignRevision>, expiration: Int64?
  ) {
    self.idBytes = idBytes
    self.sequence = sequence
    self.revisions = revisions
    self.expiration = expiration
  }

  /// The document's ID.
  package var id: String { String(copying: idBytes) }
}

extension DocumentSnapshot {
  /// Calls `body` with the whole tree of each document, then of each tombstone, ordered by ID, until it
  /// returns false.
  package func forEachTree(_ body: (DocumentTree) throws -> Bool) throws {
    let (transaction, context) = try open()
    let keyspaces = context.keyspaces
    let tree = RevisionTree()
    var bodies = ByteBuffer()
    var ranges: [Range<Int>] = []
    var revisions: [ForeignRevision] = []
    let hasExpirations = try transaction.hasEntries(keyspaces.expirations)
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    var goesOn = true
    for keyspace in [keyspaces.docs, keyspaces.deleted] where goesOn {
      try transaction.scan(keyspace, .all, order: .ascending, fetch: .entries) { key, value in
        let record = try DocumentRecord(value)
        do {
          try tree.decode(record.tree)
          if let history = record.history {
            try key.withUnsafeBytes { try tree.addHistory(of: $0, history, transaction) }
          }
        } catch let error as DocumentError {
          throw DocumentError(error.code, error.message, documentID: String(copying: key))
        }
        bodies.removeAll()
        ranges.removeAll(keepingCapacity: true)
        revisions.removeAll(keepingCapacity: true)
        for (index, node) in tree.nodes.enumerated() {
          let start = bodies.count
          if index > 0, node.flags.contains(.hasBody) {
            try withSequenceKey(node.sequence) { key in
              let keyspace = node.isLeaf ? keyspaces.conflicts : keyspaces.bodies
              _ = try transaction.read(key.bytes, in: keyspace) { bodies.append(try BodyRecord($0).body) }
            }
          }
          ranges.append(start..<bodies.count)
        }
        for (index, node) in tree.nodes.enumerated() {
          let suffix = tree.suffix(of: node)
          var revisionBody = ForeignRevision.Body.none
          if index == 0 {
            // The bytes are valid for this closure, and they are used only inside it.
            revisionBody = .fleece(record.body.withUnsafeBytes { $0 })
          } else if !ranges[index].isEmpty {
            revisionBody = .fleece(UnsafeRawBufferPointer(rebasing: bodies.bytes[ranges[index]]))
          }
          revisions.append(
            ForeignRevision(
              generation: node.generation, suffix: suffix.bytes, isText: suffix.isText,
              parent: Int(node.parent), isDeleted: node.isDeleted, isClosed: node.flags.contains(.closed),
              sequence: node.sequence, body: revisionBody))
        }
        let expiration = hasExpirations ? try self.expiration(ofBytes: key) : nil
        let sequence = record.sequence
        goesOn = try revisions.withUnsafeBufferPointer {
          try body(DocumentTree(idBytes: key, sequence: sequence, revisions: $0, expiration: expiration))
        }
        return goesOn
      }
    }
  }
}

extension DocumentSnapshot {
  /// Returns the digests of the blobs that a stored body refers to, each once.
  package static func blobs(namedIn body: UnsafeRawBufferPointer, sharedKeys: SharedKeys) throws
    -> [BlobDigest]
  {
    guard mayNameBlob(body), let root = FleeceReader.root(of: body) else { return [] }
    var digests: [BlobDigest] = []
    try forEachBlobReference(in: root, sharedKeys: sharedKeys) { reference in
      if let digest = reference.digest, !digests.contains(digest) { digests.append(digest) }
    }
    return digests
  }
}
