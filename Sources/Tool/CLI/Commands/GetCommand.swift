import Touchstone

/// `touchstone get`: prints a document, one of its revisions, or all of them.
struct GetCommand: Subcommand {
  private static let ids = Positional(
    "ID", "The document's ID; with several, one document a line", count: .any)
  private static let file = Option(
    "ids", "FILE", "Prints the documents whose IDs are the lines of FILE (- for standard input)")
  private static let revision = Option("rev", "REV", "Prints this revision instead of the current one")
  private static let history = Flag("history", "Prints all known revisions, the current one first")
  private static let attachment = Option(
    "attachment", "NAME", "Prints the bytes of this attachment, or of the blob in the property NAME")

  static let usage = Usage(
    "get", "Prints a document, or several",
    positionals: [DatabaseArguments.database, ids],
    options: [revision, history, attachment, file, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone get travel airline_10", "touchstone get travel airline_10 --json --history",
      "touchstone get travel airline_10 --attachment logo.png > logo.png",
      "touchstone get travel airline_10 airline_112 --json",
      "touchstone ls travel --prefix hotel_ | touchstone get travel --ids - --json",
    ],
    notes: """
      Without --json, only the body is printed, and a deleted document gives status 1. Of several documents,
      those that are there are printed in the order of the IDs, and the status is 1 if one isn't.
      """)

  private let database: DatabaseArguments
  private let ids: [String]
  private let file: String?
  private let revisionID: RevisionID?
  private let showsHistory: Bool
  private let attachment: String?
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    ids = arguments.all(Self.ids)
    file = try arguments.value(Self.file)
    revisionID = try arguments.value(Self.revision).map(parseRevisionID)
    showsHistory = arguments[Self.history]
    attachment = try arguments.value(Self.attachment)
    asJSON = arguments[DatabaseArguments.json]
    guard !ids.isEmpty || file != nil else { throw UsageError("ID is missing") }
    guard ids.isEmpty || file == nil else { throw UsageError("ID and --ids can't be combined") }
    guard (ids.count == 1) || (revisionID == nil && !showsHistory && attachment == nil) else {
      throw UsageError("--rev, --history and --attachment work with one ID only")
    }
  }

  func run(_ output: StandardOutput) throws {
    let ids = try file.map(Self.lines) ?? ids
    let database = try database.open()
    if ids.count == 1, file == nil {
      try printOne(ids[0], of: database, to: output)
    } else {
      try printAll(ids, of: database, to: output)
    }
    try database.close()
  }

  /// The IDs in a file. Empty lines are none.
  private static func lines(_ path: String) throws -> [String] {
    guard let text = String(validating: try InputFile.bytes(path), as: UTF8.self) else {
      throw UsageError("--ids: \(path) isn't UTF-8")
    }
    return text.split(whereSeparator: \.isNewline).map(String.init)
  }

  private func printAll(_ ids: [String], of database: Database, to output: StandardOutput) throws {
    Interrupt.listen()
    var missing: [String] = []
    for id in ids {
      guard !Interrupt.isRequested else { throw Interrupted("the next document is '\(id)'") }
      guard let document = try database.document(id) else {
        missing.append(id)
        continue
      }
      let body = String(decoding: try document.json(), as: UTF8.self)
      let object: JSONObjectText = [
        "id": id, "rev": document.revisionID.description, "sequence": document.sequence, "deleted": false,
        "body": JSONLiteral(jsonText: body),
      ]
      try output.line(asJSON ? object.jsonText : body)
    }
    guard !missing.isEmpty else { return }
    let shown = missing.prefix(5).map { "'\($0)'" }.joined(separator: ", ") + (missing.count > 5 ? ", …" : "")
    throw Refusal(
      "\(missing.count) of \(ids.count) documents aren't in \(database.path): \(shown)")
  }

  private func printOne(_ id: String, of database: Database, to output: StandardOutput) throws {
    guard let revisions = try database.revisions(of: id) else {
      throw Refusal("there is no document '\(id)' in \(database.path)")
    }
    guard let chosen = revisionID.map({ wanted in revisions.first { $0.id == wanted } }) ?? revisions.first
    else {
      throw Refusal("the document '\(id)' has no revision \(revisionID.map(\.description) ?? "")")
    }
    if let attachment {
      try write(attachment, of: chosen, of: id, in: database, to: output)
    } else if asJSON {
      try output.line(try json(id, chosen, revisions).jsonText)
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
  }

  /// Writes the bytes of an attachment or a blob.
  private func write(
    _ name: String, of revision: Revision, of id: String, in database: Database, to output: StandardOutput
  ) throws {
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

  private func json(_ id: String, _ chosen: Revision, _ revisions: [Revision]) throws -> JSONObjectText {
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
