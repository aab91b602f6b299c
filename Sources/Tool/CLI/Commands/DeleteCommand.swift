import Touchstone

/// `touchstone delete`: removes a database with all its files.
struct DeleteCommand: Subcommand {
  static let usage = Usage(
    "delete", "Removes a database with all its files", positionals: [DatabaseArguments.database],
    examples: ["touchstone delete travel"],
    notes: "No key is needed. Fails while another process has the database open.")

  private let path: String

  init(_ arguments: Arguments) throws { path = try arguments.required(DatabaseArguments.database) }

  func run(_ output: StandardOutput) throws { try Database.delete(path) }
}
