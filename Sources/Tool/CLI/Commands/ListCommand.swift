import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone ls`: lists the IDs of documents.
struct ListCommand: Subcommand {
  private static let pattern = Positional(
    "PATTERN", "The IDs to list: * matches any text, ? a character, [a-z] a range", count: .optional)
  private static let prefix = Option(
    "prefix", "TEXT", "Lists only IDs that begin with TEXT, whatever is in it")
  private static let includesDeleted = Flag("include-deleted", "Lists tombstones too")
  private static let conflicts = Flag("conflicts", "Lists only documents with conflicting revisions")
  private static let limit = Option("limit", "N", in: 0...Int.max, "The maximum number of documents")

  static let usage = Usage(
    "ls", "Lists the IDs of documents, in order",
    positionals: [DatabaseArguments.database, pattern],
    options: [prefix, limit, includesDeleted, conflicts, DatabaseArguments.json]
      + DatabaseArguments.readingOptions,
    examples: [
      "touchstone ls travel 'airline_*' --limit 10", "touchstone ls travel --prefix 'a*b' --json",
      "touchstone ls travel --conflicts",
    ],
    notes: "With --json, each line is an object: id, rev, sequence, and deleted for a tombstone.")

  private let database: DatabaseArguments
  private let pattern: String?
  private let prefix: String
  private let mode: AllDocuments.Mode
  private let limit: Int
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    pattern = arguments.optional(Self.pattern)
    let given = try arguments.value(Self.prefix)
    guard pattern == nil || given == nil else { throw UsageError("PATTERN and --prefix can't be combined") }
    // The text before the first special character limits the scan.
    prefix = given ?? String((pattern ?? "").prefix { !"*?[\\".contains($0) })
    let (deleted, conflicts) = (arguments[Self.includesDeleted], arguments[Self.conflicts])
    guard !(deleted && conflicts) else {
      throw UsageError("--include-deleted and --conflicts can't be combined: a tombstone has no conflict")
    }
    mode = deleted ? .includingDeleted : conflicts ? .onlyConflicts : .live
    limit = try arguments.value(Self.limit) ?? .max
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
    var count = 0
    var isInterrupted = false
    try database.read { snapshot in
      try snapshot.enumerate(AllDocuments(mode, prefix: prefix)) { document in
        guard count < limit else { return false }
        isInterrupted = Interrupt.isRequested
        guard !isInterrupted else { return false }
        let id = document.id
        if let pattern, fnmatch(pattern, id, 0) != 0 { return true }
        count += 1
        try output.line(asJSON ? Self.json(document, id).jsonText : id)
        return true
      }
    }
    try database.close()
    if isInterrupted { throw Interrupted("\(count) documents were listed") }
  }

  private static func json(_ document: DocumentView, _ id: String) throws -> JSONObjectText {
    [
      "id": id, "rev": try document.revisionID().description, "sequence": document.sequence,
      "deleted": document.isDeleted ? true : nil,
    ]
  }
}
