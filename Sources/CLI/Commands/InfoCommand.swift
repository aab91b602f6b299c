import FoundationEssentials
import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone info`: what a database is and how large.
struct InfoCommand: Subcommand {
  static let usage = Usage(
    "info", "Tells what a database is: engine, counts, identifiers, files",
    positionals: [DatabaseArguments.database],
    options: DatabaseArguments.readingOptions + [DatabaseArguments.json],
    examples: ["touchstone info travel --json"])

  private let database: DatabaseArguments
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    let files = try Self.files(in: database.path)
    if asJSON {
      try output.line(try Self.json(database, files).text)
    } else {
      var table = TextTable([("", .left), ("", .left)])
      table.add("path", database.path)
      table.add("engine", database.engineName.rawValue)
      table.add("library", database.engine.library)
      table.add("encrypted", database.isEncrypted ? "yes" : "no")
      table.add("documents", TextTable.grouped(try database.documentCount))
      table.add("tombstones", TextTable.grouped(try database.tombstoneCount))
      table.add("last sequence", TextTable.grouped(try database.lastSequence))
      table.add("public UUID", database.publicUUID)
      table.add("private UUID", database.privateUUID)
      for file in files { table.add(file.name, TextTable.grouped(file.bytes) + " bytes") }
      for line in table.lines { try output.line(line) }
    }
    try database.close()
  }

  private static func json(_ database: Database, _ files: [(name: String, bytes: Int)]) throws -> JSONObject {
    var object = JSONObject()
    object.add("engine", database.engineName.rawValue)
    object.add("library", database.engine.library)
    object.add("encrypted", database.isEncrypted)
    object.add("documents", try database.documentCount)
    object.add("lastSequence", try database.lastSequence)
    object.add("publicUUID", database.publicUUID)
    object.add("privateUUID", database.privateUUID)
    object.add(
      "files",
      files.map { file in
        var object = JSONObject()
        object.add("name", file.name)
        object.add("bytes", file.bytes)
        return object
      })
    object.add("indexes", [])
    return object
  }

  /// The regular files in a directory and below, by name.
  private static func files(in directory: String) throws -> [(name: String, bytes: Int)] {
    let names = try FileManager.default.subpathsOfDirectory(atPath: directory).sorted()
    return names.compactMap { name in
      var status = stat()
      // A file that went meanwhile (a log that was checkpointed) is none.
      guard lstat(directory + "/" + name, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
        return nil
      }
      return (name, Int(status.st_size))
    }
  }
}
