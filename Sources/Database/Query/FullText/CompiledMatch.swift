import FullText

/// A compiled MATCH.
final class CompiledMatch: @unchecked Sendable {
  let match: ResolvedMatch
  let index: FullTextIndexInfo
  /// The number of the source.
  let source: Int
  let text: CompiledExpression
  /// The parsed query, when its text is a literal. Nil when it is evaluated in each run.
  let query: MatchQuery?
  /// Whether the step of the source gives the ranks with its rows.
  let isDriving: Bool
  /// The expressions for the indexed texts of the current document.
  let columns: [CompiledExpression]

  private init(
    _ match: ResolvedMatch, _ index: FullTextIndexInfo, _ plan: QueryPlan, _ program: EvaluationProgram,
    _ scope: PlanScope
  ) throws(QueryError) {
    self.match = match
    self.index = index
    source = try scope.source(match.index.source.map { SourceName($0) })
    program.needsID(of: source)
    text = try program.compile(match.text, in: scope)
    if case .literal(.string(let text)) = match.text {
      do { query = try index.query(text.string, match.index, in: nil) } catch let error as QueryError {
        throw error
      } catch { throw QueryError(.index, "\(error)") }
    } else {
      query = nil
    }
    isDriving = plan.drives(match)
    columns = try program.compile(index.definition.expressions, in: DefinitionScope(source: source))
  }

  static func compile(
    _ plan: QueryPlan, _ context: PlanningContext, _ program: EvaluationProgram, _ scope: PlanScope
  ) throws(QueryError) -> [CompiledMatch] {
    try plan.query.matches.map { match throws(QueryError) in
      guard let index = context.fullText[match.index.name] else {
        throw QueryError(
          .index, "there is no full-text index \"\(match.index.name)\"", at: match.index.position)
      }
      return try CompiledMatch(match, index, plan, program, scope)
    }
  }
}

/// Resolves the names in an index's definition, where the document is the row of a source.
private struct DefinitionScope: EvaluationScope {
  let source: Int

  func resolve(_ reference: PropertyReference) throws(QueryError) -> ResolvedReference {
    .path(source: source, reference.steps)
  }

  func source(_ name: SourceName?) throws(QueryError) -> Int { source }
}

/// A compiled access to the documents that a MATCH finds.
final class CompiledFullTextAccess: Sendable {
  /// The number of the MATCH.
  let match: Int
  let isRanked: Bool
  let takesBest: Bool

  init(_ access: FullTextAccess, _ scope: PlanScope) {
    match = scope.matches.firstIndex { $0.match == access.match } ?? 0
    isRanked = access.isRanked
    takesBest = access.takesBest
  }
}

extension PlanScope {
  func compile(
    special expression: QueryExpression, _ compiler: inout ExpressionCompiler
  ) throws(QueryError) -> CompiledExpression {
    func number(_ index: IndexReference) throws(QueryError) -> Int {
      guard let number = matches.firstIndex(where: { $0.match.index == index }) else {
        throw QueryError(
          .invalidUse, "there is no MATCH on \"\(index.name)\"", at: index.position)
      }
      return number
    }
    switch expression {
    case .match(let index, let text):
      guard
        let number = matches.firstIndex(where: { $0.match == ResolvedMatch(index: index, text: text) })
      else { throw QueryError(.index, "there is no MATCH on \"\(index.name)\"", at: index.position) }
      return MatchNode(number, matches[number].source)
    case .rank(let index):
      let number = try number(index)
      return RankNode(number, matches[number].source)
    case .call(let call) where FullTextFunctions.names.contains(call.name):
      guard case .rank(let index)? = call.arguments.first else {
        throw QueryError(
          .invalidUse, "the first argument of \(call.name) must be the name of an index", at: call.position)
      }
      let number = try number(index)
      if call.name == FullTextFunctions.offsets { return OffsetsNode(number, matches[number]) }
      return SnippetNode(
        number, matches[number], try compiler.compile(Array(call.arguments.dropFirst()), nil))
    default: throw unusable(expression)
    }
  }
}
