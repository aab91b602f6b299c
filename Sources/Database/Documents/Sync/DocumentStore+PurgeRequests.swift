import Bytes
import Fleece
import Storage

// Requests to purge, as clients of CouchDB make them, are kept in the keyspace `sync`: the number of a request, from 1, gives the
// document and the revisions, whether or not these were there.
//
//   "g" number:u64 big-endian → version:u8=1 {"id":…,"revs":[…]}

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

  /// The requests that a database keeps. Older ones are removed.
  package static let kept: UInt64 = 1_000

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
        let oldest = number < PurgeRequest.kept ? 1 : number - PurgeRequest.kept + 1
        for request in requests {
          number += 1
          try transaction.put(
            PurgeRequest.key(number), [SyncRecords.version] + request.json, in: keyspace)
        }
        let kept = number < PurgeRequest.kept ? 1 : number - PurgeRequest.kept + 1
        for number in oldest..<max(oldest, kept) {
          _ = try transaction.delete(PurgeRequest.key(number).span.bytes, in: keyspace)
        }
      }
      return purged
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
