import Touchstone

/// `touchstone rm`: deletes a document and leaves a tombstone.
struct RemoveCommand: Subcommand {
  private static let id = Positional("ID", "The document's ID")

  static let usage = Usage(
    "rm", "Deletes a document and prints the revision of its tombstone",
    positionals: [DatabaseArguments.database, id],
    options: [PutCommand.revision, DatabaseArguments.json, Keys.file],
    examples: ["touchstone rm travel airline_10"], notes: "Without --rev, the last write wins.")

  private let database: DatabaseArguments
  private let id: String
  private let revisionID: RevisionID?
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    id = try arguments.required(Self.id)
    revisionID = try arguments.value(PutCommand.revision).map(parseRevisionID)
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    let saved = try database.delete(
      id, basedOn: revisionID, onConflict: revisionID == nil ? .lastWriteWins : .fail)
    try printSaved(saved, id, asJSON: asJSON, to: output)
    try database.close()
  }
}
