import Datasets
import Documents
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone import`: imports documents from JSON lines, a known data set, or a Couchbase Lite 2.x or 3.x
/// database.
struct ImportCommand: Subcommand {
  private static let file = Positional(
    "FILE",
    "JSON lines or CSV, plain or gzip; - for standard input; the name of a data set; or a NAME.cblite2, or a zip file with one"
  )
  private static let idProperty = Option("id-property", "NAME", "The property with the document ID (_id)")
  private static let documents = Option(
    "docs", "N", in: 1...100_000_000, "The number of documents of a generated data set (all)")
  private static let batch = Option("batch", "N", in: 1...100_000, "Documents per transaction (1,000)")
  private static let format = Option<DatasetLookup.Format>(
    "format", "FORMAT", "jsonl, or csv with a header (from the name of FILE)",
    refusal: "is neither jsonl nor csv"
  ).choosing(["jsonl", "csv"])
  private static let collection = Option(
    "collection", "NAME", "The collection of a .cblite2 database: scope.name (_default)")

  static let usage = Usage(
    "import", "Saves documents from JSON lines, a known data set or a .cblite2 database",
    positionals: [DatabaseArguments.database, file],
    options: [
      NewDatabase.engine, format, idProperty, documents, batch, collection, ExportedBlobs.option,
      DatabaseArguments.json,
      Keys.file, Keys.newFile,
    ],
    examples: [
      "touchstone import travel travel-sample.jsonl.gz --engine lmdb",
      "touchstone import travel - < more.jsonl",
      "touchstone import travel hotels.csv --id-property id",
      "touchstone import big synthetic-travel --docs 1000 --engine sqlite",
      "touchstone import travel travel-sample.cblite2 --json",
    ],
    notes: """
      With --engine, DB is made if it doesn't exist. A line without the ID property gets a UUID as its ID. The last
      write wins, and lines that have the ID of an earlier line are counted. Lines of export --metadata keep
      their revision IDs (_rev): a new document gets the ID of its line, and a document that has this revision
      doesn't change. _sequence is ignored. An invalid line ends the import. Earlier transactions are kept. Blobs
      that the database doesn't have are read from the directory that export made: FILE.blobs, or --blobs. Those that are
      still missing are named, and the status is 1. The documents are imported without them.

      The first line of CSV (RFC 4180) names the properties. A field without quotes that JSON reads as a number,
      true, false or null is that, and so is a valid JSON object or array; all other text is a string. A field with
      nothing in it is a missing property, and "" an empty string.

      From a Couchbase Lite 2.x or 3.x database, whole revision trees with their IDs, tombstones, expirations,
      local documents and blobs are imported. The source is only read. The report lists what isn't imported, and
      why. The status is 1 if documents or blobs are missing.
      """)

  private let database: DatabaseArguments
  private let file: String
  private let idProperty: String?
  private let format: DatasetLookup.Format?
  private let documentCount: Int?
  private let batchCount: Int
  private let collection: String?
  private let asJSON: Bool
  private let blobs: String?
  private let engine: EngineName?

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    file = try arguments.required(Self.file)
    idProperty = try arguments.value(Self.idProperty)
    format = try arguments.value(Self.format)
    documentCount = try arguments.value(Self.documents)
    batchCount = try arguments.value(Self.batch) ?? 1_000
    collection = try arguments.value(Self.collection)
    asJSON = arguments[DatabaseArguments.json]
    blobs = try arguments.value(ExportedBlobs.option)
    engine = try arguments.value(NewDatabase.engine)
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    if isCBLite2 {
      guard blobs == nil else {
        throw UsageError("--blobs works only with JSON lines, not with a .cblite2 database")
      }
      return try importCBLite2(output)
    }
    guard collection == nil else { throw UsageError("--collection works only with a .cblite2 database") }
    let source = try DatasetLookup.open(
      file, documents: documentCount, idProperty: idProperty ?? "_id", format: format)
    var blobs = try exportedBlobs()
    let (database, isNew) = try opened()
    let repeated = RepeatedIDs(database, before: try (database.documentCount, database.lastSequence))
    var imported = 0
    var saved = 0
    var isDone = false
    // Without documents, the next try should find what this one found.
    defer { if isNew, !isDone, imported == 0 { Self.remove(database) } }
    var progress = Progress("import", unit: "documents")
    defer { progress.end() }
    var missing = MissingBlobs()
    var hasIDs = false
    var isAtEnd = false
    while !isAtEnd {
      guard !Interrupt.isRequested else { throw Interrupted("\(imported) documents were imported") }
      do {
        // A single attempt: the source can't be rewound.
        imported += try database.inBatch(attempts: 1) {
          for count in 0..<batchCount {
            guard let record = try source.next() else {
              isAtEnd = true
              return count
            }
            if record.id != nil { hasIDs = true }
            func save(_ record: Record) throws {
              let id = record.idString ?? DocumentID.random()
              let lost = try ExportedBlobs.import(namedIn: record.json, from: &blobs, into: database)
              missing.add(lost, namedIn: record.json, of: id)
              if try self.save(record, id, in: database, line: source.lineNumber) { saved += 1 }
            }
            let line: [UInt8]?
            do { line = try InlineBlobs.taking(from: record.json, into: database) } catch let error
              as UsageError
            {
              throw fault(error.message, line: source.lineNumber)
            }
            if let line {
              try line.withUnsafeBytes { try save(Record(id: record.id, json: $0)) }
            } else {
              try save(record)
            }
          }
          return batchCount
        }
      } catch {
        progress.end()
        if imported > 0 {
          let count = imported == 1 ? "1 document was" : "\(TextTable.grouped(imported)) documents were"
          StandardError.line("touchstone import: \(count) imported before this:")
        }
        throw error
      }
      progress.update(imported)
      MappedFile.release(database.engineFile, above: 64 << 20)
    }
    progress.end()
    if let idProperty, !hasIDs, imported > 0 {
      StandardError.line(
        "touchstone import: no line has the property '\(idProperty)', so all documents got random IDs")
    }
    let again = try repeated.count(lines: imported, saved: saved)
    if again > 0 {
      let lines = again == 1 ? "1 line has" : "\(TextTable.grouped(again)) lines have"
      StandardError.line("touchstone import: \(lines) the ID of an earlier line; the last one won")
    }
    let count = imported - again
    try output.line(
      asJSON ? "{\"documents\":\(count),\"repeated\":\(again)}" : SuccessLine.documents(count))
    isDone = true
    let outcome = Result { try missing.checkIsComplete("the documents were imported", database) }
    try database.close()
    try outcome.get()
  }

  /// Opens the database, or makes it if there is none and an engine is named.
  private func opened() throws -> (database: Database, isNew: Bool) {
    do { return try database.open(makingWith: engine) } catch let error as DatabaseError
      where error.code == .notFound
    {
      throw DatabaseError(
        .notFound, error.message + "; to make it, add --engine ENGINE", path: error.path)
    }
  }

  /// How many lines had the ID of an earlier line, by the changes of the database: IDs take too much memory.
  private struct RepeatedIDs {
    private let database: Database
    private let before: (documents: Int, sequence: UInt64)

    init(_ database: Database, before: (documents: Int, sequence: UInt64)) {
      self.database = database
      self.before = before
    }

    /// The number of such lines; 0 if others have written meanwhile, since their changes can't be told apart.
    func count(lines: Int, saved: Int) throws -> Int {
      // Mostly all are new.
      guard try database.documentCount != before.documents + lines else { return 0 }
      var changed = 0
      try database.forEachChange(since: before.sequence) { _ in
        changed += 1
        return true
      }
      guard try database.lastSequence == before.sequence + UInt64(saved) else { return 0 }
      return max(0, saved - changed)
    }
  }

  /// Removes a database that this command has made.
  private static func remove(_ database: Database) { try? database.delete() }

  /// The blobs that were exported with the lines; nil if there are none.
  private func exportedBlobs() throws -> ExportedBlobs? {
    var status = stat()
    let directory = blobs ?? (file == "-" ? nil : ExportedBlobs.directory(beside: file))
    guard let directory, stat(directory, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
      guard let blobs else { return nil }
      throw UsageError("--blobs: there is no directory '\(blobs)'")
    }
    return try ExportedBlobs(directory, isReadOnly: true)
  }

  /// Whether the file is a database's directory, or a zip file, by its first bytes and whatever its name is.
  private var isCBLite2: Bool {
    if file.hasSuffix(".cblite2") || file.hasSuffix(".cblite2/") { return true }
    var status = stat()
    guard stat(file, &status) == 0 else { return file.hasSuffix(".cblite2.zip") }
    guard status.st_mode & S_IFMT == S_IFREG else { return status.st_mode & S_IFMT == S_IFDIR }
    let descriptor = open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var bytes: [UInt8] = [0, 0, 0, 0]
    // "PK", and the marks of a first entry or of the end of an archive without entries.
    return pread(descriptor, &bytes, 4, 0) == 4
      && [[0x50, 0x4B, 3, 4], [0x50, 0x4B, 5, 6]].contains(bytes)
  }

  private func importCBLite2(_ output: StandardOutput) throws {
    if file.hasSuffix(".touchstone") || file.hasSuffix(".touchstone/") {
      throw UsageError(
        "\(file) is a database of Touchstone; 'touchstone sync' brings its documents into another one, and 'touchstone copy' "
          + "and 'touchstone backup' make another one of it")
    }
    let (database, isNew) = try opened()
    var isDone = false
    defer { if isNew, !isDone, (try? database.documentCount) == 0 { Self.remove(database) } }
    var progress = Progress("import", unit: "documents")
    defer { progress.end() }
    let report = try database.importCBLite2(file, collection: collection, batchCount: batchCount) { count in
      guard !Interrupt.isRequested else { throw Interrupted("\(count) documents were imported") }
      progress.update(count)
      MappedFile.release(database.engineFile, above: 64 << 20)
    }
    progress.end()
    try output.lines(asJSON ? [report.json] : report.lines)
    isDone = true
    try database.close()
    guard report.details.isEmpty else {
      throw Refusal("not everything could be imported: what is missing is listed")
    }
  }

  private func fault(_ message: String, line: Int) -> UsageError {
    UsageError("\(file == "-" ? "standard input" : file): line \(line): \(message)")
  }

  /// Saves a document. Returns false if nothing changed.
  private func save(_ record: Record, _ id: String, in database: Database, line: Int) throws -> Bool {
    do {
      if let exported = try ExportedDocument(record.json) {
        return try exported.save(id, in: database)
      }
      try database.restore(id, json: record.json)
      return true
    } catch  where ExitStatus(error) == .usage {
      throw fault("\(error)", line: line)
    }
  }
}
