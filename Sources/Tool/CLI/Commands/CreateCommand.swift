import Touchstone

/// `touchstone create`: makes a new, empty database.
struct CreateCommand: Subcommand {
  private static let engine = DatabaseArguments.engine("\(NewDatabase.engineNames) (sqlite)")

  private static let parents = Flag("parents", "Makes the parent directories")

  static let usage = Usage(
    "create", "Makes a new, empty database",
    positionals: [DatabaseArguments.database], options: [engine, parents, Keys.newFile, Keys.file],
    examples: [
      "touchstone create travel --engine lmdb", "touchstone create secret --new-key-file my.key",
      "touchstone create 'postgres://host/db#travel'",
    ],
    notes: """
      A location on a server has its engine in its scheme. A password in it is better left to ~/.pgpass: other users can
      see the arguments of a command for a moment.

      With a new key (--new-key-file, or the variable TOUCHSTONE_NEW_KEY), the database is encrypted. Its engine is
      then sqlcipher if none is named. lmdb with a new key means lmdb-encrypted. An engine that always encrypts
      uses the key (--key-file, or TOUCHSTONE_KEY) if there is no new key.
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
    let database = try NewDatabase.make(path, engine: engine, keys: keys, makesParents: makesParents)
    try output.line("made \(database.path) (\(database.engineLibrary))")
    try database.close()
  }
}
