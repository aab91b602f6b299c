import Blobs
import Datasets
import Storage
import Touchstone

/// `touchstone export`: exports all documents as JSON lines, or as a Couchbase Lite 2.x database.
struct ExportCommand: Subcommand {
  private static let file = Positional(
    "FILE", "The output; gzip if the name ends with .gz; - or nothing for standard output", count: .optional
  )
  private static let metadata = Flag(
    "metadata", "Adds _rev, _sequence and _deleted, and exports tombstones too")
  private static let format = Option<Format>(
    "format", "FORMAT", "jsonl, csv, or cblite2 for a Couchbase Lite 2.x database (from the name of FILE)",
    refusal: "isn't jsonl, csv or cblite2"
  ).choosing(["jsonl", "csv", "cblite2"])
  private static let attachments = Option<Attachments>(
    "attachments", "WHERE",
    "directory: blobs are files in a directory (the default). inline: they are in the lines, in base64",
    refusal: "is neither directory nor inline"
  ).choosing(["directory", "inline"])

  private enum Format: String {
    case jsonl, csv, cblite2
  }

  private enum Attachments: String {
    case directory, inline
  }

  static let usage = Usage(
    "export", "Writes all documents as JSON lines or CSV, by ID, or as a .cblite2 database",
    positionals: [DatabaseArguments.database, file],
    options: [metadata, format, attachments, ExportedBlobs.option, DatabaseArguments.json]
      + DatabaseArguments.readingOptions,
    examples: [
      "touchstone export travel travel.jsonl.gz", "touchstone export travel --metadata | wc -l",
      "touchstone export travel travel.csv",
      "touchstone export travel --attachments inline | touchstone import other -",
      "touchstone export travel travel.cblite2 --format cblite2",
    ],
    notes: """
      One line per document: a JSON object with _id first. The command import reads these lines. The file appears
      when it is complete. A file that it replaces keeps its owner and permissions, and a link keeps leading to it.
      Blobs and attachments of the documents are written as files into a directory: FILE.blobs, or --blobs. For
      standard output, a pipe or a device, blobs are left out unless --blobs is given. With --attachments inline, they
      are in the lines, and import takes them from there. Blobs that documents name and that DB lacks are named, and the
      status is 1, unless blobs are left out. The lines are written.

      CSV has a header with the names of all properties, those that most documents have first. A missing property is
      an empty field, an empty string is "", and numbers, booleans, null, arrays and objects are written as JSON. Text
      that would read as one of these is in quotes. Blobs are left out.

      A .cblite2 database contains whole revision trees, tombstones, expirations, local documents and blobs. It has
      no indexes and isn't encrypted. Revision IDs that the format doesn't allow (3-foo) are replaced and reported.
      --json prints the report as JSON. The status is 1 if documents or blobs are missing.
      """)

  private let database: DatabaseArguments
  private let file: String
  private let withMetadata: Bool
  private let format: Format
  private let asJSON: Bool
  private let blobs: String?
  private let isInline: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    file = arguments.optional(Self.file) ?? "-"
    withMetadata = arguments[Self.metadata]
    asJSON = arguments[DatabaseArguments.json]
    blobs = try arguments.value(ExportedBlobs.option)
    let isNamed = file.hasSuffix(".cblite2") || file.hasSuffix(".cblite2/")
    format =
      try arguments.value(Self.format)
      ?? (isNamed ? .cblite2 : DatasetLookup.Format.of(file) == .csv ? .csv : .jsonl)
    isInline = try arguments.value(Self.attachments) == .inline
    guard !isInline || (format == .jsonl && blobs == nil) else {
      throw UsageError(
        format == .jsonl
          ? "--blobs and --attachments inline exclude each other" : "--attachments works only with JSON lines"
      )
    }
    if format == .csv {
      guard !withMetadata, blobs == nil else {
        throw UsageError("--metadata and --blobs work only with JSON lines, not with CSV")
      }
    }
    guard format == .cblite2 else { return }
    guard file != "-" else {
      throw UsageError(
        "a .cblite2 database is a directory and can't be written to standard output; give its path as FILE")
    }
    guard blobs == nil else {
      throw UsageError("--blobs works only with JSON lines; a .cblite2 database contains its blobs")
    }
    guard !withMetadata else {
      throw UsageError("--metadata works only with JSON lines; a .cblite2 database contains all metadata")
    }
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
    if format == .cblite2 {
      let report = try exportCBLite2(database, output)
      try database.close()
      guard report.details.isEmpty else {
        throw Refusal("not everything could be exported: what is missing is listed")
      }
      return
    }
    var missing = MissingBlobs()
    guard file != "-" else {
      _ = try write(database, to: ByteWriter(path: "-"), isStraight: true, &missing)
      return try end(database, missing)
    }
    let target: FileReplacement
    do { target = try FileReplacement(file, permissions: 0o644) } catch let error as StorageError {
      throw UsageError("\(error)")
    }
    let count = try write(
      database,
      to: ByteWriter(
        descriptor: target.descriptor, name: file,
        compression: file.hasSuffix(".gz") ? .gzip() : ByteWriter.Compression.none),
      isStraight: target.isStraight, &missing)
    try target.commit()
    try output.line(asJSON ? "{\"documents\":\(count)}" : "\(TextTable.grouped(count)) documents")
    try end(database, missing)
  }

  private func end(_ database: Database, _ missing: MissingBlobs) throws {
    let outcome = Result { try missing.checkIsComplete("the documents were exported", database) }
    try database.close()
    try outcome.get()
  }

  private func exportCBLite2(
    _ database: Database, _ output: StandardOutput
  ) throws -> CBLite2ExportReport {
    var progress = Progress("export", unit: "documents")
    defer { progress.end() }
    let report = try database.exportCBLite2(to: file) { count in
      guard !Interrupt.isRequested else { throw Interrupted("nothing was written") }
      progress.update(count)
    }
    progress.end()
    try output.lines(asJSON ? [report.json] : report.lines)
    return report
  }

  /// Writes the documents, and returns their number.
  private func write(
    _ database: Database, to writer: ByteWriter, isStraight: Bool, _ missing: inout MissingBlobs
  ) throws -> Int {
    var progress = Progress("export", unit: "documents")
    defer { progress.end() }
    var count = 0
    var line: [UInt8] = []
    if format == .csv {
      try database.read { snapshot in
        let export = try CSVExport(snapshot, to: writer) { Interrupt.isRequested }
        try snapshot.forEachDocument(order: .ascending) { document in
          guard !Interrupt.isRequested else { throw Interrupted("the export is incomplete") }
          try export.write(document, &line)
          count += 1
          if count & 0xFF == 0 { progress.update(count) }
          return true
        }
      }
      try writer.finish()
      return count
    }
    let directory = isInline ? nil : blobs ?? (isStraight ? nil : ExportedBlobs.directory(beside: file))
    var exported = try directory.map { try ExportedBlobs($0, isReadOnly: false) }
    var leftOut = 0
    var isComplete = false
    defer { if isComplete { exported?.finish() } else { exported?.discard() } }

    func add(_ document: DocumentView) throws -> Bool {
      guard !Interrupt.isRequested else { throw Interrupted("the export is incomplete") }
      line.removeAll(keepingCapacity: true)
      line += Array("{\"_id\":\(document.id.jsonText)".utf8)
      if withMetadata {
        line += Array(",\"_rev\":\"\(try document.revisionID())\",\"_sequence\":\(document.sequence)".utf8)
        if document.isDeleted { line += Array(",\"_deleted\":true".utf8) }
      }
      let brace = line.count
      try document.writeJSON(into: &line)
      // Replaces the body's opening brace: a comma follows the metadata, unless the body is empty.
      if line.count == brace + 2 { line.remove(at: brace) } else { line[brace] = UInt8(ascii: ",") }
      var lost: Set<BlobDigest> = []
      if isInline {
        line = try InlineBlobs.adding(to: line, from: database, missing: &lost)
      } else if let found = try exported?.export(namedIn: line, from: database) {
        lost = found
      } else {
        leftOut += try ExportedBlobs.count(namedIn: line, of: database)
      }
      line.withUnsafeBytes { missing.add(lost, namedIn: $0, of: document.id) }
      try line.withUnsafeBytes { try writer.writeLine($0) }
      count += 1
      if count & 0xFF == 0 { progress.update(count) }
      return true
    }
    try database.holdingBlobs {
      try database.read { snapshot in
        try snapshot.forEachDocument(order: .ascending, add)
        if withMetadata { try snapshot.forEachTombstone(add) }
      }
    }
    try writer.finish()
    isComplete = true
    progress.end()
    if leftOut > 0 {
      StandardError.line(
        "touchstone export: blobs were left out, so another database can't import these lines;"
          + " use --blobs DIR, --attachments inline, or give a FILE")
    }
    return count
  }
}
