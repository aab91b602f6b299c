import Datasets
import Touchstone

/// `touchstone import`: documents from JSON lines, or of a known data set.
struct ImportCommand: Subcommand {
  private static let file = Positional(
    "FILE", "JSON lines, gzip or not; - is standard input; or the name of a data set")
  private static let idProperty = Option("id-property", "NAME", "The property that holds the ID (_id)")
  private static let documents = Option(
    "docs", "N", in: 1...100_000_000, "How many documents of a data set that is generated (all)")
  private static let batch = Option("batch", "N", in: 1...100_000, "Documents a transaction (1,000)")

  static let usage = Usage(
    "import", "Saves documents from JSON lines, or of a known data set",
    positionals: [DatabaseArguments.database, file], options: [idProperty, documents, batch, Keys.file],
    examples: [
      "touchstone import travel travel-sample.jsonl.gz", "touchstone import travel - < more.jsonl",
      "touchstone import big synthetic-travel --docs 1000000",
    ],
    notes: """
      A line without the ID property gets a UUID. The last write wins. Lines of export --metadata are taken
      back: a document that isn't there yet gets the revision ID of its line (_rev), one that has that revision
      stays as it is; _sequence is not taken over. A bad line stops the import: the transactions before it stay.
      """)

  private let database: DatabaseArguments
  private let file: String
  private let idProperty: String
  private let documentCount: Int?
  private let batchCount: Int

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    file = try arguments.required(Self.file)
    idProperty = try arguments.value(Self.idProperty) ?? "_id"
    documentCount = try arguments.value(Self.documents)
    batchCount = try arguments.value(Self.batch) ?? 1_000
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let source = try DatasetLookup.open(file, documents: documentCount, idProperty: idProperty)
    let database = try database.open()
    var progress = Progress("import", unit: "documents")
    defer { progress.end() }
    var imported = 0
    var isAtEnd = false
    while !isAtEnd {
      guard !Interrupt.isRequested else { throw Interrupted("\(imported) documents were imported") }
      do {
        imported += try database.inBatch {
          for count in 0..<batchCount {
            guard let record = try source.next() else {
              isAtEnd = true
              return count
            }
            try save(record, in: database, line: source.lineNumber)
          }
          return batchCount
        }
      } catch {
        progress.end()
        if imported > 0 {
          StandardError.line("touchstone import: \(imported) documents were imported before this:")
        }
        throw error
      }
      progress.update(imported)
      MappedFile.release(database.engineFile, above: 64 << 20)
    }
    progress.end()
    try output.line("\(TextTable.grouped(imported)) documents")
    try database.close()
  }

  private func save(_ record: Record, in database: Database, line: Int) throws {
    let id = record.idString ?? DocumentID.random()
    do {
      if let exported = try ExportedDocument(record.json) {
        try exported.save(id, in: database)
      } else {
        try database.save(id, json: record.json)
      }
    } catch  where ExitStatus(error) == .usage {
      throw UsageError("\(file == "-" ? "standard input" : file): line \(line): \(error)")
    }
  }
}
