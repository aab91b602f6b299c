import Touchstone

/// `touchstone compact`: removes unneeded data and returns unused space to the file system.
struct CompactCommand: Subcommand {
  static let usage = Usage(
    "compact",
    "Removes bodies of replaced revisions and unused blobs, and frees disk space",
    positionals: [DatabaseArguments.database], options: [Keys.file], examples: ["touchstone compact travel"])

  private let database: DatabaseArguments

  init(_ arguments: Arguments) throws { database = try DatabaseArguments(arguments) }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    let before = try database.engine.maintenance.statistics().fileBytes
    try database.compact()
    let after = try database.engine.maintenance.statistics().fileBytes
    try output.line("\(TextTable.grouped(before)) bytes before, \(TextTable.grouped(after)) after")
    try database.close()
  }
}
