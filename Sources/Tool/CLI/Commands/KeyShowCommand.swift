import Bytes
import Touchstone

/// `touchstone key show`: prints the data key, with which an engine's tools open the file of an encrypted
/// database.
struct KeyShowCommand: Subcommand {
  static let usage = Usage(
    "key show", "Prints the raw data key of an encrypted database",
    positionals: [DatabaseArguments.database],
    options: [Keys.file, DatabaseArguments.readOnly, DatabaseArguments.json],
    examples: ["touchstone key show secret --key-file my.key"],
    notes: """
      Somebody who has the data key can read the database, even after its key was changed. For SQLCipher, the
      output is two PRAGMA lines. Give them to the sqlcipher tool first, and it opens the file.
      """)

  private let database: DatabaseArguments
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    guard try Database.isEncrypted(database.path) else {
      throw Refusal("the database isn't encrypted, so it has no data key: \(database.path)")
    }
    let opened = try database.open()
    guard let secret = try opened.dataKey(database.key()) else {
      throw Refusal("the database isn't encrypted, so it has no data key: \(database.path)")
    }
    let key = secret.withUnsafeBytes { Hex.text($0) }
    let pageBytes = try opened.engine.maintenance.statistics().pageBytes
    if asJSON {
      let object: JSONObjectText = ["key": key, "pageBytes": pageBytes, "file": opened.engineFile]
      try output.line(object.jsonText)
    } else {
      try output.line("-- \(opened.engineFile)")
      guard opened.engineName == .sqlcipher else {
        try output.line(key)
        return try opened.close()
      }
      try output.line("PRAGMA key = \"x'\(key)'\";")
      try output.line("PRAGMA cipher_page_size = \(pageBytes);")
    }
    try opened.close()
  }
}
