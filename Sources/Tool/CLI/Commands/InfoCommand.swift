import FoundationEssentials
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone info`: shows the properties and the size of a database.
struct InfoCommand: Subcommand {
  static let usage = Usage(
    "info", "Shows the engine, counts, identifiers and files of a database",
    positionals: [DatabaseArguments.database],
    options: DatabaseArguments.readingOptions + [DatabaseArguments.json],
    examples: ["touchstone info travel --json"])

  private let database: DatabaseArguments
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    asJSON = arguments[DatabaseArguments.json]
  }

  /// The properties that the open database provides.
  private struct Facts {
    let path, engine, library: String
    let isEncrypted: Bool
    let documents, tombstones: Int
    let lastSequence: UInt64
    let publicUUID, privateUUID: String
    let indexes: [DatabaseIndex]
    /// The size of what a server has. Nil for a directory.
    let serverBytes: Int?

    init(_ database: Database) throws {
      path = database.path
      engine = database.engineName.rawValue
      library = database.engineLibrary
      isEncrypted = database.isEncrypted
      documents = try database.documentCount
      tombstones = try database.tombstoneCount
      lastSequence = try database.lastSequence
      publicUUID = database.publicUUID
      privateUUID = database.privateUUID
      indexes = try database.indexes
      serverBytes =
        DatabaseLocation.isOnServer(path) ? try database.engine.maintenance.statistics().fileBytes : nil
    }
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    let facts = try Facts(database)
    // The database is closed before its files are listed, so that files which exist only while it is open are
    // left out.
    try database.close()
    try Self.show(facts, asJSON: asJSON, to: output)
  }

  /// Prints the properties of a database that stays open.
  static func show(_ database: Database, asJSON: Bool, to output: StandardOutput) throws {
    try show(Facts(database), asJSON: asJSON, to: output)
  }

  private static func show(_ facts: Facts, asJSON: Bool, to output: StandardOutput) throws {
    let files = try facts.serverBytes.map { [("tables of the engine", $0)] } ?? files(in: facts.path)
    guard !asJSON else { return try output.line(json(facts, files).jsonText) }
    var table = TextTable([("", .left), ("", .left)])
    table.add(facts.serverBytes == nil ? "path" : "location", facts.path)
    table.add("engine", facts.engine)
    table.add("library", facts.library)
    table.add("encrypted", facts.isEncrypted ? "yes" : "no")
    table.add("documents", TextTable.grouped(facts.documents))
    table.add("tombstones", TextTable.grouped(facts.tombstones))
    table.add("last sequence", TextTable.grouped(facts.lastSequence))
    table.add("public UUID", facts.publicUUID)
    table.add("private UUID", facts.privateUUID)
    for index in facts.indexes { table.add("index \(index.name)", index.text) }
    for file in files { table.add(file.name, TextTable.grouped(file.bytes) + " bytes") }
    try output.lines(table.lines)
  }

  private static func json(_ facts: Facts, _ files: [(name: String, bytes: Int)]) -> JSONObjectText {
    [
      "engine": facts.engine, "library": facts.library, "encrypted": facts.isEncrypted,
      "documents": facts.documents, "lastSequence": facts.lastSequence, "publicUUID": facts.publicUUID,
      "privateUUID": facts.privateUUID,
      "files": files.map { ["name": $0.name, "bytes": $0.bytes] as JSONObjectText },
      "indexes": facts.indexes.map(IndexCommand.json),
    ]
  }

  /// The regular files in a directory and its subdirectories, by name.
  private static func files(in directory: String) throws -> [(name: String, bytes: Int)] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: directory).sorted()
    return names.compactMap { name in
      var status = stat()
      // Skips a file that was removed in the meantime, such as a log that was checkpointed.
      guard lstat(directory + "/" + name, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
        return nil
      }
      return (name, Int(status.st_size))
    }
  }
}
