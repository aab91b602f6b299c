// The output is a database of release 2.0 or 2.1. Every later release opens it (docs/cblite2.md):
//
//   user_version 201
//   kvmeta       name, lastSeq: of the stores default and info
//   kv_default   key: document ID, sequence, flags (1 deleted, 2 conflicted, 4 has blobs), version: binary ID of the
//                current revision, body: revision tree (RawRevisionTree.swift); and, when a document expires, a column
//                expiration as 2.5 adds it: milliseconds since 1970
//   kv_info      versioning: 8 bytes 0; publicUUID, privateUUID: 16 bytes each; SharedKeys: Fleece array of strings;
//                maxRevTreeDepth: 8 bytes, big-endian, unless it is 20
//   kv__local    local documents: key, version: N-local, body: JSON

import Blobs
import CSQLite
import Documents
import Fleece
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Writes a snapshot of a store as a Couchbase Lite 2.x database: documents with whole revision trees,
/// tombstones, expirations, local documents and blobs.
///
/// Indexes are left out: applications make their own. One thread at a time.
package final class CBLite2Exporter {
  private let store: DocumentStore
  private let directory: String
  private var report = CBLite2ExportReport()
  private var tree = TreeWriter()
  private var isDone: Set<BlobDigest> = []
  private var hasExpirations = false

  /// Creates an exporter.
  ///
  /// - Parameters:
  ///   - store: the store to export.
  ///   - directory: the new database. It must not exist when `run` is called. The caller must sync it.
  package init(_ store: DocumentStore, to directory: String) {
    self.store = store
    self.directory = directory
  }

  /// Writes the database. When it returns, the database is complete.
  ///
  /// `progress` is called with the number of documents that are done. An error that it throws ends the
  /// export.
  /// - Throws: `CBLite2Error` with the code `alreadyExists` if the directory exists, and `ioError` if SQLite
  ///   can't write.
  package func run(progress: (Int) throws -> Void = { _ in }) throws -> CBLite2ExportReport {
    guard mkdir(directory, 0o755) == 0 else {
      guard errno == EEXIST else { throw StorageError.system(errno, "can't make the directory", directory) }
      throw CBLite2Error(
        .alreadyExists, "the new database can't be made: a file or directory with this name exists",
        path: directory)
    }
    let file = directory + "/" + CBLite2Source.fileName
    do {
      let connection = try Connection(
        file, library: try Library.load(Library.sqlitePath), flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
      )
      defer { connection.close() }
      try connection.execute(Self.schema)
      try store.read { snapshot in
        try writeDocuments(snapshot, connection, progress)
        try writeInfo(snapshot, connection)
      }
      try writeLocalDocuments(connection)
      report.indexes = try store.indexes.map(\.name)
      try connection.execute("COMMIT; PRAGMA journal_mode = WAL; PRAGMA wal_checkpoint(TRUNCATE)")
    } catch let error as SQLiteError {
      throw CBLite2Error(.ioError, "the new database can't be written (\(error.message))", path: file)
    }
    return report
  }

  private static let schema = """
    PRAGMA page_size = 4096;
    PRAGMA auto_vacuum = INCREMENTAL;
    PRAGMA journal_mode = OFF;
    PRAGMA synchronous = OFF;
    PRAGMA cache_size = -32768;
    BEGIN;
    CREATE TABLE kvmeta (name TEXT PRIMARY KEY, lastSeq INTEGER DEFAULT 0) WITHOUT ROWID;
    \(table("kv_default"))
    \(table("kv_info"))
    PRAGMA user_version = 201;
    """

  private static func table(_ name: String) -> String {
    "CREATE TABLE \(name) (  key TEXT PRIMARY KEY,  sequence INTEGER,  flags INTEGER DEFAULT 0,"
      + "  version BLOB,  body BLOB);"
  }

  // MARK: Documents

  private func writeDocuments(
    _ snapshot: DocumentSnapshot, _ connection: Connection, _ progress: (Int) throws -> Void
  ) throws {
    hasExpirations = try store.expirationCount > 0
    if hasExpirations {
      try connection.execute(
        """
        ALTER TABLE kv_default ADD COLUMN expiration INTEGER;
        CREATE INDEX "kv_default_expiration" ON "kv_default" (expiration) WHERE expiration not null;
        """)
    }
    let insert = try connection.prepare(
      "INSERT INTO kv_default (key, sequence, flags, version, body\(hasExpirations ? ", expiration" : "")) "
        + "VALUES (?, ?, ?, ?, ?\(hasExpirations ? ", ?" : ""))")
    defer { insert.finalize() }
    var count = 0
    // A fast check of the bytes finds bodies that may name blobs. The exact check then needs the property
    // names.
    let sharedKeys = try snapshot.sharedKeys
    try snapshot.forEachTree { document in
      count += 1
      if count & 0xFF == 0 { try progress(count) }
      guard document.idBytes.byteCount <= DocumentID.maximumBytes else {
        report.skipped += 1
        report.note(
          document.id,
          "its ID has \(document.idBytes.byteCount) bytes, but 2.x allows \(DocumentID.maximumBytes)")
        return true
      }
      try tree.encode(document) { body in
        guard mayNameBlob(body) else { return false }
        let digests = try DocumentSnapshot.blobs(namedIn: body, sharedKeys: sharedKeys)
        for digest in digests { try copyBlob(digest, of: document) }
        return !digests.isEmpty
      }
      try self.insert(document, insert)
      note(document)
      return true
    }
    try progress(count)
  }

  private func insert(_ document: DocumentTree, _ insert: Statement) throws {
    // The statement runs before this returns. It binds other bytes before it runs again.
    try document.idBytes.withUnsafeBytes { try self.insert(document, $0, insert) }
  }

  private func insert(_ document: DocumentTree, _ id: UnsafeRawBufferPointer, _ insert: Statement) throws {
    var flags = tree.isDeleted ? 1 : 0
    if tree.isConflicted { flags |= 2 }
    if tree.hasBlobs { flags |= 4 }
    try insert.bindStaticText(1, id)
    try insert.bind(2, Int(document.sequence))
    try insert.bind(3, flags)
    try tree.version.withUnsafeBytes { try insert.bind(4, $0) }
    try tree.bytes.withUnsafeBytes { try insert.bind(5, $0) }
    if let expiration = document.expiration {
      try insert.bind(6, Int(expiration))
      report.expirations += 1
    } else if hasExpirations {
      try insert.bindNull(6)
    }
    try insert.run()
  }

  private func note(_ document: DocumentTree) {
    if tree.isDeleted { report.tombstones += 1 } else { report.documents += 1 }
    if tree.isConflicted { report.conflicts += 1 }
    report.revisions += tree.count
    report.bodies += tree.bodies
    report.cutOffRevisions += document.revisions.count - tree.count
    for rewritten in tree.rewritten {
      report.rewrittenIDs += 1
      guard report.rewritten.count < CBLite2ExportReport.maximumDetails else { continue }
      report.rewritten.append(
        CBLite2ExportReport.Rewritten(
          id: document.id, revision: document.revisions[rewritten.source].id.description,
          written: rewritten.id))
    }
  }

  // MARK: Blobs

  private lazy var target = Result {
    try BlobStore(directory: directory + "/Attachments", durability: .none)
  }

  private func copyBlob(_ digest: BlobDigest, of document: DocumentTree) throws {
    guard let source = store.blobs, isDone.insert(digest).inserted else { return }
    let target = try target.get()
    do {
      let reader = try source.open(digest)
      let writer = try target.makeWriter()
      try writer.write(contentsOf: reader)
      let stored = try writer.finish()
      guard stored.digest == digest, try target.install(digest) == .installed else {
        throw StorageError(.damaged, "the blob has another digest", path: directory)
      }
      target.commit([digest])
      report.blobs += 1
      report.blobBytes += stored.length
    } catch let error as StorageError where error.code == .notFound || error.code == .damaged {
      report.missingBlobs += 1
      report.note(document.id, "its blob \(digest): \(error.message)")
    }
  }

  // MARK: Settings and local documents

  private func writeInfo(_ snapshot: DocumentSnapshot, _ connection: Connection) throws {
    let sharedKeys = try snapshot.sharedKeys
    var records: [(String, [UInt8])] = [
      ("versioning", [UInt8](repeating: 0, count: 8)), ("publicUUID", Self.randomUUID()),
      ("privateUUID", Self.randomUUID()),
    ]
    if sharedKeys.count > 0 { records.append(("SharedKeys", sharedKeys.encoded())) }
    let depth = UInt64(store.maximumTreeDepth)
    if depth != UInt64(DocumentStore.defaultTreeDepth) {
      records.append(("maxRevTreeDepth", (0..<8).map { UInt8(truncatingIfNeeded: depth >> (56 - 8 * $0)) }))
    }
    let insert = try connection.prepare(
      "INSERT INTO kv_info (key, sequence, flags, version, body) VALUES (?, ?, 0, NULL, ?)")
    defer { insert.finalize() }
    for (number, (key, body)) in records.enumerated() {
      try insert.bind(1, key)
      try insert.bind(2, number + 1)
      try insert.bind(3, body)
      try insert.run()
    }
    let last = try snapshot.lastSequence
    try connection.execute(
      "INSERT INTO kvmeta (name, lastSeq) VALUES ('default', \(last)), ('info', \(records.count))")
  }

  private func writeLocalDocuments(_ connection: Connection) throws {
    let names = try store.localDocumentIDs()
    guard !names.isEmpty else { return }
    try connection.execute(Self.table("kv__local"))
    let insert = try connection.prepare(
      "INSERT INTO kv__local (key, sequence, flags, version, body) VALUES (?, NULL, 0, ?, ?)")
    defer { insert.finalize() }
    for name in names {
      guard let document = try store.localDocument(name) else { continue }
      try insert.bind(1, name)
      try insert.bind(2, Array(document.revisionID.utf8))
      try insert.bind(3, Array(try document.body.canonicalJSON().utf8))
      try insert.run()
      report.localDocuments += 1
    }
  }

  /// A random UUID of version 4. The exported database is a peer of its own.
  private static func randomUUID() -> [UInt8] {
    var uuid = (0..<16).map { _ in UInt8.random(in: 0...255) }
    uuid[6] = uuid[6] & 0x0F | 0x40
    uuid[8] = uuid[8] & 0x3F | 0x80
    return uuid
  }
}
