import Bytes
import Touchstone

/// `touchstone conflicts`: lists, shows and resolves conflicts.
struct ConflictsCommand: Subcommand {
  private static let id = Positional(
    "ID", "The document to show or to resolve; all if left out", count: .optional)
  private static let keep = Option("keep", "REV", "Resolves the conflict: this revision's branch goes on")
  private static let merged = Option(
    "merged", "FILE", "Resolves the conflict with the JSON object in FILE (- for standard input)")
  private static let limit = Option(
    "limit", "N", in: 0...Int.max, "The maximum number of documents that are listed")

  static let usage = Usage(
    "conflicts", "Lists, shows and resolves conflicts",
    positionals: [DatabaseArguments.database, id],
    options: [keep, merged, limit, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone conflicts travel", "touchstone conflicts travel airline_10",
      "touchstone conflicts travel airline_10 --keep 3-abc",
      "touchstone conflicts travel airline_10 --merged merged.json",
    ],
    notes: """
      The properties of the conflicting revisions stand side by side, the current revision first, and before
      them their common ancestor if its body is still stored. Properties that are equal everywhere are left
      out. A merged object becomes a new revision on top of the one that --keep names, by default the current
      one. The other branches end with tombstones, which others get. The status is 1 if the document has no
      conflict. docs/conflicts.md describes conflicts.
      """)

  private let database: DatabaseArguments
  private let id: String?
  private let keep: RevisionID?
  private let mergedPath: String?
  private let limit: Int
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    id = arguments.optional(Self.id)
    keep = try arguments.value(Self.keep).map { text in
      guard let revision = RevisionID(text) else {
        throw UsageError("--keep: '\(text)' isn't a revision ID, such as 2-abc")
      }
      return revision
    }
    mergedPath = try arguments.value(Self.merged)
    let limit = try arguments.value(Self.limit)
    guard id != nil || (keep == nil && mergedPath == nil) else {
      throw UsageError("--keep and --merged need the ID of a document")
    }
    guard id == nil || limit == nil else { throw UsageError("--limit works only without an ID") }
    self.limit = limit ?? .max
    asJSON = arguments[DatabaseArguments.json]
  }

  func run(_ output: StandardOutput) throws {
    let merged = try mergedPath.map(Self.body)
    let database = try database.open()
    if let id {
      let leaves = try database.conflicts(of: id)
      guard let current = leaves.first else {
        let isThere = try database.document(id, includeDeleted: true) != nil
        throw Refusal(
          isThere
            ? "the document '\(id)' has no conflict" : "there is no document '\(id)' in \(database.path)")
      }
      if keep != nil || merged != nil {
        try resolve(id, leaves, keeping: keep ?? current.id, merged, database, output)
      } else {
        try show(id, leaves, database, output)
      }
    } else {
      try list(database, output)
    }
    try database.close()
  }

  private static func body(_ path: String) throws -> JSONValue {
    try JSONInput.object(InputFile.bytes(path), "--merged: \(path == "-" ? "standard input" : path)")
  }

  private func list(_ database: Database, _ output: StandardOutput) throws {
    var table = TextTable(["ID", "REVISIONS"])
    var count = 0
    guard limit > 0 else { return }
    try database.enumerateRows(AllDocuments(.onlyConflicts)) { row in
      let id = row.documentID ?? row.key
      let revisions = row.conflictingRevisions.map(\.id.description)
      if asJSON {
        let object: JSONObjectText = ["id": id, "revisions": revisions]
        try output.line(object.jsonText)
      } else {
        table.add(id, revisions.joined(separator: " "))
      }
      count += 1
      return count < limit
    }
    if !asJSON, count > 0 { try output.lines(table.lines) }
  }

  private func resolve(
    _ id: String, _ leaves: [Revision], keeping revision: RevisionID, _ merged: JSONValue?,
    _ database: Database,
    _ output: StandardOutput
  ) throws {
    guard leaves.contains(where: { $0.id == revision }) else {
      let known = leaves.map(\.id.description).joined(separator: ", ")
      throw Refusal("\(revision) isn't one of the conflicting revisions of '\(id)': \(known)")
    }
    try database.resolveConflict(of: id, keeping: revision, merged: merged.map(DocumentBody.value))
    guard let document = try database.document(id) else { return }
    let object: JSONObjectText = [
      "id": id, "rev": document.revisionID.description, "sequence": document.sequence,
    ]
    try output.line(asJSON ? object.jsonText : document.revisionID.description)
  }

  private func show(_ id: String, _ leaves: [Revision], _ database: Database, _ output: StandardOutput) throws
  {
    let base =
      try leaves.count == 2 ? database.commonAncestor(of: leaves[0].id, and: leaves[1].id, in: id) : nil
    func json(_ revision: Revision) throws -> JSONObjectText {
      let body = try revision.body.map { JSONLiteral(jsonText: try $0.canonicalJSON()) }
      return ["rev": revision.id.description, "body": body]
    }
    guard !asJSON else {
      let object: JSONObjectText = [
        "id": id, "ancestor": try base.map(json), "revisions": try leaves.map(json),
      ]
      return try output.line(object.jsonText)
    }
    var shown: [(title: String, body: JSONValue?)] = leaves.enumerated().map { index, leaf in
      (leaf.id.description + (index == 0 ? " (current)" : ""), leaf.body)
    }
    if let base, base.body != nil { shown.insert((base.id.description + " (ancestor)", base.body), at: 0) }
    try output.lines(Self.comparison(shown))
  }

  /// The lines of a table with a column for each body, and a row for each property that isn't the same in all.
  static func comparison(_ bodies: [(title: String, body: JSONValue?)]) throws -> [String] {
    let columns = try bodies.map { try $0.body.map { try properties(of: $0) } ?? [:] }
    var table = TextTable(["property"] + bodies.map(\.title))
    var equal = 0
    for path in Set(columns.flatMap(\.keys)).sorted() {
      let cells = columns.map { $0[path] }
      guard Set(cells).count > 1 else {
        equal += 1
        continue
      }
      table.add([path.string] + cells.map { cell in RowPrinter.cell(cell?.string ?? "") })
    }
    let note = equal == 1 ? "1 property is the same" : "\(equal) properties are the same"
    return table.lines + (equal > 0 ? [note] : [])
  }

  /// The JSON of each property, by its path. Objects are taken apart, arrays aren't.
  private static func properties(of body: JSONValue) throws -> [ByteString: ByteString] {
    var result: [ByteString: ByteString] = [:]
    func add(_ value: JSONValue, _ path: String) throws {
      if case .object(let members) = value, !members.isEmpty {
        for (name, member) in members { try add(member, path.isEmpty ? name : path + "." + name) }
      } else if !path.isEmpty {
        result[ByteString(path)] = ByteString(try value.canonicalJSON())
      }
    }
    try add(body, "")
    return result
  }
}
