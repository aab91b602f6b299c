import Touchstone

#if canImport(Glibc)
  import Glibc
#endif

/// `touchstone changes`: lists the documents that changed since a sequence, and follows further changes.
struct ChangesCommand: Subcommand {
  private static let since = Option("since", "N", in: 0...Int.max, "Lists only changes after this sequence")
  private static let follow = Flag("follow", "Keeps listing new changes until Ctrl-C")

  static let usage = Usage(
    "changes", "Lists changed documents in the order of their sequences",
    positionals: [DatabaseArguments.database],
    options: [since, follow, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: ["touchstone changes travel --since 31591", "touchstone changes travel --follow --json"],
    notes: "Each document appears once, with its latest change. With --json, each line is an object.")

  private let database: DatabaseArguments
  private let since: UInt64
  private let follows: Bool
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    since = UInt64(try arguments.value(Self.since) ?? 0)
    follows = arguments[Self.follow]
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    Interrupt.listen()
    let database = try database.open()
    var last = since
    repeat {
      try database.forEachChange(since: last) { change in
        last = change.sequence
        try output.line(text(change))
        return !Interrupt.isRequested
      }
      try output.flush()
      // Other processes write too, so the file is polled. Ctrl-C ends the wait.
      if follows { usleep(100_000) }
    } while follows && !Interrupt.isRequested
    try database.close()
    if Interrupt.isRequested && !follows { throw Interrupted("the last change listed has sequence \(last)") }
  }

  private func text(_ change: Change) -> String {
    guard asJSON else {
      let marks = (change.isDeleted ? " deleted" : "") + (change.isConflicted ? " conflicted" : "")
      return "\(change.sequence) \(change.documentID)\(marks)"
    }
    let object: JSONObjectText = [
      "sequence": change.sequence, "id": change.documentID, "deleted": change.isDeleted,
      "conflicted": change.isConflicted,
    ]
    return object.jsonText
  }
}
