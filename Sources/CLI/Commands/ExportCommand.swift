import Datasets
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone export`: all documents as JSON lines.
struct ExportCommand: Subcommand {
  private static let file = Positional(
    "FILE", "Where to; gzip when it ends with .gz; standard output when it is - or left out", count: .optional
  )
  private static let metadata = Flag(
    "metadata", "Adds _rev, _sequence and _deleted, and exports tombstones too")

  static let usage = Usage(
    "export", "Writes all documents as JSON lines, by ID",
    positionals: [DatabaseArguments.database, file], options: [metadata] + DatabaseArguments.readingOptions,
    examples: ["touchstone export travel travel.jsonl.gz", "touchstone export travel --metadata | wc -l"],
    notes:
      "One object a document and line, _id first. What import takes back. A file appears when it is whole.")

  private let database: DatabaseArguments
  private let file: String
  private let withMetadata: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    file = arguments.optional(Self.file) ?? "-"
    withMetadata = arguments[Self.metadata]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
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
      try output.line("\(TextTable.grouped(count)) documents")
    } catch {
      unlink(unfinished)
      throw error
    }
    try database.close()
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
