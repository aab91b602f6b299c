import Touchstone

/// `touchstone decrypt`: decrypts a database in place.
struct DecryptCommand: Subcommand {
  private static let engine = DatabaseArguments.engine(
    "The new engine (sqlite for sqlcipher, lmdb for lmdb-encrypted)")

  static let usage = Usage(
    "decrypt", "Decrypts a database with its blobs",
    positionals: [DatabaseArguments.database], options: [engine, Keys.file, SuccessLine.quiet],
    examples: ["touchstone decrypt secret --key-file my.key"])

  private let path: String
  private let engine: EngineName?
  private let keys: Keys
  private let success: SuccessLine

  init(_ arguments: Arguments) throws {
    path = try arguments.required(DatabaseArguments.database)
    engine = try arguments.value(Self.engine)
    keys = try Keys(arguments)
    success = SuccessLine(arguments)
  }

  func run(_ output: StandardOutput) throws {
    guard try Database.isEncrypted(path) else {
      throw DatabaseError(.notEncrypted, "the database isn't encrypted", path: path)
    }
    let line = PhaseProgressLine("decrypt")
    defer { line.end() }
    let report = try Database.decrypt(
      path, key: keys.required(for: path), engine: engine, progress: line.update)
    line.end()
    try success.write("decrypted to", path, key: nil, to: output)
    try report.checkIsComplete("the database was decrypted")
  }
}
