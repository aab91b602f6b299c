import CBLite2
import Documents
import Logs
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension Database {
  /// Imports the documents of a Couchbase Lite 2.x or 3.x database: bodies, whole revision trees, tombstones,
  /// expirations, local documents and blobs.
  ///
  /// ```swift
  /// let report = try travel.importCBLite2("travel-sample.cblite2")
  /// print(report.documents, report.skipped)
  /// ```
  ///
  /// The source is only read and doesn't change. Revision IDs are kept. Sequences are kept if this database
  /// has no changes yet. A document that exists here already gets the branches that it lacks. Data that can't
  /// be imported is reported, and the import continues (docs/cblite2.md).
  ///
  /// - Parameters:
  ///   - path: a directory `NAME.cblite2`, or a zip file that holds one.
  ///   - collection: the collection of a 3.1 database, as `scope.name`; nil for the default collection.
  ///   - batchCount: the number of documents per transaction.
  ///   - progress: receives the number of rows read. If it throws, the import ends. Earlier transactions are
  ///     kept.
  ///
  /// Throws a `CBLite2Error` if the source can't be read: `encrypted`, `olderVersion`, `newerVersion`,
  /// `damaged`, `inUse`, …
  @discardableResult
  public func importCBLite2(
    _ path: String, collection: String? = nil, batchCount: Int = 1_000,
    progress: (Int) throws -> Void = { _ in }
  ) throws -> CBLite2ImportReport {
    let store = try writable
    try StorageError.checkPath(path)
    let scratch = try PartialDirectory(beside: self.path)
    var source = path
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
      source = scratch.path + "/unpacked.cblite2"
      try ZipArchive(path).unpackDatabase(to: source, .cblite2) { _, _ in try progress(0) }
    }
    let report = try CBLite2Importer(
      store, from: source, collection: collection, scratch: scratch.path, batchCount: batchCount
    ).run(progress: progress)
    Log.write(
      report.skipped + report.missingBlobs > 0 ? .warning : .info, .upgrade, self.path,
      "imported \(report.documents) documents and \(report.tombstones) tombstones from \(path), without \(report.skipped) documents and \(report.missingBlobs) blobs"
    )
    return report
  }

  /// Writes a snapshot of this database as a Couchbase Lite 2.x database, which later releases open too. It
  /// has the whole revision trees, tombstones, expirations, local documents and blobs. It isn't encrypted,
  /// has no indexes, and has new UUIDs. It appears at `path` only when it is complete and synced to disk.
  ///
  /// Revision IDs that 2.x doesn't allow (`3-foo`) are replaced by others and reported. `progress` receives
  /// the number of documents written; if it throws, the export ends. Throws `alreadyExists` if there is
  /// something at `path`.
  @discardableResult
  public func exportCBLite2(to path: String, progress: (Int) throws -> Void = { _ in }) throws
    -> CBLite2ExportReport
  {
    let store = try store
    try StorageError.checkPath(path)
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    var status = stat()
    guard lstat(path, &status) != 0 else {
      throw DatabaseError(
        .alreadyExists, "the new database can't be made: a file or directory with this name exists",
        path: path)
    }
    let partial = try PartialDirectory(beside: path)
    let unfinished = partial.path + "/new.cblite2"
    let report = try holdingBlobs { try CBLite2Exporter(store, to: unfinished).run(progress: progress) }
    try partial.publish(unfinished, as: path)
    Log.write(.info, .upgrade, self.path, "exported to \(path)")
    return report
  }
}

extension ZipArchive.Contents {
  /// A Couchbase Lite 2.x database.
  static var cblite2: ZipArchive.Contents {
    ZipArchive.Contents(root: "db.sqlite3") { parts in
      switch parts.count {
      case 1: ["db.sqlite3", "db.sqlite3-wal"].contains(parts[0])
      case 2: parts[0] == "Attachments"
      default: false
      }
    }
  }

  /// A Couchbase Lite database of 1.2 or later: a `.cblite2` directory.
  static var couchbaseLite: ZipArchive.Contents {
    ZipArchive.Contents(root: "db.sqlite3") { parts in
      switch parts.count {
      case 1: ["db.sqlite3", "db.sqlite3-wal", "db.sqlite3-journal"].contains(parts[0])
      case 2: ["attachments", "Attachments"].contains(parts[0])
      default: false
      }
    }
  }
}
