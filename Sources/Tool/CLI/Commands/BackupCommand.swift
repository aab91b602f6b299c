import Touchstone

/// `touchstone backup`: makes a backup of a database that may be in use.
struct BackupCommand: Subcommand {
  private static let target = Positional(
    "DB2", "The path or the location of the backup; it must not exist")

  static let usage = Usage(
    "backup", "Makes a backup: a complete copy with the same UUIDs, while others may write",
    positionals: [DatabaseArguments.database, target], options: [Keys.file, SuccessLine.quiet],
    examples: ["touchstone backup travel travel-monday"],
    notes: """
      The backup is a database that is the same as DB at one moment: documents, revisions, sequences, local
      documents, expirations, indexes, blobs and UUIDs. It has the engine and the key of DB (sqlite, if DB is on a
      server), and appears when it is complete, compared with what was read, and synced to disk. Others may use DB
      meanwhile, but for rocksdb and wiredtiger, which one process has open at a time.

      To go back, put the backup in the place of DB while nobody has it open. Only one of them should sync, since
      both are the same peer: touchstone copy makes a separate peer. touchstone verify compares them.

      Blobs that documents name and that DB lacks are named, and the status is 1. The backup is made.
      """)

  private let source: String
  private let target: String
  private let keys: Keys
  private let success: SuccessLine

  init(_ arguments: Arguments) throws {
    source = try arguments.required(DatabaseArguments.database)
    target = try arguments.required(Self.target)
    keys = try Keys(arguments)
    success = SuccessLine(arguments)
  }

  func run(_ output: StandardOutput) throws {
    let key = try Database.isEncrypted(source) ? keys.required(for: source) : nil
    let line = PhaseProgressLine("backup")
    defer { line.end() }
    let report = try Database.backup(source, to: target, key: key, progress: line.update)
    line.end()
    try success.write("backed up on", target, key: key, to: output)
    try report.checkIsComplete("the backup was made")
  }
}
