import Blobs
import Bytes
import Fleece
import Storage

/// Finds the blobs that stored revisions name and that a store of blobs lacks, in an engine that isn't open as a database. The
/// documents may have any format. What can't be read is left to the check.
package final class LostBlobSearch {
  /// A place that names a lost blob.
  package struct Reference: Sendable {
    package let documentID: String
    package let digest: BlobDigest
    /// `/photos/3`, `/_attachments/a.png`.
    package let path: String
  }

  /// The lost blobs.
  package private(set) var digests: Set<BlobDigest> = []
  /// The number of documents that name them.
  package private(set) var documentCount = 0
  /// The first references, at most as many as the limit: live documents first, then tombstones, each by ID.
  package private(set) var references: [Reference] = []

  private let blobs: BlobStore
  private let limit: Int
  private var sharedKeys = SharedKeys.empty
  private let tree = RevisionTree()
  /// The names of all files of blobs. They are listed at the first reference: on a server, one question each would take long.
  private var names: Set<String>?
  private var isLost: [BlobDigest: Bool] = [:]
  /// What separately stored bodies name, by their sequence, until the document is found to which they belong.
  private var ofBodies: [UInt64: [(digest: BlobDigest, path: String)]] = [:]

  private init(_ blobs: BlobStore, limit: Int) {
    self.blobs = blobs
    self.limit = limit
  }

  /// Searches all stored revisions of `engine`.
  package static func run(in engine: any StorageEngine, _ blobs: BlobStore, limit: Int) throws
    -> LostBlobSearch
  {
    try engine.readRepeating { transaction in
      let search = LostBlobSearch(blobs, limit: limit)
      try search.run(transaction, engine.location)
      return search
    }
  }

  private func run(_ plain: any ReadTransaction, _ location: String) throws {
    guard let format = try DocumentStore.storedFormat(plain, in: location) else { return }
    let transaction: any ReadTransaction =
      format.checksums.map {
        ChecksummedReadTransaction(plain, $0, verifies: false)
      } ?? plain
    let keyspaces = try transaction.keyspaces()
    guard let meta = keyspaces["meta"] else { return }
    sharedKeys = try DocumentStore.loadSharedKeys(transaction, meta)
    // Every reference has a digest. The names of all properties are in the table, as long as it has room.
    guard sharedKeys.number(of: "digest") != nil || sharedKeys.count >= FleeceLimits.sharedKeys else {
      return
    }
    for name in ["bodies", "conflicts"] {
      guard let keyspace = keyspaces[name] else { continue }
      try transaction.scan(keyspace) { key, value in
        guard mayNameBlob(value), let sequence = StoredChange.sequence(of: key),
          let record = try? BodyRecord(value)
        else { return true }
        let lost = try lost(namedIn: record.body)
        if !lost.isEmpty { ofBodies[sequence] = lost }
        return true
      }
    }
    for name in ["docs", "deleted"] {
      guard let keyspace = keyspaces[name] else { continue }
      try transaction.scan(keyspace) { key, value in
        guard !ofBodies.isEmpty || mayNameBlob(value), let record = try? DocumentRecord(value) else {
          return true
        }
        var found = try lost(namedIn: record.body)
        if !ofBodies.isEmpty { found += takeBodies(of: key, record, transaction) }
        if !found.isEmpty { add(found, String(copying: key)) }
        return true
      }
    }
  }

  private func lost(namedIn body: RawSpan) throws -> [(digest: BlobDigest, path: String)] {
    guard mayNameBlob(body), let root = Value(rootOf: body), root.type == .dict else { return [] }
    var lost: [(digest: BlobDigest, path: String)] = []
    try forEachBlobReference(in: root, sharedKeys: sharedKeys) { reference in
      if let digest = reference.digest, try isLost(digest) { lost.append((digest, reference.path)) }
    }
    return lost
  }

  private func isLost(_ digest: BlobDigest) throws -> Bool {
    if let known = isLost[digest] { return known }
    let names = try self.names ?? Set(blobs.names())
    self.names = names
    let isLost = try !names.contains(blobs.fileName(of: digest))
    self.isLost[digest] = isLost
    return isLost
  }

  /// Returns what the separately stored bodies of a document name.
  private func takeBodies(
    of id: RawSpan, _ record: borrowing DocumentRecord, _ transaction: any ReadTransaction
  ) -> [(digest: BlobDigest, path: String)] {
    do {
      try tree.decode(record.tree)
      if let history = record.history {
        try id.withUnsafeBytes { try tree.addHistory(of: $0, history, transaction, includingPruned: true) }
      }
    } catch {
      return []
    }
    return tree.nodes.dropFirst().filter { $0.flags.contains(.hasBody) }
      .flatMap { ofBodies.removeValue(forKey: $0.sequence) ?? [] }
  }

  private func add(_ found: [(digest: BlobDigest, path: String)], _ id: String) {
    documentCount += 1
    var added: Set<BlobDigest> = []
    for (digest, path) in found where added.insert(digest).inserted {
      digests.insert(digest)
      if references.count < limit {
        references.append(Reference(documentID: id, digest: digest, path: path))
      }
    }
  }
}
