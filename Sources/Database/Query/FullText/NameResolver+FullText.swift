import Storage

/// A MATCH of a query. Its index has the name of its source.
struct ResolvedMatch: Hashable, Sendable {
  var index: IndexReference
  var text: QueryExpression

  /// The MATCH as an expression in conditions.
  var expression: QueryExpression { .match(index, text) }
}

/// Functions on the results of a MATCH for the current document. Their first argument names an index. In
/// resolved queries it is a `.rank` expression.
enum FullTextFunctions {
  static let snippet = "SNIPPET"
  static let offsets = "OFFSETS"
  static let names: Set<String> = [snippet, offsets]

  /// The table is for the parser. `PlanScope` compiles these functions.
  static let table = [
    QueryFunction(snippet, 1...5, volatility: .environment) { _, _, _ in .missing },
    QueryFunction(offsets, 1...1, volatility: .environment) { _, _, _ in .missing },
  ]
}

extension NameResolver {
  /// Resolves `MATCH(index, text)`.
  mutating func resolveMatch(_ index: IndexReference, _ text: QueryExpression, _ scope: Scope) throws
    -> QueryExpression
  {
    let index = try resolve(index, scope, "MATCH")
    let text = try resolve(text, scope)
    guard text.isConstant else {
      throw failure(
        .unsupported, "the text of MATCH(\(index.name), …) is the same for all rows", at: index.position)
    }
    let match = ResolvedMatch(index: index, text: text)
    if !query.matches.contains(match) { query.matches.append(match) }
    return match.expression
  }

  /// Resolves the index of MATCH, RANK, SNIPPET or OFFSETS. The result names its source.
  mutating func resolve(_ index: IndexReference, _ scope: Scope, _ function: String) throws
    -> IndexReference
  {
    let documents = scope.documents
    var index = index
    if let source = index.source {
      guard documents.contains(where: { $0.name == source }) else {
        throw failure(
          .unknownName, "\(function)(\(source).\(index.name)): there is no source of documents \"\(source)\"",
          at: index.position)
      }
      usedNames.insert(source)
      return index
    }
    guard let only = documents.first else {
      throw failure(.invalidUse, "\(function) needs a FROM", at: index.position)
    }
    guard documents.count == 1 else {
      throw failure(
        .invalidUse,
        "\(function) of several sources needs the name of one: \(function)(\(only.name).\(index.name))",
        at: index.position)
    }
    index.source = only.name
    return index
  }

  /// Resolves SNIPPET and OFFSETS. The parser has parsed their first argument as a path. It names an index.
  mutating func resolveFullTextFunction(_ call: FunctionCall, _ scope: Scope) throws -> QueryExpression {
    guard case .property(let path)? = call.arguments.first, path.steps.count <= 2,
      case let names = path.steps.compactMap(\.name), names.count == path.steps.count, let name = names.last
    else {
      throw failure(
        .invalidUse, "the first argument of \(call.name) must be the name of a full-text index",
        at: call.position)
    }
    let written = IndexReference(name, source: names.count == 2 ? names[0] : nil, position: path.position)
    var resolved = call
    resolved.arguments = [.rank(try resolve(written, scope, call.name))]
    for argument in call.arguments.dropFirst() { resolved.arguments.append(try resolve(argument, scope)) }
    return .call(resolved)
  }

  /// Checks that RANK, SNIPPET and OFFSETS have a MATCH on the same index somewhere in the query.
  func checkRanks() throws {
    let all = query.rowExpressions + query.conditions + query.sources.flatMap(\.expressions)
    for expression in all { try checkRanks(expression) }
  }

  private func checkRanks(_ expression: QueryExpression) throws {
    if case .rank(let index) = expression, !query.matches.contains(where: { $0.index == index }) {
      throw failure(
        .invalidUse, "RANK, SNIPPET and OFFSETS of \"\(index.name)\" need a MATCH on that index",
        at: index.position)
    }
    try expression.forEachPart { try checkRanks($0) }
  }
}
