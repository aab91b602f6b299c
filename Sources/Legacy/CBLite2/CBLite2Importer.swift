import Blobs
import CSQLite
import Documents
import Fleece
import SQLiteLibrary
import Storage

#if canImport(Glibc)
  import Glibc
#endif

/// Imports the documents of a Couchbase Lite 2.x or 3.x database into a store: bodies, whole revision trees
/// with their IDs, tombstones, expirations, local documents and blobs.
///
/// The source is only read. If nothing was ever stored in the store, documents keep their sequences.
/// Otherwise they are imported in their order and get new sequences. One thread at a time.
package final class CBLite2Importer {
  /// Called with the number of rows that are done. An error that it throws ends the import. Committed
  /// transactions stay.
  package typealias Progress = (Int) throws -> Void

  private let store: DocumentStore
  private let source: CBLite2Source
  private let collection: CBLite2Collection
  private let batchCount: Int
  private let inserter: DocumentInserter
  private let isFresh: Bool
  private var report = CBLite2ImportReport()
  private var tree = RawRevisionTree()
  private var triedBlobs: Set<BlobDigest> = []
  private let now: Int64
  /// A transaction ends after this many bytes.
  private static let batchBytes = 32 << 20

  /// Opens a database.
  ///
  /// - Parameters:
  ///   - store: the store that gets the documents.
  ///   - path: the directory of the database.
  ///   - collection: the name of a collection of a 3.1 database (`name` or `scope.name`). Nil means the default
  ///     one.
  ///   - scratch: a directory on a disk with room for a copy of the source's file. The copy is made if the file
  ///     has a write-ahead log or a journal.
  ///   - batchCount: the maximum number of documents in a transaction.
  /// - Throws: `CBLite2Error` if the database can't be read or doesn't have the collection.
  package init(
    _ store: DocumentStore, from path: String, collection: String? = nil, scratch: String,
    batchCount: Int = 1_000
  ) throws {
    self.store = store
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    source = try CBLite2Source(path, scratch: scratch)
    let wanted = CBLite2Collection(named: collection ?? "_default")
    guard source.tables.contains(wanted.table) else {
      let names = source.tables.compactMap { CBLite2Collection(table: $0)?.name }.sorted()
      throw CBLite2Error(
        .noSuchCollection,
        "there is no collection \(wanted.name); collections are: \((["_default"] + names).joined(separator: ", "))",
        path: path)
    }
    self.collection = wanted
    self.batchCount = max(1, batchCount)
    isFresh = try store.lastSequence == 0
    inserter = DocumentInserter(store, sharedKeys: source.sharedKeys, keepsSequences: isFresh)
    var time = timespec()
    clock_gettime(CLOCK_REALTIME, &time)
    now = Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// Imports the documents and returns a report. Throws a `CBLite2Error` if the source can't be read.
  package func run(progress: Progress = { _ in }) throws -> CBLite2ImportReport {
    do {
      try describe()
      try importDocuments(progress)
      try importLocalDocuments()
    } catch let error as SQLiteError {
      throw CBLite2Source.damaged(error, source.path)
    }
    return report
  }

  /// Reports everything in the source that isn't a document of the collection.
  private func describe() throws {
    report.version = source.version
    report.collection = collection.name
    if let damage = source.logDamage {
      report.note(
        "\(CBLite2Source.fileName)-wal", "the write-ahead log: \(damage.message), at byte \(damage.offset)")
    }
    var others = source.tables.compactMap { CBLite2Collection(table: $0) }.sorted { $0.name < $1.name }
    others.insert(.default, at: 0)
    for other in others where other != collection {
      let count = try source.rows(in: other.table) + source.rows(in: other.tombstoneTable)
      if count > 0 || other != .default {
        report.otherCollections.append(CBLite2ImportReport.Collection(name: other.name, documents: count))
      }
    }
    report.indexes = try source.indexNames()
    for table in ["kv_checkpoints", "kv_peerCheckpoints", "kv_peer\\Checkpoints"] {
      report.checkpoints += try source.rows(in: table)
    }
    if isFresh, let depth = try source.maximumTreeDepth(), depth > store.maximumTreeDepth {
      try store.setMaximumTreeDepth(depth)
    }
  }

  // MARK: Documents

  private func importDocuments(_ progress: Progress) throws {
    var tables = [collection.table]
    if source.tables.contains(collection.tombstoneTable) { tables.append(collection.tombstoneTable) }
    let rows = try tables.map { try DocumentRows(source, table: $0) }
    // By sequence over both tables. Indexes aren't used: a damaged one could lack a row.
    let order = try source.connection.prepare(
      tables.enumerated().map {
        "SELECT \($0) AS t, rowid AS r, sequence AS s FROM \(Connection.quoted($1)) NOT INDEXED"
      }.joined(separator: " UNION ALL ") + " ORDER BY 3, 1, 2")
    defer {
      order.finalize()
      for row in rows { row.close() }
    }
    var isAtEnd = false
    while !isAtEnd {
      try inserter.inBatch {
        var bytes = 0
        for _ in 0..<batchCount where bytes < CBLite2Importer.batchBytes {
          guard try order.step() else {
            isAtEnd = true
            if isFresh { try inserter.raiseLastSequence(to: try source.lastSequence(of: collection)) }
            return
          }
          bytes += try importRow(rows[order.integer(0)], rowID: order.integer(1))
        }
      }
      try progress(report.read)
    }
  }

  /// Imports a row. Returns the number of its bytes.
  private func importRow(_ rows: DocumentRows, rowID: Int) throws -> Int {
    report.read += 1
    guard try rows.go(to: rowID) else {
      skip("row \(rowID)", "it can't be found again")
      return 0
    }
    defer { rows.reset() }
    let bytes = (rows.body?.count ?? 0) + (rows.extra?.count ?? 0)
    do {
      try importRow(rows)
    } catch let fault as RawRevisionTree.Fault {
      skip(rows.idText, fault.description)
    } catch let error as DocumentError {
      switch error.code {
      case .invalidDocumentID, .invalidHistory, .invalidBody, .invalidRevisionID:
        skip(rows.idText, error.message)
      default: throw error
      }
    }
    return bytes
  }

  private func skip(_ id: String, _ reason: String) {
    report.skipped += 1
    report.note(id, reason)
  }

  private func importRow(_ row: DocumentRows) throws {
    guard let id = row.id else { throw RawRevisionTree.Fault("its ID isn't text") }
    try readTree(row)
    let expiration = try row.expiration()
    if let expiration, expiration <= now {
      report.expired += 1
      return
    }
    if tree.remotes > 0 || row.flags & 8 != 0 { report.remoteNotes += 1 }
    let outcome = try tree.revisions.withUnsafeBufferPointer {
      try inserter.insert(id, sequence: row.sequence, $0, expiration: expiration, findBlob: copyBlob)
    }
    for digest in outcome.missingBlobs {
      report.missingBlobs += 1
      report.note(row.idText, "its blob \(digest) is missing or doesn't match its digest")
    }
    if expiration != nil { report.expirations += 1 }
    report.revisions += outcome.revisions
    guard outcome.isNew else {
      if outcome.revisions > 0 { report.merged += 1 } else { report.unchanged += 1 }
      return
    }
    if tree.revisions[outcome.current].isDeleted { report.tombstones += 1 } else { report.documents += 1 }
    if tree.revisions.count == 1 {
      report.bodies += 1
    } else {
      for revision in tree.revisions where revision.body.isHere { report.bodies += 1 }
    }
    if outcome.isConflicted { report.conflicts += 1 }
    if outcome.current != 0 { report.otherWinners += 1 }
  }

  /// Reads the tree of a row into `tree`. A 3.x row has the tree beside the body. A 2.x row has the body in
  /// the tree. A 3.x file can have 2.x rows that weren't saved again.
  private func readTree(_ row: DocumentRows) throws(RawRevisionTree.Fault) {
    guard let version = row.version else { throw RawRevisionTree.Fault("it has no revision ID") }
    if let extra = row.extra, !extra.isEmpty {
      try tree.decode(extra)
      if let body = row.body, !body.isEmpty { tree.setCurrentBody(body) }
    } else if let body = row.body, RawRevisionTree.isTree(body) {
      try tree.decode(body)
    } else {
      try tree.setSingle(id: version, isDeleted: row.flags & 1 != 0)
      if let body = row.body, !body.isEmpty { tree.setCurrentBody(body) }
    }
    guard tree.isCurrent(version) else {
      throw RawRevisionTree.Fault("its revision ID differs from that in its revision tree")
    }
  }

  // MARK: Blobs

  /// Copies a blob that isn't stored here yet. Returns false if the source doesn't have it undamaged, or if
  /// it was tried before.
  private func copyBlob(_ digest: BlobDigest) throws -> Bool {
    guard let target = store.blobs, triedBlobs.insert(digest).inserted else { return false }
    let reader: BlobReader
    do { reader = try source.blobs.open(digest) } catch is StorageError { return false }
    let writer = try target.makeWriter()
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 18, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count: Int
      do { count = try reader.read(into: buffer) } catch is StorageError { return false }
      guard count > 0 else { break }
      try writer.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
    let stored = try writer.finish()
    guard stored.digest == digest else { return false }
    report.blobs += 1
    report.blobBytes += stored.length
    return true
  }

  // MARK: Local documents

  private func importLocalDocuments() throws {
    guard source.tables.contains("kv__local"), collection == .default else { return }
    let statement = try source.connection.prepare("SELECT key, version, body FROM kv__local NOT INDEXED")
    defer { statement.finalize() }
    try inserter.inBatch {
      while try statement.step() {
        let name = statement.string(0) ?? ""
        do {
          guard let body = try? JSONValue(json: statement.bytes(2)) else {
            throw RawRevisionTree.Fault("the local document isn't JSON")
          }
          let version = statement.string(1) ?? ""
          let generation = version.hasSuffix("-local") ? UInt64(version.dropLast(6)) : nil
          if try inserter.insertLocalDocument(name, generation: generation ?? 1, body) {
            report.localDocuments += 1
          }
        } catch let fault as RawRevisionTree.Fault {
          report.note("_local/\(name)", fault.description)
        } catch let error as DocumentError
          where error.code == .invalidDocumentID || error.code == .invalidBody
        {
          report.note("_local/\(name)", error.message)
        }
      }
    }
  }
}
