import Bytes
import Documents
import Fleece
import Storage

/// The indexes of `_find`, and what they were read from.
struct KnownMangoIndexes: Sendable {
  /// The design documents, ordered by ID.
  var designs: [(id: ByteString, revisionID: RevisionID)] = []
  var isPartitioned: Bool
  var indexes: [MangoIndex] = []

  /// Reads the revisions of the design documents, without the indexes.
  init(_ snapshot: DocumentSnapshot, isPartitioned: Bool) throws {
    self.isPartitioned = isPartitioned
    try snapshot.forEachDocument(in: .prefix(DocumentID.designPrefix), order: .ascending) { document in
      designs.append((ByteString([UInt8](copying: document.idBytes)), try document.revisionID()))
      return true
    }
  }

  func isSame(_ other: KnownMangoIndexes) -> Bool {
    isPartitioned == other.isPartitioned && designs.count == other.designs.count
      && zip(designs, other.designs).allSatisfy { $0.id == $1.id && $0.revisionID == $1.revisionID }
  }
}

extension ViewIndexes {
  /// The indexes of `_find`, with the list of all documents. Who knows whether the database has partitions says so: that saves a read.
  package func mangoIndexes(inPartitionedDatabase: Bool? = nil) throws -> [MangoIndex] {
    let isPartitioned = try inPartitionedDatabase ?? store.isPartitioned()
    return try store.read { snapshot in
      var now = try KnownMangoIndexes(snapshot, isPartitioned: isPartitioned)
      if let known = mangoIndexes.withLock({ $0 }), known.isSame(now) { return known.indexes }
      now.indexes = [try MangoIndex.allDocuments()]
      try snapshot.forEachDesign { name, body in
        now.indexes += MangoIndex.all(
          designID: DesignDocument.idPrefix + name, body, inPartitionedDatabase: isPartitioned)
      }
      let revisions = Dictionary(now.designs.map { ($0.id, $0.revisionID) }) { first, _ in first }
      for (place, index) in now.indexes.enumerated() {
        now.indexes[place].revisionID = index.designID.flatMap { revisions[ByteString($0)] }
      }
      let read = now
      mangoIndexes.withLock { $0 = read }
      return read.indexes
    }
  }

  /// How a query finds its documents. Throws CouchDB's errors if it can't; with `explains`, that is a plan, too.
  package func mangoPlan(
    _ query: MangoQuery, inPartitionedDatabase: Bool? = nil, explains: Bool
  ) throws -> MangoPlan {
    let isPartitioned = try inPartitionedDatabase ?? store.isPartitioned()
    return try MangoPlan(
      query, mangoIndexes(inPartitionedDatabase: isPartitioned), inPartitionedDatabase: isPartitioned,
      explains: explains)
  }

  /// Compiles the functions of a view's design document, if they aren't. Throws `notFound` if there is no such view.
  func compile(viewNamed name: String) throws { _ = try group(of: name) }

  /// Whether the design document of an index is the same in a snapshot as when the index was read.
  func hasDesign(_ index: MangoIndex, in snapshot: DocumentSnapshot) throws -> Bool {
    guard let id = index.designID else { return false }
    return try snapshot.hasDesign(id, at: index.revisionID)
  }
}

extension DocumentSnapshot {
  /// Whether a design document, whose whole ID is given, has that revision. A design document that isn't stored has none.
  func hasDesign(_ id: String, at revisionID: RevisionID?) throws -> Bool {
    guard let revisionID else { return false }
    return try withDocument(Array(id.utf8).span.bytes) { try $0.revisionID() == revisionID } ?? false
  }
}
