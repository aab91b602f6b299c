import Touchstone

/// `touchstone index`: which indexes there are; makes and removes them.
struct IndexCommand: Subcommand {
  private static let action = Positional("ACTION", "list, create or delete")
  private static let name = Positional("NAME", "The index's name", count: .optional)
  private static let expressions = Positional(
    "EXPR", "What is indexed: paths and functions, the most significant first", count: .any)
  private static let condition = Option("where", "EXPR", "Only documents that meet this are in the index")
  private static let unnest = Option(
    "unnest", "ARRAY",
    "An entry for each item of an array, such as 'reviews AS r'; EXPR may then begin with r")

  static let usage = Usage(
    "index", "Lists, makes or removes indexes",
    positionals: [DatabaseArguments.database, action, name, expressions],
    options: [condition, unnest, DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone index travel create byType type 'LOWER(name)' --where \"type IN ('hotel', 'airport')\"",
      "touchstone index travel list", "touchstone index travel delete byType",
    ],
    notes: """
      An index of that name with another definition is replaced; when there is just this one, nothing is done.
      With --json, list prints one object a line: name, kind, expressions, where, unnest.
      """)

  private enum Action {
    case list
    case create(String, ValueIndexDefinition)
    case delete(String)
  }

  private let database: DatabaseArguments
  private let action: Action
  private let asJSON: Bool

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    asJSON = arguments[DatabaseArguments.json]
    let expressions = arguments.all(Self.expressions)
    let condition = try arguments.value(Self.condition)
    let unnest = try arguments.value(Self.unnest)
    let name = arguments.optional(Self.name)
    let word = try arguments.required(Self.action)
    guard word == "create" || (expressions.isEmpty && condition == nil && unnest == nil) else {
      throw UsageError("expressions, --where and --unnest go with create, not with \(word)")
    }
    switch (word, name) {
    case ("list", nil): action = .list
    case ("list", let name?): throw UsageError("unexpected argument '\(name)'")
    case ("create", nil), ("delete", nil): throw UsageError("NAME is missing")
    case ("delete", let name?): action = .delete(name)
    case ("create", let name?):
      guard !expressions.isEmpty || unnest != nil else {
        throw UsageError("EXPR is missing: what is to be indexed")
      }
      do {
        let definition = try ValueIndexDefinition(expressions, where: condition, unnest: unnest)
        try definition.check()
        action = .create(name, definition)
      } catch let error as QueryError { throw UsageError("\(error)") }
    default: throw UsageError("'\(word)' is none of list, create and delete")
    }
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    switch action {
    case .list:
      let indexes = try database.indexes
      if asJSON {
        for index in indexes { try output.line(Self.json(index).text) }
      } else if !indexes.isEmpty {
        var table = TextTable([("index", .left), ("kind", .left), ("on", .left)])
        for index in indexes { table.add(index.name, index.kind, index.text) }
        for line in table.lines { try output.line(line) }
      }
    case .create(let name, let definition): try database.createIndex(name, definition)
    case .delete(let name):
      guard try database.deleteIndex(name) else {
        throw Refusal("there is no index \"\(name)\" in \(database.path)")
      }
    }
    try database.close()
  }

  static func json(_ index: DatabaseIndex) -> JSONObject {
    var object = JSONObject()
    object.add("name", index.name)
    object.add("kind", index.kind)
    guard let definition = index.definition else { return object }
    let expressions = definition.expressions.map { JSONObject.quoted($0.description) }
    object.add("expressions", json: "[" + expressions.joined(separator: ",") + "]")
    if let condition = definition.condition { object.add("where", condition.description) }
    if let unnest = definition.unnest {
      object.add("unnest", "\(unnest.array.description) AS \(unnest.item)")
    }
    return object
  }
}
