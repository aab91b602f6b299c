import Touchstone

/// `touchstone get`: prints a document, one of its revisions, or all of them.
struct GetCommand: Subcommand {
  private static let id = Positional("ID", "The document's ID")
  private static let revision = Option("rev", "REV", "Prints this revision instead of the current one")
  private static let history = Flag("history", "Prints all known revisions, the current one first")
  private static let attachment = Option(
    "attachment", "NAME", "Prints the bytes of this attachment, or of the blob in the property NAME")

  static let usage = Usage(
    "get", "Prints a document",
    positionals: [DatabaseArguments.database, id],
    options: [revision, history, attachment, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone get travel airline_10", "touchstone get travel airline_10 --json --history",
      "touchstone get travel airline_10 --attachment logo.png > logo.png",
    ],
    notes: """
      Without --json, only the body is printed, and a deleted document gives status 1.
      """)

  private let database: DatabaseArguments
  private let id: String
  private let revisionID: RevisionID?
  private let showsHistory: Bool
  private let attachment: String?
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    id = try arguments.required(Self.id)
    revisionID = try arguments.value(Self.revision).map(parseRevisionID)
    showsHistory = arguments[Self.history]
    attachment = try arguments.value(Self.attachment)
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    guard let revisions = try database.revisions(of: id) else {
      throw Refusal("there is no document '\(id)' in \(database.path)")
    }
    guard let chosen = revisionID.map({ wanted in revisions.first { $0.id == wanted } }) ?? revisions.first
    else {
      throw Refusal("the document '\(id)' has no revision \(revisionID.map(\.description) ?? "")")
    }
    if let attachment {
      try write(attachment, of: chosen, in: database, to: output)
    } else if asJSON {
      try output.line(try json(chosen, revisions).jsonText)
    } else if showsHistory {
      var table = TextTable([("REVISION", .left), ("PARENT", .left), ("STATE", .left), ("BODY", .left)])
      for revision in revisions {
        var state = revision.isDeleted ? ["deleted"] : []
        if revision.isCurrent { state.append("current") } else if revision.isLeaf { state.append("leaf") }
        table.add(
          revision.id.description, revision.parent?.description ?? "", state.joined(separator: " "),
          revision.body == nil ? "" : "yes")
      }
      try output.lines(table.lines)
    } else {
      guard !chosen.isDeleted || revisionID != nil else {
        throw Refusal("the document '\(id)' was deleted (revision \(chosen.id))")
      }
      guard let body = chosen.body else {
        throw Refusal("the body of revision \(chosen.id) of document '\(id)' is no longer stored")
      }
      try output.line(try body.canonicalJSON())
    }
    try database.close()
  }

  /// Writes the bytes of an attachment or a blob.
  private func write(_ name: String, of revision: Revision, in database: Database, to output: StandardOutput)
    throws
  {
    guard let body = revision.body else {
      throw Refusal("the body of revision \(revision.id) of document '\(id)' is no longer stored")
    }
    guard
      let blob = Attachment(body[Attachment.property][name])?.blob ?? Blob(body[name])
    else { throw Refusal("the document '\(id)' has no attachment or blob '\(name)'") }
    let reader = try database.open(blob)
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = try reader.read(into: buffer)
      guard count > 0 else { break }
      try output.write(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  private func json(_ chosen: Revision, _ revisions: [Revision]) throws -> JSONObjectText {
    [
      "id": id, "rev": chosen.id.description, "sequence": chosen.sequence, "deleted": chosen.isDeleted,
      "body": try Self.body(chosen), "revisions": showsHistory ? try revisions.map(Self.json) : nil,
    ]
  }

  private static func json(_ revision: Revision) throws -> JSONObjectText {
    [
      "rev": revision.id.description,
      "parent": JSONLiteral(jsonText: revision.parent?.description.jsonText ?? "null"),
      "deleted": revision.isDeleted, "leaf": revision.isLeaf, "body": try body(revision),
    ]
  }

  private static func body(_ revision: Revision) throws -> JSONLiteral? {
    try revision.body.map { JSONLiteral(jsonText: try $0.canonicalJSON()) }
  }
}

/// Parses a revision ID. Throws a `UsageError` if `text` isn't one.
func parseRevisionID(_ text: String) throws -> RevisionID {
  guard let revision = RevisionID(text) else {
    throw UsageError("--rev: '\(text)' isn't a revision ID, such as 2-abc")
  }
  return revision
}
