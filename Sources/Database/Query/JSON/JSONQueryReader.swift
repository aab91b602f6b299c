// Reads queries in the JSON form of LiteCore, the core of Couchbase Lite (docs/query-json.md).

import Fleece
import Storage

extension SelectStatement {
  /// Reads a query in the JSON form of LiteCore: `["SELECT", {"WHAT": …, "WHERE": …}]`, the object alone, or a
  /// condition alone.
  ///
  /// ```swift
  /// let query = try SelectStatement(json: ["SELECT", ["WHAT": [[".name"]], "WHERE": ["=", [".type"], "hotel"]]])
  /// ```
  ///
  /// - Parameter json: the query.
  /// - Throws: a `QueryError` that names the part with the mistake.
  public init(json: JSONValue) throws(QueryError) {
    var reader = JSONQueryReader()
    self = try reader.statement(json)
  }

  /// Whether a text is a query in JSON: it begins with a bracket or a brace.
  package static func isJSON(_ text: String) -> Bool {
    for byte in text.utf8 {
      switch byte {
      case UInt8(ascii: " "), UInt8(ascii: "\n"), UInt8(ascii: "\r"), UInt8(ascii: "\t"): continue
      default: return byte == UInt8(ascii: "[") || byte == UInt8(ascii: "{")
      }
    }
    return false
  }

  /// Reads a query from JSON text.
  package init(jsonText text: String) throws(QueryError) {
    let json: JSONValue
    do { json = try JSONValue(json: text) } catch {
      throw QueryError(.syntax, "the query begins like JSON, and isn't: \(error)")
    }
    try self.init(json: json)
  }
}

/// Reads one query. Errors say where by the names of clauses and operations: `WHERE, AND, LIKE`.
struct JSONQueryReader {
  /// The operations around the current one, for messages, and the depth.
  var context: [String] = []
  /// The aliases of the sources, of the queries around too.
  var aliases: Set<String> = []
  /// The number of values that were read.
  private var values = 0

  func fault(_ message: String, _ code: QueryError.Code = .syntax) -> QueryError {
    let place = context.isEmpty ? "" : " (in \(context.suffix(6).joined(separator: ", ")))"
    return QueryError(code, message + place)
  }

  /// Reads in an operation or a clause. JSON can be nested deeper than a query.
  mutating func inside<Result>(
    _ name: String, _ body: (inout JSONQueryReader) throws(QueryError) -> Result
  ) throws(QueryError) -> Result {
    guard context.count < Parser.depthLimit else {
      throw QueryError(.tooDeep, "the query is nested deeper than \(Parser.depthLimit) levels")
    }
    context.append(name)
    let result = try body(&self)
    context.removeLast()
    return result
  }

  /// Counts a value of the query.
  mutating func countValue() throws(QueryError) {
    values += 1
    guard values <= QuerySize.tokens else {
      throw fault("a query has at most \(QuerySize.tokens) values; give long lists by parameters", .tooLarge)
    }
  }

  mutating func statement(_ json: JSONValue) throws(QueryError) -> SelectStatement {
    if let clauses = json.object { return try select(clauses) }
    guard let items = json.array else { throw fault("a query is an array or an object") }
    if items.first?.string?.uppercased() == "SELECT" { return try select(items) }
    var query = SelectStatement(results: Self.standardResults, source: DataSource())
    query.condition = try inside("WHERE") { reader throws(QueryError) in try reader.expression(json) }
    return query
  }

  mutating func select(_ items: [JSONValue]) throws(QueryError) -> SelectStatement {
    guard items.count == 2, let clauses = items[1].object else {
      throw fault("SELECT takes an object of clauses")
    }
    return try select(clauses)
  }

  /// What a query without WHAT gives.
  private static let standardResults = [
    ResultColumn(.meta(source: nil, .id), as: "_id" as String?),
    ResultColumn(.meta(source: nil, .sequence), as: "_sequence" as String?),
  ]

  private static let clauses = [
    "WHAT", "FROM", "WHERE", "GROUP_BY", "HAVING", "ORDER_BY", "LIMIT", "OFFSET", "DISTINCT",
  ]

  private mutating func select(_ clauses: JSONObject) throws(QueryError) -> SelectStatement {
    var found: [String: JSONValue] = [:]
    for (name, value) in clauses {
      let upper = name.uppercased()
      guard Self.clauses.contains(upper) else {
        throw fault("there is no clause \"\(name)\"\(Suggestions.hint(for: upper, among: Self.clauses))")
      }
      found[upper] = value
    }
    let outer = aliases
    defer { aliases = outer }
    var query = SelectStatement(results: Self.standardResults, source: DataSource())
    if let from = found["FROM"] {
      try inside("FROM") { reader throws(QueryError) in try reader.read(from, into: &query) }
    }
    if let what = found["WHAT"] {
      query.results = try inside("WHAT") { reader throws(QueryError) in try reader.results(what) }
    } else if let alias = query.source?.alias, !query.joins.isEmpty {
      query.results = [
        ResultColumn(.meta(source: SourceName(alias), .id), as: "_id"),
        ResultColumn(.meta(source: SourceName(alias), .sequence), as: "_sequence"),
      ]
    }
    query.condition = try clause("WHERE", found)
    if let terms = found["GROUP_BY"] {
      query.groupBy = try inside("GROUP_BY") { reader throws(QueryError) in
        var list: [QueryExpression] = []
        for term in try reader.list(terms) { list.append(try reader.term(term)) }
        return list
      }
    }
    query.having = try clause("HAVING", found)
    if let terms = found["ORDER_BY"] {
      query.orderBy = try inside("ORDER_BY") { reader throws(QueryError) in try reader.orderings(terms) }
    }
    query.limit = try clause("LIMIT", found)
    query.offset = try clause("OFFSET", found)
    if let distinct = found["DISTINCT"] {
      guard let isDistinct = distinct.bool else { throw fault("DISTINCT is true or false") }
      query.isDistinct = isDistinct
    }
    return query
  }

  private mutating func clause(
    _ name: String, _ clauses: [String: JSONValue]
  ) throws(QueryError) -> QueryExpression? {
    guard let json = clauses[name] else { return nil }
    return try inside(name) { reader throws(QueryError) in try reader.expression(json) }
  }

  func list(_ json: JSONValue) throws(QueryError) -> [JSONValue] {
    guard let items = json.array, !items.isEmpty else { throw fault("expected an array of expressions") }
    return items
  }

  /// A term of a list. A text that begins with a dot is a property here.
  private mutating func term(_ json: JSONValue) throws(QueryError) -> QueryExpression {
    if let text = json.string, text.hasPrefix(".") { return try expression(.array([json])) }
    return try expression(json)
  }

  private mutating func results(_ json: JSONValue) throws(QueryError) -> [ResultColumn] {
    var results: [ResultColumn] = []
    for item in try list(json) {
      if let parts = item.array, parts.first?.string?.uppercased() == "AS" {
        guard parts.count == 3, let name = parts[2].string else {
          throw fault("AS takes an expression and a name")
        }
        results.append(ResultColumn(try term(parts[1]), as: name))
      } else {
        results.append(ResultColumn(try term(item)))
      }
    }
    return results
  }

  private mutating func orderings(_ json: JSONValue) throws(QueryError) -> [Ordering] {
    var orderings: [Ordering] = []
    for item in try list(json) {
      let word = item.array?.first?.string?.uppercased()
      if let parts = item.array, word == "DESC" || word == "ASC" {
        guard parts.count == 2 else { throw fault("\(word ?? "") takes one expression") }
        orderings.append(Ordering(try term(parts[1]), isDescending: word == "DESC"))
      } else {
        orderings.append(Ordering(try term(item)))
      }
    }
    return orderings
  }

  // MARK: FROM

  private mutating func read(_ json: JSONValue, into query: inout SelectStatement) throws(QueryError) {
    let sources = try list(json)
    // Conditions can use the aliases of all sources.
    for source in sources { if let alias = source.object?["AS"]?.string { aliases.insert(alias) } }
    for (number, json) in sources.enumerated() {
      guard let source = json.object else { throw fault("a source is an object") }
      for (name, _) in source where !["AS", "COLLECTION", "JOIN", "ON", "UNNEST"].contains(name) {
        throw fault("a source has no \"\(name)\"")
      }
      let alias = source["AS"]?.string
      let data = DataSource(source["COLLECTION"]?.string ?? "_", as: alias)
      if number == 0 {
        guard source["JOIN"] == nil, source["ON"] == nil, source["UNNEST"] == nil else {
          throw fault("the first source has no JOIN, ON and UNNEST")
        }
        query.source = data
      } else if let array = source["UNNEST"] {
        guard let alias else { throw fault("UNNEST needs AS") }
        let items = try inside("UNNEST") { reader throws(QueryError) in try reader.term(array) }
        query.joins.append(.unnest(items, as: ByteString(alias), isLeftOuter: false))
      } else {
        query.joins.append(try join(source, data))
      }
    }
  }

  private mutating func join(_ source: JSONObject, _ data: DataSource) throws(QueryError) -> JoinClause {
    let kind: JoinKind
    switch source["JOIN"]?.string?.uppercased() {
    case nil, "INNER": kind = .inner
    case "LEFT", "OUTER", "LEFT OUTER": kind = .leftOuter
    case "CROSS": kind = .cross
    case .some(let other): throw fault("there is no JOIN \"\(other)\": INNER, LEFT OUTER and CROSS")
    }
    guard data.alias != nil else { throw fault("a joined source needs AS") }
    guard let condition = source["ON"] else {
      guard kind == .cross else { throw fault("a join needs ON") }
      return .join(kind, data, on: nil)
    }
    let on = try inside("ON") { reader throws(QueryError) in try reader.expression(condition) }
    return .join(kind, data, on: on)
  }
}
