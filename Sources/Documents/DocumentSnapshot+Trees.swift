import Blobs
import Fleece
import Storage

/// A document of a snapshot with its whole tree, where it lies: valid inside the closure it is handed to.
public struct DocumentTree {
  /// The ID's UTF-8.
  public let idBytes: UnsafeRawBufferPointer
  /// The sequence of the document's latest change.
  public let sequence: UInt64
  /// The current revision first, then other leaves, then their ancestors by generation; with the bodies that are here.
  public let revisions: UnsafeBufferPointer<ForeignRevision>
  /// When it expires, in milliseconds since 1970.
  public let expiration: Int64?

  /// The document's ID.
  public var id: String { String(decoding: idBytes, as: UTF8.self) }
}

extension DocumentSnapshot {
  /// Calls `body` with each document, then with each tombstone, by ID, until it returns false: all that is stored of
  /// them. Inside, nothing else may be read from the snapshot.
  public func forEachTree(_ body: (DocumentTree) throws -> Bool) throws {
    let (transaction, context) = try open()
    let keyspaces = context.keyspaces
    let tree = RevisionTree()
    var bodies = ByteBuffer()
    var ranges: [Range<Int>] = []
    var revisions: [ForeignRevision] = []
    let hasExpirations = try transaction.count(of: keyspaces.expirations) > 0
    if isOfBatch { store.writer.beginScan() }
    defer { if isOfBatch { store.writer.endScan() } }
    var goesOn = true
    for keyspace in [keyspaces.docs, keyspaces.deleted] where goesOn {
      try transaction.unsafeScan(keyspace, .all, order: .ascending, fetch: .entries) { key, value in
        let record = try DocumentRecord(value)
        do {
          try tree.decode(record.tree)
          if let history = record.history { try tree.addHistory(of: key, history, transaction) }
        } catch let error as DocumentError {
          throw DocumentError(
            error.code, error.message, documentID: String(decoding: key, as: UTF8.self))
        }
        bodies.removeAll()
        ranges.removeAll(keepingCapacity: true)
        revisions.removeAll(keepingCapacity: true)
        for (index, node) in tree.nodes.enumerated() {
          let start = bodies.count
          if index > 0, node.flags.contains(.hasBody) {
            try withSequenceKey(node.sequence) { key in
              let stored = try transaction.get(key, in: node.isLeaf ? keyspaces.conflicts : keyspaces.bodies)
              if let stored { bodies.append(try BodyRecord(stored).body) }
            }
          }
          ranges.append(start..<bodies.count)
        }
        for (index, node) in tree.nodes.enumerated() {
          let suffix = tree.suffix(of: node)
          var revisionBody = ForeignRevision.Body.none
          if index == 0 {
            revisionBody = .fleece(record.body)
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
        goesOn = try revisions.withUnsafeBufferPointer {
          try body(
            DocumentTree(
              idBytes: key, sequence: record.sequence, revisions: $0, expiration: expiration))
        }
        return goesOn
      }
    }
  }
}

extension DocumentSnapshot {
  /// The blobs that a stored body names, each once.
  public static func blobs(namedIn body: UnsafeRawBufferPointer, sharedKeys: SharedKeys) throws
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
