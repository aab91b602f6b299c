import Bytes
import Fleece
import Storage

// Requests to purge, as clients of CouchDB make them, are kept in the keyspace `sync`: the number of a request, from 1, gives the
// document and the revisions, whether or not these were there.
//
//   "g" number:u64 big-endian → version:u8=1 {"id":…,"revs":[…]}
//
// `meta/purgeLimit` is how many are kept, as a u64 in big-endian order, if it was set.

/// A request to purge leaves of a document.
package struct PurgeRequest: Sendable, Equatable {
  /// The document's ID. It may be one that no document can have.
  package var id: String
  /// The revisions that are purged with their branches, as far as they are leaves.
  package var revisions: [String]

  /// Creates a request. See the properties.
  package init(id: String, revisions: [String]) {
    self.id = id
    self.revisions = revisions
  }

  /// The requests that a database keeps unless another number was set. Older ones are removed.
  package static let standardLimit: UInt64 = 1_000
  /// The most requests that a database may be set to keep.
  package static let greatestLimit: UInt64 = 1_000_000

  fileprivate static func key(_ number: UInt64) -> [UInt8] {
    withUnsafeBytes(of: number.bigEndian) { [SyncRecords.Kind.purgeRequest.rawValue] + $0 }
  }

  fileprivate static var keys: KeyRange { .prefix([SyncRecords.Kind.purgeRequest.rawValue]) }

  fileprivate static func newest(_ transaction: any ReadTransaction, _ keyspace: Keyspace) throws -> UInt64 {
    var newest: UInt64 = 0
    try transaction.scan(keyspace, keys, order: .descending, fetch: .keys) { key, _ in
      var reader = ByteReader(key.extracting(droppingFirst: 1))
      newest = reader.bigEndian() ?? 0
      return false
    }
    return newest
  }

  /// Removes the oldest ones, so that those up to `newest` are at most `limit`.
  fileprivate static func trim(
    upTo newest: UInt64, limit: UInt64, _ transaction: any WriteTransaction, _ keyspace: Keyspace
  ) throws {
    guard newest > limit else { return }
    var old: [UInt64] = []
    try transaction.scan(keyspace, keys, order: .ascending, fetch: .keys) { key, _ in
      var reader = ByteReader(key.extracting(droppingFirst: 1))
      guard let number: UInt64 = reader.bigEndian(), number <= newest - limit else { return false }
      old.append(number)
      return true
    }
    for number in old { _ = try transaction.delete(key(number).span.bytes, in: keyspace) }
  }

  fileprivate var json: [UInt8] {
    get throws {
      let value: JSONValue = ["id": .string(id), "revs": .array(revisions.map { .string($0) })]
      return try value.jsonText()
    }
  }

  fileprivate init(_ record: RawSpan) throws {
    let value = try? SyncRecords.content(of: record).withUnsafeBytes { try JSONValue(json: $0) }
    guard let id = value?["id"].string, let revisions = value?["revs"].array else {
      throw SyncRecords.damaged
    }
    self.init(id: id, revisions: revisions.compactMap(\.string))
  }
}

extension DocumentStore {
  /// Purges branches in one transaction, and keeps the requests. Returns the revisions of each request that were leaves and are
  /// purged now. What isn't there is left out.
  package func purge(_ requests: [PurgeRequest]) throws -> [[String]] {
    try writing { writer in
      try writer.checkWritable()
      let transaction = try writer.transaction
      let purged = try requests.map { request in
        try request.revisions.filter { try Self.purge(request.id, $0, writer) }
      }
      try writer.mutating {
        let keyspace =
          try transaction.keyspace(named: SyncRecords.keyspace)
          ?? transaction.createKeyspace(SyncRecords.keyspace, shape: .entries)
        var number = try PurgeRequest.newest(transaction, keyspace)
        for request in requests {
          number += 1
          try transaction.put(
            PurgeRequest.key(number), [SyncRecords.version] + request.json, in: keyspace)
        }
        let limit = try Self.purgeRequestsLimit(transaction, writer.keyspaces.meta)
        try PurgeRequest.trim(upTo: number, limit: limit, transaction, keyspace)
      }
      return purged
    }
  }

  private static let purgeLimitKey = Array("purgeLimit".utf8)

  /// How many requests to purge are kept.
  package func purgeRequestsLimit() throws -> UInt64 {
    try reading { transaction, context in
      try Self.purgeRequestsLimit(transaction, context.keyspaces.meta)
    }
  }

  private static func purgeRequestsLimit(_ transaction: any ReadTransaction, _ meta: Keyspace) throws
    -> UInt64
  {
    guard let bytes = try transaction.bytes(purgeLimitKey, in: meta) else {
      return PurgeRequest.standardLimit
    }
    let limit = bytes.reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
    guard bytes.count == 8, limit > 0 else {
      throw DocumentError(.damaged, "the stored limit of requests to purge can't be read")
    }
    return limit
  }

  /// Sets how many requests to purge are kept, from 1 to `PurgeRequest.greatestLimit`. Older ones are removed at once. Throws `nestedWrite`
  /// inside a batch.
  package func setPurgeRequestsLimit(_ limit: UInt64) throws {
    guard !isInBatch else {
      throw StorageError(
        .nestedWrite, "the limit of requests to purge can't be changed inside a batch", path: engine.location)
    }
    let limit = min(max(limit, 1), PurgeRequest.greatestLimit)
    try writing { writer in
      try writer.checkWritable()
      let transaction = try writer.transaction
      try writer.mutating {
        let bytes = withUnsafeBytes(of: limit.bigEndian) { Array($0) }
        try transaction.put(Self.purgeLimitKey, bytes, in: writer.keyspaces.meta)
        if let keyspace = try transaction.keyspace(named: SyncRecords.keyspace) {
          let newest = try PurgeRequest.newest(transaction, keyspace)
          try PurgeRequest.trim(upTo: newest, limit: limit, transaction, keyspace)
        }
      }
    }
  }

  /// Purges one leaf. False if there is none.
  private static func purge(_ id: String, _ revision: String, _ writer: DocumentWriter) throws -> Bool {
    guard let leaf = RevisionID(revision) else { return false }
    do {
      return try DocumentID.withValidated(id, maximum: DocumentID.maximumStoredBytes) { key in
        try writer.joined { _ = try $0.purge(key, branch: leaf) }
        return true
      }
    } catch let error as DocumentError where error.code == .notFound || error.code == .invalidDocumentID {
      return false
    }
  }
}

extension DocumentSnapshot {
  /// The number of the last request to purge, 0 if there is none.
  package var lastPurgeRequest: UInt64 {
    get throws {
      let transaction = try open().0
      guard let keyspace = try transaction.keyspace(named: SyncRecords.keyspace) else { return 0 }
      return try PurgeRequest.newest(transaction, keyspace)
    }
  }

  /// The requests to purge that are kept, the oldest first.
  package var purgeRequests: [PurgeRequest] {
    get throws {
      let transaction = try open().0
      guard let keyspace = try transaction.keyspace(named: SyncRecords.keyspace) else { return [] }
      var requests: [PurgeRequest] = []
      try transaction.scan(keyspace, PurgeRequest.keys) { _, value in
        requests.append(try PurgeRequest(value))
        return true
      }
      return requests
    }
  }
}
