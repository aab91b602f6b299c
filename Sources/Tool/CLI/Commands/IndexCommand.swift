import Touchstone

/// `touchstone index`: lists, makes and removes indexes.
struct IndexCommand: Subcommand {
  private static let action = Positional("ACTION", "list, create or delete").choosing(
    ["list", "create", "delete"])
  private static let name = Positional("NAME", "The name of the index", count: .optional)
  private static let expressions = Positional(
    "EXPR", "The expressions to index, the most significant first", count: .any)
  private static let condition = Option("where", "EXPR", "Indexes only documents that meet this condition")
  private static let unnest = Option(
    "unnest", "ARRAY",
    "Indexes each item of an array, such as 'reviews AS r'; EXPR may then begin with r")

  private static let fullText = Flag("fulltext", "Indexes the words in EXPR, for MATCH")
  private static let language = Option(
    "language", "LANG", "The language for stemming: en, french, …"
  ) { text -> FullTextLanguage in
    guard let language = FullTextLanguage(text) else {
      let known = FullTextLanguage.allCases.map(\.rawValue).joined(separator: ", ")
      throw UsageError("there is no language '\(text)'; known are \(known)")
    }
    return language
  }
  private static let ignoresAccents = Flag("ignore-accents", "Ignores accents: 'name' finds 'ñame'")
  private static let stopWords = Option(
    "stop-words", "LIST", "The words not to index, separated by commas, or none (those of the language)")
  private static let noStemming = Flag("no-stemming", "Indexes words without stemming")
  private static let weights = Option(
    "weights", "LIST", "The weight of each EXPR for RANK, separated by commas: 2,1")

  static let usage = Usage(
    "index", "Lists, makes or removes indexes",
    positionals: [DatabaseArguments.database, action, name, expressions],
    options: [
      condition, unnest, fullText, language, ignoresAccents, stopWords, noStemming, weights,
      DatabaseArguments.json,
    ] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone index travel create byType type 'LOWER(name)' --where \"type IN ('hotel', 'airport')\"",
      "touchstone index travel create words name description --fulltext --language en --ignore-accents",
      "touchstone index travel list", "touchstone index travel delete byType",
    ],
    notes: """
      An index of the same name with another definition is replaced. If the same index exists already, nothing
      changes. With --json, list prints one object per line: name, kind, expressions, where, unnest. For a
      full-text index it adds language, ignoreAccents, stemming, stopWords, weights.
      """)

  private enum Action {
    case list
    case create(String, ValueIndexDefinition)
    case createFullText(String, FullTextIndexDefinition)
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
    let isFullText = arguments[Self.fullText]
    let options = try Self.analysis(arguments)
    let weights = try arguments.value(Self.weights)?.split(separator: ",").map { part in
      guard let weight = Double(part), weight.isFinite else {
        throw UsageError("--weights: '\(part)' isn't a number")
      }
      return weight
    }
    guard isFullText || (options == TextAnalysisOptions() && weights == nil) else {
      throw UsageError(
        "--language, --ignore-accents, --stop-words, --no-stemming and --weights need --fulltext")
    }
    guard !isFullText || (word == "create" && unnest == nil) else {
      throw UsageError("--fulltext works only with create, and not with --unnest")
    }
    guard word == "create" || (expressions.isEmpty && condition == nil && unnest == nil) else {
      throw UsageError("expressions, --where and --unnest work only with create, not with \(word)")
    }
    switch (word, name) {
    case ("list", nil): action = .list
    case ("list", let name?): throw UsageError("unexpected argument '\(name)'")
    case ("create", nil), ("delete", nil): throw UsageError("NAME is missing")
    case ("delete", let name?): action = .delete(name)
    case ("create", let name?):
      guard !expressions.isEmpty || unnest != nil else {
        throw UsageError("EXPR is missing: name at least one expression to index")
      }
      do {
        if isFullText {
          let definition = try FullTextIndexDefinition(
            expressions, where: condition, options: options, weights: weights)
          try definition.check()
          action = .createFullText(name, definition)
          return
        }
        let definition = try ValueIndexDefinition(expressions, where: condition, unnest: unnest)
        try definition.check()
        action = .create(name, definition)
      } catch let error as QueryError { throw UsageError("\(error)") }
    default: throw UsageError("'\(word)' isn't list, create or delete")
    }
  }

  private static func analysis(_ arguments: Arguments) throws -> TextAnalysisOptions {
    var options = TextAnalysisOptions(language: try arguments.value(language))
    options.ignoresAccents = arguments[ignoresAccents]
    options.stems = !arguments[noStemming]
    if let list = try arguments.value(stopWords) {
      let words = list.split(separator: ",").map { String($0.trimmingPrefix { $0 == " " }) }
      options.stopWords = list == "none" ? .none : .custom(words)
    }
    return options
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    switch action {
    case .list: try Self.list(database, asJSON: asJSON, to: output)
    case .create(let name, let definition): try database.createIndex(name, definition)
    case .createFullText(let name, let definition): try database.createFullTextIndex(name, definition)
    case .delete(let name):
      guard try database.deleteIndex(name) else {
        throw Refusal("there is no index \"\(name)\" in \(database.path)")
      }
    }
    try database.close()
  }

  /// Prints the indexes of a database.
  static func list(_ database: Database, asJSON: Bool, to output: StandardOutput) throws {
    let indexes = try database.indexes
    if asJSON {
      for index in indexes { try output.line(json(index).jsonText) }
    } else if !indexes.isEmpty {
      var table = TextTable([("index", .left), ("kind", .left), ("on", .left)])
      for index in indexes { table.add(index.name, index.kind, index.text) }
      try output.lines(table.lines)
    }
  }

  static func json(_ index: DatabaseIndex) -> JSONObjectText {
    var object: JSONObjectText = ["name": index.name, "kind": index.kind]
    if let definition = index.fullText { add(definition, to: &object) }
    guard let definition = index.definition else { return object }
    object.add("expressions", definition.expressions.map(\.description))
    object.add("where", definition.condition?.description)
    object.add("unnest", definition.unnest.map { "\($0.array.description) AS \($0.item)" })
    return object
  }

  private static func add(_ definition: FullTextIndexDefinition, to object: inout JSONObjectText) {
    object.add("expressions", definition.expressions.map(\.description))
    object.add("where", definition.condition?.description)
    let options = definition.options
    object.add("language", options.language?.rawValue)
    object.add("ignoreAccents", options.ignoresAccents)
    object.add("stemming", options.stems)
    switch options.stopWords {
    case .standard: object.add("stopWords", "standard")
    case .none: object.add("stopWords", [String]())
    case .custom(let words): object.add("stopWords", words)
    }
    object.add("weights", definition.weights)
  }
}
