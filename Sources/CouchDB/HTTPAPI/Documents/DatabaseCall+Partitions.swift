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
    try checkPartition(String(parts[0]) ?? "", "illegal_partition")
    // What follows the partition is an ID too.
    try IncomingID.check(String(parts[1]) ?? "")
  }

  /// Throws 400 for a name that no partition has.
  static func checkPartition(_ name: String, _ error: String) throws {
    guard !name.isEmpty else { throw CouchDBError(400, error, "Partition must not be empty") }
    guard name.utf8.first != UInt8(ascii: "_") else {
      throw CouchDBError(400, error, "Partition must not start with an underscore")
    }
    guard !name.utf8.contains(UInt8(ascii: ":")) else {
      throw CouchDBError(400, error, "Partition must not contain a colon")
    }
  }

  /// The same request for one partition, which the path names. Throws 400 if the database has none, or if the query names another one.
  func inPartition(_ name: String) throws -> DatabaseCall {
    guard try isPartitioned() else {
      throw CouchDBError(400, "bad_request", "database is not partitioned")
    }
    try Self.checkPartition(name, "illegal_partition")
    guard query["partition"]?.hasSameBytes(as: name) ?? true else {
      throw CouchDBError(400, "bad_request", "Conflicting value for `partition` in query string")
    }
    var call = self
    call.partition = name
    return call
  }

  /// The same request for the partition that the query names, if it names one.
  private func inAskedPartition() throws -> DatabaseCall {
    guard partition == nil, let asked = query["partition"] else { return self }
    try Self.checkPartition(asked, "illegal_partition")
    var call = self
    call.partition = asked
    return call
  }

  /// The same request for a list of documents, of the partition that the query names. Throws 400 if the database has none.
  func inPartitionOfList() throws -> DatabaseCall {
    let call = try inAskedPartition()
    guard try call.partition == nil || isPartitioned() else {
      throw CouchDBError(400, "query_parse_error", "`partition` parameter is not supported on this db")
    }
    return call
  }

  /// The same request for a view, of the partition that the query names. Throws 400 if it names none and the views of the design document
  /// are for one partition, or the other way round. In a partitioned database they are, unless the design document says otherwise.
  func inPartitionOfView(_ design: String) throws -> DatabaseCall {
    let call = try inAskedPartition()
    guard try isPartitioned() else {
      guard call.partition == nil else { throw Self.isGlobal }
      return call
    }
    guard let body = try database.document(IncomingID.designPrefix + design)?.value().object else {
      return call
    }
    let isForPartitions = body["options"]?.object?["partitioned"]?.bool ?? true
    if isForPartitions, call.partition == nil {
      throw CouchDBError(
        400, "query_parse_error", "`partition` parameter is mandatory for queries to this view.")
    }
    if !isForPartitions, call.partition != nil { throw Self.isGlobal }
    return call
  }

  private static let isGlobal = CouchDBError(
    400, "query_parse_error", "`partition` parameter is not supported in this design doc")

  /// The answer to paths below `_partition` that mean nothing.
  func noPartitionAnswer() throws -> HTTPAnswer {
    guard let name = segment(1) else { throw CouchDBError(400, "bad_request", "invalid_partition_req") }
    _ = try inPartition(name)
    throw CouchDBError.missing
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
