import Touchstone

/// `touchstone copy`: installs a prebuilt database.
struct CopyCommand: Subcommand {
  private static let source = Positional("DB", "A database's directory, or a zip file of one")
  private static let target = Positional("DB2", "Where the copy is made: nothing may be there")
  private static let engine = DatabaseArguments.engine(
    "The copy's engine; that of the original when nothing is said")

  static let usage = Usage(
    "copy", "Installs a prebuilt database: a copy that is a peer of its own",
    positionals: [source, target], options: [engine, Keys.file, Keys.newFile],
    examples: ["touchstone copy assets/travel travel", "touchstone copy travel.zip travel"],
    notes: """
      The copy has UUIDs of its own, and remembers the original's, so that its syncs go on where those stopped.
      It keeps the original's key unless a new one is given.
      """)

  private let source: String
  private let target: String
  private let engine: EngineName?
  private let keys: Keys

  init(_ arguments: Arguments) throws {
    source = try arguments.required(Self.source)
    target = try arguments.required(Self.target)
    engine = try arguments.value(Self.engine)
    keys = try Keys(arguments)
  }

  func run(_ output: StandardOutput) throws {
    let newKey = try keys.new()
    let line = ConversionProgressLine("copy")
    defer { line.end() }
    func copy(_ key: UserKey?) throws {
      try Database.copy(
        source, to: target, key: key, newKey: newKey, engine: engine, progress: line.update)
    }
    // Whether a zip file holds an encrypted database is known only after unpacking. Then the key is asked
    // for.
    if (try? Database.isEncrypted(source)) ?? false {
      try copy(keys.required(for: source))
    } else {
      do { try copy(keys.given()) } catch let error as DatabaseError where error.code == .keyRequired {
        guard let key = try keys.existing(for: source) else { throw error }
        try copy(key)
      }
    }
  }
}
