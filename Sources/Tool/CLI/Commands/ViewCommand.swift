import Fleece
import FoundationEssentials
import Touchstone
import Views

/// `touchstone view`: lists, makes, queries and removes map/reduce views.
struct ViewCommand: Subcommand {
  private static let action = Positional("ACTION", "list, create, query or delete").choosing(
    ["list", "create", "query", "delete"])
  private static let name = Positional(
    "NAME", "The view: DESIGN/VIEW is VIEW of the document _design/DESIGN; NAME alone is NAME/NAME",
    count: .optional)
  private static let map = Option("map", "FILE", "create: the map function in JavaScript")
  private static let reduce = Option(
    "reduce", "REDUCE",
    "create: _sum, _count, _stats, _approx_count_distinct, _first, _last, _top_N, _bottom_N or the file of a function. query: false for the rows as they are"
  )
  private static let key = Option("key", "JSON", "query: only rows with this key")
  private static let keys = Option("keys", "JSON", "query: only rows with a key of this array, in its order")
  private static let start = Option("startkey", "JSON", "query: the first key, in the order of the rows")
  private static let startDocument = Option("startkey-docid", "ID", "query: the first document with that key")
  private static let end = Option("endkey", "JSON", "query: the last key")
  private static let endDocument = Option("endkey-docid", "ID", "query: the last document with that key")
  private static let inclusiveEnd = Option(
    "inclusive-end", "BOOL", "query: false leaves out rows with the last key")
  private static let descending = Flag(
    "descending", "query: reverses the order; --startkey is the highest key then")
  private static let skip = Option("skip", "N", "query: leaves out the first N rows")
  private static let limit = Option("limit", "N", "query: the maximum number of rows")
  private static let group = Flag("group", "query: reduces the rows with equal keys to one")
  private static let groupLevel = Option(
    "group-level", "N", "query: reduces the rows whose array keys agree in the first N items to one")
  private static let includeDocuments = Flag("include-docs", "query: adds the documents")
  private static let conflicts = Flag(
    "conflicts", "query: adds the IDs of conflicting revisions to the documents")
  private static let update = Option(
    "update", "WHEN",
    "query: true (the default) brings the view up to date before, lazy after the query, false doesn't")

  private static let values = [
    key, keys, start, startDocument, end, endDocument, inclusiveEnd, skip, limit, groupLevel, update,
  ]
  private static let flags = [descending, group, includeDocuments, conflicts]
  private static var queryOptions: [any NamedOption] {
    values.map { $0 as any NamedOption } + flags.map { $0 as any NamedOption }
  }

  static let usage = Usage(
    "view", "Lists, makes, queries or removes map/reduce views",
    positionals: [DatabaseArguments.database, action, name],
    options: [map, reduce] + queryOptions + [DatabaseArguments.json] + DatabaseArguments.readingOptions,
    examples: [
      "touchstone view travel create types/count --map types.js --reduce _count",
      "touchstone view travel query types/count --group",
      "touchstone view travel query types/count --reduce false --key '\"hotel\"' --limit 10 --json",
      "touchstone view travel list", "touchstone view travel delete types/count",
    ],
    notes: """
      A map function is called with each document: function (doc) { emit(doc.type, null); }. create makes or
      changes the design document. The options of query have CouchDB's meaning. With --json, query prints
      CouchDB's answer, and list prints one object per line: name, rows, sequence, stale.
      """)

  private enum Action {
    case list
    case create(map: String, reduce: String?)
    case query([(name: String, value: String)])
    case delete
  }

  private let database: DatabaseArguments
  private let action: Action
  private let design: String
  private let view: String
  private let options: CouchDBViewOptions
  private let asJSON: Bool

  private var fullName: String { ViewName.joined(design, view) }

  init(_ arguments: Arguments) throws {
    database = try DatabaseArguments(arguments)
    asJSON = arguments[DatabaseArguments.json]
    let word = try arguments.required(Self.action)
    let name = arguments.optional(Self.name)
    let parts = (name ?? "").split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false).map(
      String.init)
    (design, view) = name.flatMap { ViewName.parts(of: $0) } ?? (parts[0], parts.last ?? "")
    let map = try arguments.value(Self.map)
    let reduce = try arguments.value(Self.reduce)
    let query = try Self.query(arguments)
    guard word == "create" || map == nil else {
      throw UsageError("--map works only with create, not with \(word)")
    }
    guard word == "create" || word == "query" || reduce == nil else {
      throw UsageError("--reduce works only with create and query, not with \(word)")
    }
    guard word == "query" || query.isEmpty else {
      throw UsageError("--\(query[0].name.replacing("_", with: "-")) works only with query, not with \(word)")
    }
    options = try CouchDBViewOptions(
      query: query + (word == "query" ? reduce.map { [("reduce", $0)] } ?? [] : []))
    switch (word, name) {
    case ("list", nil):
      action = .list
      return
    case ("list", let name?): throw UsageError("unexpected argument '\(name)'")
    case ("create", _): action = .create(map: map ?? "", reduce: reduce)
    case ("query", _): action = .query(query)
    case ("delete", _): action = .delete
    default: throw UsageError("'\(word)' isn't list, create, query or delete")
    }
    guard name != nil else { throw UsageError("NAME is missing") }
    guard !design.isEmpty, !view.isEmpty else { throw UsageError("'\(name ?? "")' isn't DESIGN/VIEW") }
    guard word != "create" || map != nil else {
      throw UsageError("--map is missing: name the file of the map function")
    }
  }

  /// CouchDB's options that are given, with their names in CouchDB.
  private static func query(_ arguments: Arguments) throws -> [(name: String, value: String)] {
    var query: [(name: String, value: String)] = []
    for option in values {
      guard let value = try arguments.value(option) else { continue }
      query.append((option.name.replacing("-", with: "_"), value))
    }
    for flag in flags where arguments[flag] { query.append((flag.name.replacing("-", with: "_"), "true")) }
    return query
  }

  func run(_ output: StandardOutput) throws {
    let database = try database.open()
    switch action {
    case .list: try list(database, output)
    case .create(let map, let reduce): try create(database, map, reduce)
    case .query: try query(database, output)
    case .delete: try delete(database)
    }
    try database.close()
  }

  // MARK: Actions

  private func list(_ database: Database, _ output: StandardOutput) throws {
    var table = TextTable([("view", .left), ("rows", .right), ("sequence", .right), ("up to date", .left)])
    let names = try database.viewNames
    for name in names {
      let view = try database.view(name)
      let (rows, sequence, isStale) = (try view.totalRows, try view.lastSequenceIndexed, try view.isStale)
      if asJSON {
        let object: JSONObjectText = ["name": name, "rows": rows, "sequence": sequence, "stale": isStale]
        try output.line(object.jsonText)
      } else {
        table.add(name, TextTable.grouped(rows), TextTable.grouped(sequence), isStale ? "no" : "yes")
      }
    }
    if !asJSON, !names.isEmpty { try output.lines(table.lines) }
  }

  private func create(_ database: Database, _ map: String, _ reduce: String?) throws {
    let id = "_design/" + design
    let stored = try database.document(id)
    var body = try stored?.value().object ?? ["language": "javascript"]
    if let language = body["language"], language != "javascript" {
      throw Refusal("\(id) isn't in JavaScript but in \(language)")
    }
    var definition: JSONObject = ["map": .string(try Self.text(map, "map"))]
    if let reduce {
      definition["reduce"] = .string(reduce.hasPrefix("_") ? reduce : try Self.text(reduce, "reduce"))
    }
    var views = body["views"]?.object ?? JSONObject()
    views[view] = .object(definition)
    body["views"] = .object(views)
    try database.checkDesign(design, body)
    if try stored?.value().object == body { return }
    try database.save(id, .value(.object(body)), basedOn: stored?.revisionID, onConflict: .fail)
  }

  private static func text(_ path: String, _ option: String) throws -> String {
    guard let data = FileManager.default.contents(atPath: path) else {
      throw UsageError("--\(option): there is no file \(path) that can be read")
    }
    guard let text = String(validating: data, as: UTF8.self) else {
      throw UsageError("--\(option): \(path) isn't UTF-8")
    }
    return String(text.trimming())
  }

  private func query(_ database: Database, _ output: StandardOutput) throws {
    let found = try database.couchDBView(design, view)
    if asJSON { return try found.answer(options) { try output.write($0) } }
    let answer = PiecesOfText()
    try found.answer(options) { answer.text += $0 }
    let rows = try answer.text.withUnsafeBytes { try JSONValue(json: $0) }["rows"].array ?? []
    guard let first = rows.first else { return }
    let names = ["id", "key", "value", "doc"].filter { name in
      rows.contains { $0.object?[name] != nil } || (name == "value" && first.object?["error"] != nil)
    }
    var table = TextTable(names.map { ($0, .left) })
    for row in rows {
      table.add(
        try names.map { name in
          let value: JSONValue? = row[name]
          return try Self.cell(value ?? (name == "value" ? row["error"] : nil))
        })
    }
    try output.lines(table.lines)
  }

  /// A string without quotes, anything else as JSON: one line of at most 60 characters.
  private static func cell(_ value: JSONValue?) throws -> String {
    guard let value else { return "" }
    let text = try value.string ?? value.canonicalJSON()
    let line = String(text.map { $0.isNewline || $0 == "\t" ? " " : $0 })
    return line.count > 60 ? line.prefix(59) + "…" : line
  }

  private func delete(_ database: Database) throws {
    let id = "_design/" + design
    let names = try database.viewNames
    guard
      let name = [fullName, view].first(where: { $0.isSame(as: names) && ($0 == fullName || design == view) })
    else { throw Refusal("there is no view \"\(fullName)\" in \(database.path)") }
    if let stored = try database.document(id), var body = try stored.value().object,
      var views = body["views"]?.object, views.removeValue(forKey: view) != nil
    {
      body["views"] = .object(views)
      if views.isEmpty, Set(body.keys).isSubset(of: ["views", "language"]) {
        try database.delete(id, basedOn: stored.revisionID, onConflict: .fail)
      } else {
        try database.save(id, .value(.object(body)), basedOn: stored.revisionID, onConflict: .fail)
      }
    }
    try database.view(name).delete()
  }
}

/// The pieces of an answer, put together.
private final class PiecesOfText {
  var text: [UInt8] = []
}

extension String {
  fileprivate func isSame(as names: [String]) -> Bool { names.contains { $0.utf8.elementsEqual(utf8) } }
}
