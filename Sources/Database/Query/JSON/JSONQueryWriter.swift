// Writes queries in the JSON form of LiteCore (docs/query-json.md).

import Fleece
import Storage

extension SelectStatement {
  /// The query in the JSON form of LiteCore. `SelectStatement(json:)` reads the same query from it.
  ///
  /// - Throws: a `QueryError` (`unsupported`) that names a part that the JSON form doesn't have, such as UNION,
  ///   LET or a window.
  public func json() throws(QueryError) -> JSONValue {
    let writer = JSONQueryWriter(aliases: [])
    return .array(["SELECT", .object(try writer.clauses(of: self))])
  }
}

/// Writes one query.
struct JSONQueryWriter {
  /// The aliases of the sources, of the queries around too.
  var aliases: Set<ByteString>
  /// The variables of ANY and EVERY.
  var variables: Set<ByteString> = []

  private func missing(_ part: String) -> QueryError {
    QueryError(.unsupported, "\(part) has no JSON form")
  }

  func clauses(of query: SelectStatement) throws(QueryError) -> JSONObject {
    try checkClauses(of: query)
    var inner = self
    var sources: [JSONObject] = []
    if let source = query.source { sources.append(try inner.source(source)) }
    for join in query.joins {
      switch join {
      case .join(_, let source, _): _ = try inner.source(source)
      case .unnest(_, let alias, _): inner.aliases.insert(alias)
      case .nest: throw missing("NEST")
      }
    }
    for join in query.joins { sources.append(try inner.object(of: join)) }
    var object = JSONObject()
    if query.isDistinct { object["DISTINCT"] = true }
    var results: [JSONValue] = []
    for result in query.results {
      let value = try inner.json(result.expression)
      results.append(result.alias.map { .array(["AS", value, .string($0.string)]) } ?? value)
    }
    object["WHAT"] = .array(results)
    if sources.count > 1 || sources.first.map({ $0.count > 0 }) ?? false {
      object["FROM"] = .array(sources.map { .object($0) })
    }
    if let condition = query.condition { object["WHERE"] = try inner.json(condition) }
    guard query.groupingSets.isEmpty else { throw missing("GROUPING SETS") }
    if !query.groupBy.isEmpty { object["GROUP_BY"] = .array(try inner.json(query.groupBy)) }
    if let having = query.having { object["HAVING"] = try inner.json(having) }
    var orderings: [JSONValue] = []
    for ordering in query.orderBy {
      guard ordering.nulls == nil else { throw missing("NULLS FIRST or LAST") }
      let value = try inner.json(ordering.expression)
      orderings.append(ordering.isDescending ? .array(["DESC", value]) : value)
    }
    if !orderings.isEmpty { object["ORDER_BY"] = .array(orderings) }
    if let limit = query.limit { object["LIMIT"] = try inner.json(limit) }
    if let offset = query.offset { object["OFFSET"] = try inner.json(offset) }
    return object
  }

  private func checkClauses(of query: SelectStatement) throws(QueryError) {
    if query.combination != nil { throw missing("a set of queries") }
    if !query.with.isEmpty { throw missing("WITH") }
    if query.isRaw { throw missing("SELECT RAW") }
    if !query.excluded.isEmpty { throw missing("EXCLUDE") }
    if !query.lets.isEmpty || !query.letting.isEmpty { throw missing("LET") }
    if !query.groupNames.isEmpty || query.groupArray != nil { throw missing("a name of GROUP BY") }
    if !query.windows.isEmpty { throw missing("WINDOW") }
    // Without FROM, the JSON form reads the documents.
    if query.source == nil { throw missing("a query without FROM") }
  }

  private mutating func source(_ source: DataSource) throws(QueryError) -> JSONObject {
    guard source.content == .named else { throw missing("FROM of an expression") }
    guard source.keys == nil, source.indexes.isEmpty else { throw missing("USE") }
    var object = JSONObject()
    if let alias = source.alias {
      aliases.insert(alias)
      object["AS"] = .string(alias.string)
    }
    if source.name != "_" { object["COLLECTION"] = .string(source.name.string) }
    return object
  }

  private func object(of join: JoinClause) throws(QueryError) -> JSONObject {
    var object = JSONObject()
    switch join {
    case .join(let kind, let source, let condition):
      guard [.inner, .leftOuter, .cross].contains(kind) else { throw missing("\(kind.rawValue) JOIN") }
      var copy = self
      object = try copy.source(source)
      object["JOIN"] = .string(kind.rawValue)
      if let condition { object["ON"] = try json(condition) }
    case .unnest(let array, let alias, let isLeftOuter):
      if isLeftOuter { throw missing("LEFT UNNEST") }
      object["AS"] = .string(alias.string)
      object["UNNEST"] = try json(array)
    case .nest: throw missing("NEST")
    }
    return object
  }

  // MARK: Expressions

  private func json(_ expressions: [QueryExpression]) throws(QueryError) -> [JSONValue] {
    var all: [JSONValue] = []
    for expression in expressions { all.append(try json(expression)) }
    return all
  }

  private func operation(_ word: String, _ operands: QueryExpression...) throws(QueryError) -> JSONValue {
    .array([.string(word)] + (try json(operands)))
  }

  func json(_ expression: QueryExpression) throws(QueryError) -> JSONValue {
    switch expression {
    case .literal(let literal): return literal.jsonValue ?? .array(["MISSING"])
    case .parameter(let name): return .array([.string("$" + name.string)])
    case .property(let path): return json(path.steps)
    case .star(nil): return .array(["."])
    case .star(let source?): return .array([.string("." + Self.escaped(source.name) + ".")])
    case .meta(let source, let member?):
      let prefix = source.map { Self.escaped($0.name) + "." } ?? ""
      return .array([.string("." + prefix + "_" + member.rawValue)])
    case .meta(let source, nil):
      return .array(["META()"] + (source.map { [.string($0.name.string)] } ?? []))
    case .member(let base, let steps):
      return .array(["_.", try json(base), .string(Self.text(of: steps))])
    case .array(let items): return .array(["[]"] + (try json(items)))
    case .object(let members):
      var object = JSONObject()
      for member in members { object[member.name.string] = try json(member.value) }
      return .object(object)
    case .unary(let sign, let operand): return try operation(sign.rawValue, operand)
    case .binary(let sign, let left, let right): return try operation(sign.rawValue, left, right)
    case .test(let operand, .valued, let negated):
      return try operation(negated ? "IS NOT VALUED" : "IS VALUED", operand)
    case .test(let operand, let test, let negated):
      return try operation(
        negated ? "IS NOT" : "IS", operand, .literal(test == .null ? .null : .missing))
    case .between(let operand, let lower, let upper, let negated):
      return try operation(negated ? "NOT BETWEEN" : "BETWEEN", operand, lower, upper)
    case .contained(let operand, let collection, let negated):
      return try operation(negated ? "NOT IN" : "IN", operand, collection)
    case .like(let operand, let pattern, let negated):
      return try operation(negated ? "NOT LIKE" : "LIKE", operand, pattern)
    case .conditional(let operand, let branches, let otherwise):
      var parts: [JSONValue] = ["CASE", .null]
      if let operand { parts[1] = try json(operand) }
      for branch in branches { parts += [try json(branch.condition), try json(branch.result)] }
      if let otherwise { parts.append(try json(otherwise)) }
      return .array(parts)
    case .quantified(let quantifier, let variable, let collection, let condition):
      var inner = self
      inner.variables.insert(variable)
      return .array([
        .string(quantifier.rawValue), .string(variable.string), try json(collection),
        try inner.json(condition),
      ])
    case .exists(let query): return .array(["EXISTS", .array(["SELECT", .object(try clauses(of: query))])])
    case .subquery(let query): return .array(["SELECT", .object(try clauses(of: query))])
    case .call(let call):
      guard !call.namesRows else { throw missing("FILTER or OVER") }
      var operands = try json(call.arguments)
      if call.isDistinct, !operands.isEmpty { operands[0] = .array(["DISTINCT", operands[0]]) }
      return .array([.string(call.name + "()")] + operands)
    case .match(let index, let text): return .array(["MATCH()", json(index), try json(text)])
    case .rank(let index): return .array(["RANK()", json(index)])
    case .collate(let operand, let collation): return .array(["COLLATE", json(collation), try json(operand)])
    case .iteration(let loop): throw missing("\(loop.kind.rawValue) with FOR or several variables")
    case .within: throw missing("WITHIN")
    case .subscripted: throw missing("a computed subscript")
    case .computedObject: throw missing("a computed member's name")
    }
  }

  private func json(_ steps: [PathStep]) -> JSONValue {
    if case .name(let name)? = steps.first, variables.contains(name) {
      return .array([.string("?" + Self.text(of: steps).dropFirst())])
    }
    if steps.contains(.name("")) {
      return .array(
        ["."]
          + steps.map { step in
            switch step {
            case .name(let name): .string(name.string)
            case .index(let number): .array([JSONValue(number)])
            }
          })
    }
    var text = Self.text(of: steps)
    // The name of a property that would be read as a member of META().
    let place = steps.count == 2 && steps.first?.name.map { aliases.contains($0) } == true ? 1 : 0
    if steps.count == place + 1, let name = steps[place].name?.string, name.hasPrefix("_"),
      MetaProperty(rawValue: String(name.dropFirst())) != nil
    {
      text = (place == 0 ? "" : "." + Self.escaped(steps[0].name ?? "")) + ".\\" + name
    }
    return .array([.string(text)])
  }

  private func json(_ index: IndexReference) -> JSONValue {
    .string((index.source.map { $0.string + "." } ?? "") + index.name.string)
  }

  private func json(_ collation: Collation) -> JSONValue {
    var object = JSONObject()
    object["UNICODE"] = .bool(collation.isUnicode)
    object["CASE"] = .bool(!collation.ignoresCase)
    object["DIAC"] = .bool(!collation.ignoresDiacritics)
    if let locale = collation.locale { object["LOCALE"] = .string(locale) }
    return .object(object)
  }

  // MARK: Paths

  private static func text(of steps: [PathStep]) -> String {
    steps.map { step in
      switch step {
      case .name(let name): "." + escaped(name)
      case .index(let number): "[\(number)]"
      }
    }.joined()
  }

  private static func escaped(_ name: ByteString) -> String {
    var text = ""
    for scalar in name.string.unicodeScalars {
      if scalar == "." || scalar == "[" || scalar == "]" || scalar == "\\" { text += "\\" }
      text.unicodeScalars.append(scalar)
    }
    return text
  }
}
