import Fleece
import HTTP
import Touchstone
import Views

// `_indexes`: the indexes of N1QL queries, for values and for full text (docs/http-reading.md). Those of `_find` are `_index`.
//
//   index   := { "name": NAME, "kind": "value" | "fulltext", "expressions": [ text* ], "where": text?, "unnest": text?, options of full text }
//   options := "language": text?, "ignore_accents": bool?, "stemming": bool?, "stop_words": "standard" | [ word* ], "weights": [ number* ]?

extension DatabaseCall {
  /// The answer to `GET` and `POST` of `_indexes`.
  func queryIndexes() throws -> HTTPAnswer {
    if method == "POST" { return try makeQueryIndex() }
    return try .json(["indexes": .array(try database.indexes.map(\.json))])
  }

  private func makeQueryIndex() throws -> HTTPAnswer {
    try checkIndexesWritable()
    var members = try IndexMembers(jsonBody())
    let name = try members.text("name") ?? ""
    guard !name.isEmpty else { throw IndexMembers.wrong("name", "a text") }
    let kind = try members.text("kind") ?? "value"
    let expressions = try members.texts("expressions") ?? []
    let condition = try members.text("where")
    let isNew: Bool
    do {
      switch kind {
      case "value":
        let definition = try ValueIndexDefinition(
          expressions, where: condition, unnest: members.text("unnest"))
        try members.finish()
        isNew = try database.createIndex(name, definition)
      case "fulltext":
        let definition = try FullTextIndexDefinition(
          expressions, where: condition, options: members.analysis(), weights: members.numbers("weights"))
        try members.finish()
        isNew = try database.createFullTextIndex(name, definition)
      default: throw IndexMembers.wrong("kind", "`value` or `fulltext`")
      }
    } catch let error as QueryError { return try .queryError(error) }
    return try .json(
      ["name": .string(name), "change": isNew ? "created" : "unchanged"], status: isNew ? 201 : 200)
  }

  /// The answer to `DELETE _indexes/{name}`.
  func deleteQueryIndex(_ name: String) throws -> HTTPAnswer {
    try checkIndexesWritable()
    guard try database.deleteIndex(name) else { throw CouchDBError.missing }
    return .ok()
  }

  /// Throws 403 if clients only read, and in databases of the server.
  private func checkIndexesWritable() throws {
    try checkWritable()
    guard !name.hasPrefix("_") else {
      throw CouchDBError(403, "forbidden", "the indexes of the server's own databases can't be changed")
    }
  }
}

/// The members of the description of an index. Each is read once; others are refused.
private struct IndexMembers {
  private var rest: JSONObject

  init(_ body: JSONValue) throws {
    guard let object = body.object else {
      throw CouchDBError(400, "bad_request", "Request body must be a JSON object")
    }
    rest = object
  }

  static func wrong(_ name: String, _ wanted: String) -> CouchDBError {
    CouchDBError(400, "bad_request", "`\(name)` must be \(wanted).")
  }

  private mutating func take(_ name: String) -> JSONValue? {
    guard let value = rest.removeValue(forKey: name), !value.isNull else { return nil }
    return value
  }

  mutating func text(_ name: String) throws -> String? {
    guard let value = take(name) else { return nil }
    guard let text = value.string else { throw Self.wrong(name, "a text") }
    return text
  }

  mutating func flag(_ name: String) throws -> Bool? {
    guard let value = take(name) else { return nil }
    guard let flag = value.bool else { throw Self.wrong(name, "true or false") }
    return flag
  }

  mutating func texts(_ name: String) throws -> [String]? {
    guard let value = take(name) else { return nil }
    guard let texts = value.array?.map(\.string), !texts.contains(nil) else {
      throw Self.wrong(name, "an array of texts")
    }
    return texts.compactMap { $0 }
  }

  mutating func numbers(_ name: String) throws -> [Double]? {
    guard let value = take(name) else { return nil }
    guard let numbers = value.array?.map(\.double), !numbers.contains(nil) else {
      throw Self.wrong(name, "an array of numbers")
    }
    return numbers.compactMap { $0 }
  }

  /// How the words of a full-text index are made.
  mutating func analysis() throws -> TextAnalysisOptions {
    var options = TextAnalysisOptions()
    if let text = try text("language") {
      guard let language = FullTextLanguage(text) else {
        let known = FullTextLanguage.allCases.map(\.rawValue).joined(separator: ", ")
        throw Self.wrong("language", "one of \(known)")
      }
      options.language = language
    }
    options.ignoresAccents = try flag("ignore_accents") ?? false
    options.stems = try flag("stemming") ?? true
    if rest["stop_words"]?.string == "standard" { _ = take("stop_words") }
    if let words = try texts("stop_words") { options.stopWords = words.isEmpty ? .none : .custom(words) }
    return options
  }

  /// Throws if a member hasn't been read.
  func finish() throws {
    guard let name = rest.keys.sorted().first else { return }
    throw CouchDBError(400, "bad_request", "`\(name)` isn't a member of such an index.")
  }
}

extension DatabaseIndex {
  /// Its description, as `POST _indexes` takes it.
  fileprivate var json: JSONValue {
    var members: JSONObject = ["name": .string(name), "kind": .string(kind)]
    func add(_ expressions: [QueryExpression], _ condition: QueryExpression?) {
      members["expressions"] = .array(expressions.map { .string($0.description) })
      if let condition { members["where"] = .string(condition.description) }
    }
    if let definition {
      add(definition.expressions, definition.condition)
      if let unnest = definition.unnest { members["unnest"] = .string("\(unnest.array) AS \(unnest.item)") }
    }
    if let fullText {
      add(fullText.expressions, fullText.condition)
      let options = fullText.options
      if let language = options.language { members["language"] = .string(language.rawValue) }
      members["ignore_accents"] = .bool(options.ignoresAccents)
      members["stemming"] = .bool(options.stems)
      members["stop_words"] =
        switch options.stopWords {
        case .standard: "standard"
        case .none: []
        case .custom(let words): .array(words.map { .string($0) })
        }
      if let weights = fullText.weights { members["weights"] = .array(weights.map { .double($0) }) }
    }
    return .object(members)
  }
}
