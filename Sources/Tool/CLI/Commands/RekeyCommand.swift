import Touchstone

/// `touchstone rekey`: changes the key, or rewrites everything with a new data key.
struct RekeyCommand: Subcommand {
  private static let rotate = Flag("rotate", "Makes a new data key and encrypts everything again")

  static let usage = Usage(
    "rekey", "Changes the key of an encrypted database",
    positionals: [DatabaseArguments.database], options: [rotate, Keys.file, Keys.newFile, SuccessLine.quiet],
    examples: [
      "touchstone rekey secret --key-file old.key --new-key-file new.key",
      "touchstone rekey secret --rotate --key-file my.key",
    ],
    notes: """
      The key encrypts only the data key, and the data key encrypts everything else. So changing the key takes the
      same short time at any size. Somebody who has the data key (touchstone key show) can read the database until
      --rotate replaces the data key. With --rotate and no new key, the key stays the same.
      """)

  private let path: String
  private let rotates: Bool
  private let keys: Keys
  private let success: SuccessLine

  init(_ arguments: Arguments) throws {
    path = try arguments.required(DatabaseArguments.database)
    rotates = arguments[Self.rotate]
    keys = try Keys(arguments)
    success = SuccessLine(arguments)
  }

  func run(_ output: StandardOutput) throws {
    guard try Database.isEncrypted(path) else {
      throw DatabaseError(
        .notEncrypted, "the database isn't encrypted; to encrypt it, run touchstone encrypt", path: path)
    }
    let key = try keys.required(for: path)
    if rotates {
      let line = PhaseProgressLine("rekey")
      defer { line.end() }
      let newKey = try keys.new()
      let report = try Database.rotateKey(path, key: key, newKey: newKey, progress: line.update)
      line.end()
      try success.write("encrypted anew, on", path, key: newKey ?? key, to: output)
      return try report.checkIsComplete("the database was encrypted anew")
    }
    guard let newKey = try keys.new() ?? keys.askedNew(for: path) else {
      throw UsageError("there is no new key; use --new-key-file FILE or the variable \(Keys.newVariable)")
    }
    try Database.rekey(path, key: key, newKey: newKey)
    try success.write("the key was changed; the data key is the same", to: output)
  }
}
