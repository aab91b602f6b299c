import Touchstone

/// `touchstone convert`: converts a database to another engine.
struct ConvertCommand: Subcommand {
  private static let engine = DatabaseArguments.engine(
    "The new engine; left out if DB2 is a location on a server")
  private static let target = Option(
    "output", "DB2", "Writes a new database to this path or location and keeps the old one")

  static let usage = Usage(
    "convert", "Converts a database to another engine, in place or into a new database",
    positionals: [DatabaseArguments.database],
    options: [engine, target, Keys.file, Keys.newFile, SuccessLine.quiet],
    examples: [
      "touchstone convert travel --engine lmdb",
      "touchstone convert travel --engine sqlcipher --output secret --new-key-file my.key",
      "touchstone convert travel --output 'postgres://host/db#travel'",
    ],
    notes: """
      Everything is kept: sequences, revision trees, local documents, expirations, indexes and blobs. The result is
      compared with the original and synced to disk before it replaces the original. A database on a server is
      converted into a new one only.

      The result is encrypted if a new key is given or if the engine always encrypts. Without a new key, an
      encrypted database keeps its key, and a plain one gets --key-file (or TOUCHSTONE_KEY). With an engine that
      can't encrypt, the result is plain.

      Blobs that documents name and that the database lacks are named, and the status is 1. The result is made.
      """)

  private let path: String
  private let engine: EngineName
  private let target: String?
  private let keys: Keys
  private let success: SuccessLine

  init(_ arguments: Arguments) throws {
    path = try arguments.required(DatabaseArguments.database)
    target = try arguments.value(Self.target)
    if let engine = try arguments.value(Self.engine) {
      self.engine = engine
    } else if let target, let engine = try DatabaseLocation(target).engine {
      self.engine = engine
    } else {
      throw UsageError("--engine is missing")
    }
    keys = try Keys(arguments)
    success = SuccessLine(arguments)
  }

  func run(_ output: StandardOutput) throws {
    let newKey = try keys.new()
    let encrypts = try Engines.type(engine, encrypted: newKey != nil).encrypts
    if newKey != nil, !encrypts {
      throw Keys.cannotEncrypt(engine)
    }
    var key: UserKey?
    if try Database.isEncrypted(path) {
      key = try keys.required(for: path)
    } else if encrypts, newKey == nil {
      key = try keys.requiredNew(for: target ?? path, engine: engine)
    }
    let line = PhaseProgressLine("convert")
    defer { line.end() }
    let report = try Database.convert(
      path, to: engine, at: target, key: key, newKey: newKey, progress: line.update)
    line.end()
    try success.write("converted to", target ?? path, key: newKey ?? key, to: output)
    try report.checkIsComplete("the database was converted")
  }
}
