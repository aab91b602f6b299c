import Touchstone

/// `touchstone local`: reads and writes local documents.
struct LocalCommand: Subcommand {
  private static let action = Positional("ACTION", "list, get, put or rm").choosing(
    ["list", "get", "put", "rm"])
  private static let id = Positional("ID", "The local document's ID", count: .optional)
  private static let body = Positional(
    "JSON", "For put: the body, a JSON object; - for standard input", count: .optional)
  private static let revision = Option<UInt64>(
    "rev", "REV", "For put and rm: the revision that is there, such as 2-local; status 1 if another one is"
  ) { text in
    guard text.hasSuffix("-local"), let generation = UInt64(text.dropLast(6)) else {
      throw UsageError("'\(text)' isn't a local document's revision, such as 2-local")
    }
    return generation
  }

  static let usage = Usage(
    "local", "Reads and writes local documents, which are never synced",
    positionals: [DatabaseArguments.database, action, id, body],
    options: [revision, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone local travel put settings '{\"theme\":\"dark\"}'", "touchstone local travel list",
      "touchstone local travel get settings", "touchstone local travel rm settings",
    ],
    notes: """
      Replications keep their checkpoints in local documents: who changes one begins a replication anew. With
      --json, get and put print id, rev and (get) body. Without --rev, the last write wins.
      """)

  private enum Action {
    case list
    case get(String)
    case put(String, String)
    case remove(String)
  }

  private let database: DatabaseArguments
  private let action: Action
  private let generation: UInt64?
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    generation = try arguments.value(Self.revision)
    asJSON = arguments[DatabaseArguments.json]
    let word = try arguments.required(Self.action)
    guard ["list", "get", "put", "rm"].contains(word) else {
      throw UsageError("'\(word)' isn't list, get, put or rm")
    }
    guard generation == nil || word == "put" || word == "rm" else {
      throw UsageError("--rev works only with put and rm")
    }
    switch (word, arguments.optional(Self.id), arguments.optional(Self.body)) {
    case ("list", nil, _): action = .list
    case ("list", let id?, _): throw UsageError("unexpected argument '\(id)'")
    case (_, nil, _): throw UsageError("ID is missing")
    case ("put", _, nil): throw UsageError("JSON is missing")
    case ("put", let id?, let body?): action = .put(id, body)
    case (_, _, let body?): throw UsageError("unexpected argument '\(body)'")
    case ("get", let id?, nil): action = .get(id)
    case (_, let id?, nil): action = .remove(id)
    }
  }

  func run(_ output: StandardOutput) throws {
    let control: ConcurrencyControl = generation == nil ? .lastWriteWins : .fail
    switch action {
    case .list:
      let database = try database.open()
      for id in try database.localDocumentIDs() {
        guard asJSON else {
          try output.line(id)
          continue
        }
        if let document = try database.localDocument(id) { try print(document, withBody: false, output) }
      }
      try database.close()
    case .get(let id):
      let database = try database.open()
      guard let document = try database.localDocument(id) else {
        throw Refusal("there is no local document '\(id)' in \(database.path)")
      }
      if asJSON {
        try print(document, withBody: true, output)
      } else {
        try output.line(document.body.canonicalJSON())
      }
      try database.close()
    case .put(let id, let text):
      let json = text == "-" ? try StandardInput.bytes() : Array(text.utf8)
      let body = try JSONInput.object(json, "the body")
      let database = try database.open()
      let saved = try database.saveLocalDocument(id, body, basedOn: generation, onConflict: control)
      if asJSON { try print(saved, withBody: false, output) } else { try output.line(saved.revisionID) }
      try database.close()
    case .remove(let id):
      let database = try database.open()
      try database.deleteLocalDocument(id, basedOn: generation, onConflict: control)
      try database.close()
    }
  }

  private func print(_ document: LocalDocument, withBody: Bool, _ output: StandardOutput) throws {
    let body = withBody ? JSONLiteral(jsonText: try document.body.canonicalJSON()) : nil
    let object: JSONObjectText = ["id": document.id, "rev": document.revisionID, "body": body]
    try output.line(object.jsonText)
  }
}
