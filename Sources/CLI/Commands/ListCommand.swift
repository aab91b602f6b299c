import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone ls`: the IDs of documents.
struct ListCommand: Subcommand {
  private static let pattern = Positional(
    "PATTERN", "IDs to list: * is any text, ? a character, [a-z] a range", count: .optional)
  private static let limit = Option("limit", "N", in: 0...Int.max, "At most so many")

  static let usage = Usage(
    "ls", "Lists the IDs of documents, in order",
    positionals: [DatabaseArguments.database, pattern],
    options: [limit, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: ["touchstone ls travel 'airline_*' --limit 10"],
    notes: "With --json, one object a line: id, rev, sequence. Tombstones are not listed.")

  private let database: DatabaseArguments
  private let pattern: String?
  private let limit: Int
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    pattern = arguments.optional(Self.pattern)
    limit = try arguments.value(Self.limit) ?? .max
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
    // What stands before the first special character bounds the scan.
    let prefix = Array((pattern ?? "").utf8.prefix { !"*?[\\".utf8.contains($0) })
    var count = 0
    var isInterrupted = false
    try database.read { snapshot in
      try snapshot.forEachDocument(in: .prefix(prefix), order: .ascending) { document in
        guard count < limit else { return false }
        isInterrupted = Interrupt.isRequested
        guard !isInterrupted else { return false }
        let id = document.id
        if let pattern, fnmatch(pattern, id, 0) != 0 { return true }
        count += 1
        try output.line(asJSON ? Self.json(document, id).text : id)
        return true
      }
    }
    try database.close()
    if isInterrupted { throw Interrupted("\(count) documents were listed") }
  }

  private static func json(_ document: DocumentView, _ id: String) throws -> JSONObject {
    var object = JSONObject()
    object.add("id", id)
    object.add("rev", try document.revisionID().description)
    object.add("sequence", document.sequence)
    return object
  }
}
