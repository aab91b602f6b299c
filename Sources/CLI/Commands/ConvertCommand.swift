import Touchstone

/// `touchstone convert`: converts a database to another engine.
struct ConvertCommand: Subcommand {
  private static let engine = DatabaseArguments.engine(
    "The engine it moves to")
  private static let target = Option("output", "DB2", "Makes a new database there, and leaves the old one")

  static let usage = Usage(
    "convert", "Moves a database to another engine, in place or beside",
    positionals: [DatabaseArguments.database], options: [engine, target, Keys.file, Keys.newFile],
    examples: [
      "touchstone convert travel --engine lmdb",
      "touchstone convert travel --engine sqlcipher --output secret --new-key-file my.key",
    ],
    notes: """
      Everything comes along: sequences, revision trees, local documents, expirations, indexes and blobs. What
      was written is compared with the original and synced before it takes its place.

      The result is encrypted exactly when a new key is given, or when the engine encrypts: it then keeps its
      key, or takes --key-file (or TOUCHSTONE_KEY) when it had none. Another engine decrypts it.
      """)

  private let path: String
  private let engine: EngineName
  private let target: String?
  private let keys: Keys

  init(_ arguments: Arguments) throws {
    path = try arguments.required(DatabaseArguments.database)
    guard let engine = try arguments.value(Self.engine) else { throw UsageError("--engine is missing") }
    self.engine = engine
    target = try arguments.value(Self.target)
    keys = try Keys(arguments)
  }

  func run(_ output: StandardOutput) throws {
    let newKey = try keys.new()
    let encrypts = try Engines.type(engine, encrypted: newKey != nil).encrypts
    if newKey != nil, !encrypts {
      throw UsageError("\(engine) can't encrypt, and a new key was given")
    }
    var key: UserKey?
    if try Database.isEncrypted(path) {
      key = try keys.required(for: path)
    } else if encrypts, newKey == nil {
      key = try keys.requiredNew(for: target ?? path)
      guard key != nil else {
        throw UsageError(
          "\(engine) needs a key: give --new-key-file FILE or the variable \(Keys.newVariable)")
      }
    }
    let line = ConversionProgressLine("convert")
    defer { line.end() }
    try Database.convert(path, to: engine, at: target, key: key, newKey: newKey, progress: line.update)
  }
}
