import Touchstone

/// `touchstone copy`: installs a prebuilt database.
struct CopyCommand: Subcommand {
  private static let source = Positional(
    "DB", "The directory of a database, a zip file of it, or a location on a server")
  private static let target = Positional("DB2", "The path or the location of the copy; it must not exist")
  private static let engine = DatabaseArguments.engine(
    "The engine of the copy (that of the original, or sqlite from a server)")

  static let usage = Usage(
    "copy", "Installs a prebuilt database: makes a copy with new UUIDs",
    positionals: [source, target], options: [engine, Keys.file, Keys.newFile],
    examples: ["touchstone copy assets/travel travel", "touchstone copy travel.zip travel"],
    notes: """
      The copy is a separate sync peer with new UUIDs. It stores the private UUID of the original, so its syncs
      continue where those of the original stopped. It has the key of the original unless a new one is given. A
      backup, which is the same peer, is made by touchstone backup.

      Blobs that documents name and that the original lacks are named, and the status is 1. The copy is made.
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
    let line = PhaseProgressLine("copy")
    defer { line.end() }
    func copy(_ key: UserKey?) throws {
      let report = try Database.copy(
        source, to: target, key: key, newKey: newKey, engine: engine, progress: line.update)
      line.end()
      try report.checkIsComplete("the copy was made")
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
