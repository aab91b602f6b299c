import CBLite2
@_exported import struct CBLite2.CBLite2Error
@_exported import struct CBLite2.CBLite2ExportReport
@_exported import struct CBLite2.CBLite2ImportReport
import Documents
import Storage

#if canImport(Glibc)
  import Glibc
#endif

extension Database {
  /// Takes the documents of a Couchbase Lite 2.x or 3.x database over: bodies, whole revision trees, tombstones,
  /// expirations, local documents, blobs.
  ///
  /// ```swift
  /// let report = try travel.importCBLite2("travel-sample.cblite2")
  /// print(report.documents, report.skipped)
  /// ```
  ///
  /// The source is read only, and stays byte for byte as it is. Revision IDs are kept, and into a database without any
  /// change sequences too. A document that is here already gets the branches that it doesn't have. What can't be taken
  /// over is reported and the rest goes on (docs/cblite2.md).
  ///
  /// - Parameters:
  ///   - path: a directory `NAME.cblite2`, or a zip file that holds one.
  ///   - collection: of a 3.1 database, which: `scope.name`; nil for the default one.
  ///   - batchCount: documents a transaction.
  ///   - progress: is told how many rows were read; what it throws ends the import: the transactions before it stay.
  ///
  /// Throws a `CBLite2Error` for a source that can't be read: `encrypted`, `olderVersion`, `newerVersion`, `damaged`, `inUse`,
  /// …
  @discardableResult
  public func importCBLite2(
    _ path: String, collection: String? = nil, batchCount: Int = 1_000,
    progress: (Int) throws -> Void = { _ in }
  ) throws -> CBLite2ImportReport {
    let store = try writable
    let scratch = try PartialDirectory(beside: self.path)
    var source = path
    var status = stat()
    if stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG {
      source = scratch.path + "/unpacked.cblite2"
      try ZipArchive(path).unpackDatabase(to: source, .cblite2) { _, _ in try progress(0) }
    }
    return try CBLite2Importer(
      store, from: source, collection: collection, scratch: scratch.path, batchCount: batchCount
    ).run(progress: progress)
  }

  /// Writes a snapshot of the database as one of Couchbase Lite 2.x, which its later releases open as well: whole
  /// revision trees, tombstones, expirations, local documents, blobs; not encrypted, without indexes, under UUIDs of
  /// its own. It appears at `path` when it is whole and on the disk, or not at all.
  ///
  /// Revision IDs that 2.x can't hold (`3-foo`) are written as others, and reported. `progress` is told how many documents
  /// are done; what it throws ends the export. Throws `alreadyExists` when there is something at `path`.
  @discardableResult
  public func exportCBLite2(to path: String, progress: (Int) throws -> Void = { _ in }) throws
    -> CBLite2ExportReport
  {
    let store = try store
    var path = path
    while path.count > 1, path.hasSuffix("/") { path.removeLast() }
    var status = stat()
    guard lstat(path, &status) != 0 else {
      throw DatabaseError(.alreadyExists, "there is something already", path: path)
    }
    let partial = try PartialDirectory(beside: path)
    let unfinished = partial.path + "/new.cblite2"
    let report = try CBLite2Exporter(store, to: unfinished).run(progress: progress)
    try partial.publish(unfinished, as: path)
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
}
