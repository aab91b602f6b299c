import Bytes
import Touchstone

/// `touchstone purge`: removes documents without a trace.
struct PurgeCommand: Subcommand {
  private static let ids = Positional("ID", "The documents' IDs", count: .many)
  private static let revision = Option(
    "rev", "REV", "Removes only the branch that ends with this revision, of one document")

  static let usage = Usage(
    "purge", "Removes documents with all revisions, without a tombstone",
    positionals: [DatabaseArguments.database, ids],
    options: [revision, DatabaseArguments.json, Keys.file],
    examples: [
      "touchstone purge travel airline_10 airline_11", "touchstone purge travel airline_10 --rev 3-abc",
    ],
    notes: """
      Others don't learn of it: a sync may bring the documents back. rm deletes a document for others too. If
      one of the IDs is unknown, nothing is purged, and the status is 1.
      """)

  private let database: DatabaseArguments
  private let ids: [String]
  private let revisionID: RevisionID?
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    ids = arguments.all(Self.ids)
    revisionID = try arguments.value(Self.revision).map(parseRevisionID)
    asJSON = arguments[DatabaseArguments.json]
    guard revisionID == nil || ids.count == 1 else { throw UsageError("--rev works with one ID only") }
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    if let revisionID {
      let removed = try database.purge(ids[0], branch: revisionID)
      let object: JSONObjectText = ["purged": removed.map(\.description)]
      if asJSON { try output.line(object.jsonText) } else { try output.lines(removed.map(\.description)) }
    } else {
      // Once each, in the order in which they were given: an error names the first one that is unknown.
      var known: Set<ByteString> = []
      let ids = ids.filter { known.insert(ByteString($0)).inserted }
      try database.inBatch { for id in ids { try database.purge(id) } }
      let object: JSONObjectText = ["purged": ids.count]
      try output.line(
        asJSON ? object.jsonText : "purged \(TextTable.counted(ids.count, "document"))")
    }
    try database.close()
  }
}
