import Query
import TestSupport

/// What a query is asked of, and the query: a database is made by the steps, then the query is run in all ways.
///
/// Its text has a line each; `DifferentialCase(text:)` reads it:
///
///     save {"id":"d1","body":{"a":1}}
///     index {"name":"i0","on":["a"],"where":"b > 0"}
///     parameters {"p":1}
///     query SELECT a FROM _ WHERE a = $p
package struct DifferentialCase: Sendable {
  /// What makes the database.
  package var steps: [DatabaseStep]
  /// Steps that come while the query is watched; none where it isn't.
  package var liveSteps: [DatabaseStep] = []
  /// Steps of a batch in which the query is run, and which is undone then; none where there is no such batch.
  package var batchSteps: [DatabaseStep] = []
  /// The query.
  package var query: SelectStatement
  /// The values of its parameters.
  package var parameters = JSONObject()

  /// For tests of the shrinker: what is taken for wrong with a query of this text.
  package var planted: (@Sendable (String) -> String?)?

  /// A case.
  package init(steps: [DatabaseStep], query: SelectStatement, parameters: JSONObject = JSONObject()) {
    self.steps = steps
    self.query = query
    self.parameters = parameters
  }

  /// The case of a text.
  package init(text: String) throws {
    var steps: [DatabaseStep] = []
    var liveSteps: [DatabaseStep] = []
    var batchSteps: [DatabaseStep] = []
    var query: SelectStatement?
    var parameters = JSONObject()
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
      let words = line.split(separator: " ", maxSplits: 1).map(String.init)
      guard words.count == 2 else { continue }
      switch words[0] {
      case "query": query = try SelectStatement(parsing: words[1])
      case "parameters": parameters = try JSONValue(json: words[1]).object ?? JSONObject()
      case "live", "batch":
        let inner = words[1].split(separator: " ", maxSplits: 1).map(String.init)
        guard inner.count == 2 else { continue }
        let step = try DatabaseStep(inner[0], JSONValue(json: inner[1]))
        if words[0] == "live" { liveSteps.append(step) } else { batchSteps.append(step) }
      default: steps.append(try DatabaseStep(words[0], JSONValue(json: words[1])))
      }
    }
    guard let query else { throw QueryError(.syntax, "there is no line that begins with query") }
    self.init(steps: steps, query: query, parameters: parameters)
    self.liveSteps = liveSteps
    self.batchSteps = batchSteps
  }

  /// The text.
  package var text: String {
    var lines = steps.map(\.text) + liveSteps.map { "live \($0.text)" }
    lines += batchSteps.map { "batch \($0.text)" }
    if !parameters.isEmpty { lines.append("parameters \(naiveJSON(.object(parameters)))") }
    lines.append("query \(query.description)")
    return lines.joined(separator: "\n")
  }
}

/// One change of a database.
package enum DatabaseStep: Sendable {
  case save(id: String, body: JSONValue)
  case delete(id: String)
  case purge(id: String)
  /// Milliseconds since 1970; nil takes the expiration away.
  case expire(id: String, at: Int64?)
  case index(name: String, on: [String], condition: String?, unnest: String?)
  case fullText(name: String, on: [String], condition: String?, language: String?)
  case deleteIndex(name: String)
  /// A statement that changes documents.
  case change(String)

  init(_ kind: String, _ value: JSONValue) throws {
    func text(_ name: String) -> String? { value[name].string }
    let id = text("id") ?? ""
    let name = text("name") ?? ""
    let on = (value["on"].array ?? []).compactMap(\.string)
    switch kind {
    case "save": self = .save(id: id, body: value["body"])
    case "delete": self = .delete(id: id)
    case "purge": self = .purge(id: id)
    case "expire": self = .expire(id: id, at: value["at"].int)
    case "index": self = .index(name: name, on: on, condition: text("where"), unnest: text("unnest"))
    case "fulltext":
      self = .fullText(name: name, on: on, condition: text("where"), language: text("language"))
    case "drop": self = .deleteIndex(name: name)
    case "change": self = .change(text("statement") ?? "")
    default: throw QueryError(.syntax, "there is no step \"\(kind)\"")
    }
  }

  /// Its line in a case's text.
  package var text: String {
    func line(_ kind: String, _ members: [(String, JSONValue?)]) -> String {
      let present = members.compactMap { name, value in value.map { (name, $0) } }
      // In this order, the longest last.
      return kind + " {"
        + present.map { "\(naiveJSON(.string($0))):\(naiveJSON($1))" }.joined(separator: ",") + "}"
    }
    func list(_ texts: [String]) -> JSONValue { .array(texts.map { .string($0) }) }
    switch self {
    case .save(let id, let body): return line("save", [("id", .string(id)), ("body", body)])
    case .delete(let id): return line("delete", [("id", .string(id))])
    case .purge(let id): return line("purge", [("id", .string(id))])
    case .expire(let id, let at): return line("expire", [("id", .string(id)), ("at", at.map { .int($0) })])
    case .index(let name, let on, let condition, let unnest):
      return line(
        "index",
        [
          ("name", .string(name)), ("on", list(on)), ("where", condition.map { .string($0) }),
          ("unnest", unnest.map { .string($0) }),
        ])
    case .fullText(let name, let on, let condition, let language):
      return line(
        "fulltext",
        [
          ("name", .string(name)), ("on", list(on)), ("where", condition.map { .string($0) }),
          ("language", language.map { .string($0) }),
        ])
    case .deleteIndex(let name): return line("drop", [("name", .string(name))])
    case .change(let statement): return line("change", [("statement", .string(statement))])
    }
  }

  /// Whether it changes documents.
  var isOfDocuments: Bool {
    switch self {
    case .save, .delete, .purge, .expire: true
    case .index, .fullText, .deleteIndex, .change: false
    }
  }

  /// Whether it is a statement.
  var isStatement: Bool { if case .change = self { true } else { false } }
}
