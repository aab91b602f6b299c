import Touchstone

/// `touchstone rekey`: changes the key, or rewrites everything with a new data key.
struct RekeyCommand: Subcommand {
  private static let rotate = Flag("rotate", "Makes a new data key and encrypts everything anew")

  static let usage = Usage(
    "rekey", "Changes the key of an encrypted database",
    positionals: [DatabaseArguments.database], options: [rotate, Keys.file, Keys.newFile],
    examples: [
      "touchstone rekey secret --key-file old.key --new-key-file new.key",
      "touchstone rekey secret --rotate --key-file my.key",
    ],
    notes: """
      The key opens a data key, with which everything is encrypted. Changing the key takes the same short time
      at any size. Whoever has seen the data key (touchstone key show) can read the database until it is rotated.
      With --rotate and no new key, the key stays the same.
      """)

  private let path: String
  private let rotates: Bool
  private let keys: Keys

  init(_ arguments: Arguments) throws {
    path = try arguments.required(DatabaseArguments.database)
    rotates = arguments[Self.rotate]
    keys = try Keys(arguments)
  }

  func run(_ output: StandardOutput) throws {
    guard try Database.isEncrypted(path) else {
      throw DatabaseError(
        .notEncrypted, "the database isn't encrypted: touchstone encrypt does that", path: path)
    }
    let key = try keys.required(for: path)
    if rotates {
      let line = ConversionProgressLine("rekey")
      defer { line.end() }
      return try Database.rotateKey(path, key: key, newKey: try keys.new(), progress: line.update)
    }
    guard let newKey = try keys.new() ?? keys.askedNew(for: path) else {
      throw UsageError("the new key is missing: give --new-key-file FILE or the variable \(Keys.newVariable)")
    }
    try Database.rekey(path, key: key, newKey: newKey)
  }
}
