import Documents
import Fleece
import HTTP
import Storage
import Touchstone
import Views

// Partitioned databases, as CouchDB's: the ID of each document but design documents is PARTITION:NAME. Here it is a rule for IDs alone: a
// partition is the range of IDs with one beginning, and nothing is stored in another way.

extension DatabaseCall {
  /// Whether the IDs of documents name partitions. That never changes in a database with documents.
  func isPartitioned() throws -> Bool {
    try service.watches.watch(database).isPartitioned(database)
  }

  /// Throws 400 if no document can be saved under that ID here.
  func checkID(_ id: String) throws {
    try IncomingID.check(id)
    if try isPartitioned() { try Self.checkPartitioned(id) }
  }

  /// Throws 400 unless the ID can be that of a document in a partitioned database.
  static func checkPartitioned(_ id: String) throws {
    if IncomingID.isDesign(id) || IncomingID.isLocal(id) { return }
    let parts = id.utf8.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2 else {
      throw CouchDBError(400, "illegal_docid", "Doc id must be of form partition:id")
    }
    guard !parts[0].isEmpty, !parts[1].isEmpty else {
      throw CouchDBError(400, "illegal_docid", "Partition and document id must not be empty")
    }
    try checkPartition(String(parts[0]) ?? "", "illegal_docid")
  }

  private static func checkPartition(_ name: String, _ error: String) throws {
    guard !name.isEmpty else { throw CouchDBError(400, error, "Partition must not be empty") }
    guard name.utf8.first != UInt8(ascii: "_") else {
      throw CouchDBError(400, error, "Partition must not start with an underscore")
    }
    guard !name.utf8.contains(UInt8(ascii: ":")) else {
      throw CouchDBError(400, error, "Partition must not contain a colon")
    }
  }

  /// The same request for one partition. Throws 400 if the database has none.
  func inPartition(_ name: String) throws -> DatabaseCall {
    guard try isPartitioned() else {
      throw CouchDBError(400, "bad_request", "database is not partitioned")
    }
    try Self.checkPartition(name, "illegal_partition")
    var call = self
    call.partition = name
    return call
  }

  /// The answer to `_partition/{partition}`: what is in it.
  func partitionAnswer() throws -> HTTPAnswer {
    guard let partition, let documentPrefix else { throw CouchDBError.missing }
    let range = KeyRange.prefix(documentPrefix)
    var (live, deleted, bytes) = (0, 0, 0)
    try database.read { snapshot in
      (live, deleted, bytes) = (0, 0, 0)
      try snapshot.forEachRecord(in: range, order: .ascending) { _, record in
        live += 1
        bytes += record.byteCount
        return true
      }
      try snapshot.enumerate(AllDocuments(.includingDeleted, prefix: partition + ":")) { document in
        if document.isDeleted { deleted += 1 }
        return true
      }
    }
    return try .json([
      "db_name": .string(name), "partition": .string(partition), "doc_count": JSONValue(live),
      "doc_del_count": JSONValue(deleted),
      "sizes": ["active": JSONValue(bytes), "external": JSONValue(bytes)],
    ])
  }
}
