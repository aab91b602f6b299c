import Datasets
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone export`: all documents as JSON lines, or as a Couchbase Lite 2.x database.
struct ExportCommand: Subcommand {
  private static let file = Positional(
    "FILE", "Where to; gzip when it ends with .gz; standard output when it is - or left out", count: .optional
  )
  private static let metadata = Flag(
    "metadata", "Adds _rev, _sequence and _deleted, and exports tombstones too")
  private static let format = Option<Format>(
    "format", "FORMAT", "jsonl, or cblite2: a database of Couchbase Lite 2.x (by FILE's name)"
  ) { text in
    guard let format = Format(rawValue: text) else { throw UsageError("--format is jsonl or cblite2") }
    return format
  }

  private enum Format: String {
    case jsonl
    case cblite2
  }

  static let usage = Usage(
    "export", "Writes all documents as JSON lines, by ID, or as a .cblite2 database",
    positionals: [DatabaseArguments.database, file],
    options: [metadata, format, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone export travel travel.jsonl.gz", "touchstone export travel --metadata | wc -l",
      "touchstone export travel travel.cblite2 --format cblite2",
    ],
    notes: """
      One object a document and line, _id first. What import takes back. A file appears when it is whole.

      A .cblite2 database has whole revision trees, tombstones, expirations, local documents and blobs, and neither
      indexes nor encryption. Revision IDs that it can't hold (3-foo) are rewritten and reported; --json prints that
      report.
      """)

  private let database: DatabaseArguments
  private let file: String
  private let withMetadata: Bool
  private let format: Format
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    file = arguments.optional(Self.file) ?? "-"
    withMetadata = arguments[Self.metadata]
    asJSON = arguments[DatabaseArguments.json]
    let isNamed = file.hasSuffix(".cblite2") || file.hasSuffix(".cblite2/")
    format = try arguments.value(Self.format) ?? (isNamed ? .cblite2 : .jsonl)
    guard format == .cblite2 else { return }
    guard file != "-" else { throw UsageError("a .cblite2 database is a directory: give its path") }
    guard !withMetadata else {
      throw UsageError("--metadata is for JSON lines: a .cblite2 database has it all")
    }
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
    if format == .cblite2 {
      try exportCBLite2(database, output)
      return try database.close()
    }
    guard file != "-" else {
      _ = try write(database, to: ByteWriter(path: "-"))
      return try database.close()
    }
    let unfinished = file + ".part"
    do {
      let count = try write(
        database,
        to: ByteWriter(
          path: unfinished, compression: file.hasSuffix(".gz") ? .gzip() : ByteWriter.Compression.none))
      guard rename(unfinished, file) == 0 else {
        throw DatasetError(.ioError, "can't be written: \(String(cString: strerror(errno)))", path: file)
      }
      try output.line(asJSON ? "{\"documents\":\(count)}" : "\(TextTable.grouped(count)) documents")
    } catch {
      unlink(unfinished)
      throw error
    }
    try database.close()
  }

  private func exportCBLite2(_ database: Database, _ output: StandardOutput) throws {
    var progress = Progress("export", unit: "documents")
    defer { progress.end() }
    let report = try database.exportCBLite2(to: file) { count in
      guard !Interrupt.isRequested else { throw Interrupted("nothing was written") }
      progress.update(count)
    }
    progress.end()
    if asJSON {
      try output.line(report.json)
    } else {
      for line in report.lines { try output.line(line) }
    }
  }

  /// Says how many documents there were.
  private func write(_ database: Database, to writer: ByteWriter) throws -> Int {
    var progress = Progress("export", unit: "documents")
    defer { progress.end() }
    var count = 0
    var line: [UInt8] = []

    func add(_ document: DocumentView) throws -> Bool {
      guard !Interrupt.isRequested else { throw Interrupted("the export is not complete") }
      line.removeAll(keepingCapacity: true)
      line += Array("{\"_id\":\(JSONObject.quoted(document.id))".utf8)
      if withMetadata {
        line += Array(",\"_rev\":\"\(try document.revisionID())\",\"_sequence\":\(document.sequence)".utf8)
        if document.isDeleted { line += Array(",\"_deleted\":true".utf8) }
      }
      let brace = line.count
      try document.writeJSON(into: &line)
      // The body's opening brace: a comma follows what stands before, unless the body is empty.
      if line.count == brace + 2 { line.remove(at: brace) } else { line[brace] = UInt8(ascii: ",") }
      try line.withUnsafeBytes { try writer.writeLine($0) }
      count += 1
      if count & 0xFF == 0 { progress.update(count) }
      return true
    }
    try database.read { snapshot in
      try snapshot.forEachDocument(order: .ascending, add)
      if withMetadata { try snapshot.forEachTombstone(add) }
    }
    try writer.finish()
    return count
  }
}
