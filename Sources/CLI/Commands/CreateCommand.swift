import Touchstone

/// `touchstone create`: makes a new, empty database.
struct CreateCommand: Subcommand {
  private static let engine = DatabaseArguments.engine(
    "sqlite (the default), lmdb, sqlcipher, lmdb-encrypted or sqlcipher-plain")

  private static let parents = Flag("parents", "Makes the directory that it is to be in, and those above")

  static let usage = Usage(
    "create", "Makes a new, empty database",
    positionals: [DatabaseArguments.database], options: [engine, parents, Keys.newFile, Keys.file],
    examples: ["touchstone create travel --engine lmdb", "touchstone create secret --new-key-file my.key"],
    notes: """
      The database is encrypted exactly when a new key is given (--new-key-file, or the variable
      TOUCHSTONE_NEW_KEY) or its engine is one that encrypts, which then takes the key (--key-file, or
      TOUCHSTONE_KEY). With a new key and no engine, the engine is sqlcipher; lmdb with a new key is
      lmdb-encrypted.
      """)

  private let path: String
  private let engine: EngineName?
  private let keys: Keys
  private let makesParents: Bool

  init(_ arguments: Arguments) throws {
    path = try arguments.required(DatabaseArguments.database)
    engine = try arguments.value(Self.engine)
    keys = try Keys(arguments)
    makesParents = arguments[Self.parents]
  }

  func run(_ output: StandardOutput) throws {
    var key = try keys.new()
    let engine = engine ?? (key == nil ? .sqlite : .sqlcipher)
    if try Engines.type(engine, encrypted: key != nil).encrypts {
      key = try key ?? keys.requiredNew(for: path)
      guard key != nil else {
        throw UsageError(
          "\(engine) needs a key: give --new-key-file FILE or the variable \(Keys.newVariable)")
      }
    } else if key != nil {
      throw UsageError("\(engine) can't encrypt, and a new key was given")
    }
    let database = try Database.open(
      path,
      options: .init(engine: engine, creation: .createNew, key: key, makesParents: makesParents))
    try output.line("made \(database.path) (\(database.engine.library))")
    try database.close()
  }
}
