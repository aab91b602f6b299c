import Touchstone

/// `touchstone encrypt`: encrypts a plain database in place.
struct EncryptCommand: Subcommand {
  private static let engine = DatabaseArguments.engine(
    "The new engine (sqlcipher for sqlite, lmdb-encrypted for lmdb)")

  static let usage = Usage(
    "encrypt", "Encrypts a database with its blobs",
    positionals: [DatabaseArguments.database], options: [engine, Keys.newFile, Keys.file, SuccessLine.quiet],
    examples: ["touchstone encrypt travel --new-key-file my.key"],
    notes: """
      The key of the result is the new key (--new-key-file, or the variable TOUCHSTONE_NEW_KEY), or the key if there
      is no new key. Afterwards no plain file is left in the directory. The disk may still hold data of removed
      files.
      """)

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
    guard try !Database.isEncrypted(path) else {
      throw DatabaseError(
        .alreadyEncrypted, "the database is already encrypted; to change its key, run touchstone rekey",
        path: path)
    }
    guard let key = try keys.requiredNew(for: path) else {
      throw UsageError("there is no key; use --new-key-file FILE or the variable \(Keys.newVariable)")
    }
    let line = PhaseProgressLine("encrypt")
    defer { line.end() }
    let report = try Database.encrypt(path, key: key, engine: engine, progress: line.update)
    line.end()
    try success.write("encrypted with", path, key: key, to: output)
    try report.checkIsComplete("the database was encrypted")
  }
}
