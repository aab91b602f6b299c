import Touchstone

/// `touchstone encrypt`: encrypts a plain database in place.
struct EncryptCommand: Subcommand {
  private static let engine = DatabaseArguments.engine(
    "The engine afterwards, if not sqlcipher for sqlite, lmdb-encrypted for lmdb")

  static let usage = Usage(
    "encrypt", "Encrypts a database, blobs too",
    positionals: [DatabaseArguments.database], options: [engine, Keys.newFile, Keys.file],
    examples: ["touchstone encrypt travel --new-key-file my.key"],
    notes: """
      The key is the new key (--new-key-file, or the variable TOUCHSTONE_NEW_KEY), else the key. Afterwards no plain
      file is left in the database's directory; what the disk keeps of removed files is out of reach.
      """)

  private let path: String
  private let engine: EngineName?
  private let keys: Keys

  init(_ arguments: Arguments) throws {
    path = try arguments.required(DatabaseArguments.database)
    engine = try arguments.value(Self.engine)
    keys = try Keys(arguments)
  }

  func run(_ output: StandardOutput) throws {
    guard try !Database.isEncrypted(path) else {
      throw DatabaseError(
        .alreadyEncrypted, "the database is encrypted already: touchstone rekey changes its key", path: path)
    }
    guard let key = try keys.requiredNew(for: path) else {
      throw UsageError("a key is missing: give --new-key-file FILE or the variable \(Keys.newVariable)")
    }
    let line = ConversionProgressLine("encrypt")
    defer { line.end() }
    try Database.encrypt(path, key: key, engine: engine, progress: line.update)
  }
}
