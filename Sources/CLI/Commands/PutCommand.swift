import Datasets
import Touchstone

/// `touchstone put`: saves a document.
struct PutCommand: Subcommand {
  private static let id = Positional("ID", "The document's ID")
  private static let body = Positional("JSON", "The body, a JSON object; - reads it from standard input")
  static let revision = Option(
    "rev", "REV", "The revision it is based on: fails with status 1 when that isn't current")

  static let usage = Usage(
    "put", "Saves a document and prints its new revision",
    positionals: [DatabaseArguments.database, id, body],
    options: [revision, DatabaseArguments.json, Keys.file],
    examples: ["touchstone put travel airline_1 '{\"type\":\"airline\",\"name\":\"Paper Planes\"}'"],
    notes: "Without --rev the last write wins.")

  private let database: DatabaseArguments
  private let id: String
  private let text: String
  private let revisionID: RevisionID?
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    id = try arguments.required(Self.id)
    text = try arguments.required(Self.body)
    revisionID = try arguments.value(Self.revision).map(parseRevisionID)
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let json = text == "-" ? try Self.standardInput() : Array(text.utf8)
    let database = try database.open()
    let saved = try database.save(
      id, .json(json), basedOn: revisionID, onConflict: revisionID == nil ? .lastWriteWins : .fail)
    try printSaved(saved, id, asJSON: asJSON, to: output)
    try database.close()
  }

  private static func standardInput() throws -> [UInt8] {
    let reader = LineReader(descriptor: 0, name: "standard input")
    var bytes: [UInt8] = []
    while let line = try reader.next() { bytes += line + [UInt8(ascii: "\n")] }
    return bytes
  }
}

/// Prints what a write made.
func printSaved(_ saved: SavedRevision, _ id: String, asJSON: Bool, to output: StandardOutput) throws {
  guard asJSON else { return try output.line(saved.revisionID.description) }
  var object = JSONObject()
  object.add("id", id)
  object.add("rev", saved.revisionID.description)
  object.add("sequence", saved.sequence)
  try output.line(object.text)
}
