// The use of full-text indexes in plans.

import Storage

/// Access to the documents that a MATCH finds.
struct FullTextAccess: Sendable {
  var match: ResolvedMatch
  /// Whether the query uses RANK.
  var isRanked = false
  /// Whether the index gives only the documents with the highest ranks, best first, as many as LIMIT asks
  /// for.
  var takesBest = false

  func explained(_ source: ByteString) -> String {
    "Full-text index \(match.index.name) as \(source): \(match.text.explained)"
      + (takesBest ? ", the best by rank" : isRanked ? ", ranked" : "")
  }
}

extension AccessChoice {
  /// For each MATCH that has to be true, the access by its documents.
  func matches() -> [Choice] {
    conditions.indices.compactMap { position in
      guard case .match(let index, let text) = conditions[position], index.source == source.name else {
        return nil
      }
      var filter = conditions
      filter.remove(at: position)
      let rows = planner.context.matchEstimates[conditions[position]] ?? documentCount * 0.01
      let isRanked = planner.usesRank(of: index)
      let readsRecord =
        (planner.rowExpressions + filter).contains { $0.readsRecord(of: source.name) }
      let cost = Cost.seek * 2 + rows * (Cost.indexEntry + (readsRecord ? Cost.fetch : 0))
      return priced(
        Choice(
          access: .fullText(
            FullTextAccess(match: ResolvedMatch(index: index, text: text), isRanked: isRanked)),
          filter: filter, cost: cost, rowsPerOuterRow: rows * selectivity(filter),
          name: "match \(index.name) \(position)"))
    }
  }
}

extension Planner {
  /// Whether results or conditions use the rank in an index.
  fileprivate func usesRank(of index: IndexReference) -> Bool {
    (rowExpressions + query.conditions + query.sources.flatMap(\.expressions)).contains {
      $0.hasRank(of: index)
    }
  }
}

extension QueryExpression {
  /// Whether the expression uses the rank in an index.
  func hasRank(of index: IndexReference) -> Bool {
    switch self {
    case .rank(index): return true
    case .call(let call) where FullTextFunctions.names.contains(call.name):
      // The first argument only names the index.
      return call.arguments.dropFirst().contains { $0.hasRank(of: index) }
    default:
      var found = false
      forEachPart { if $0.hasRank(of: index) { found = true } }
      return found
    }
  }
}

extension QueryPlan {
  /// Lets the index give only the best matches, when rows are ordered by rank and limited. Other matches
  /// aren't ranked then.
  mutating func takeBestMatches() {
    guard steps.count == 1, grouping == nil, !query.isDistinct, query.limit != nil, steps[0].filter.isEmpty,
      steps[0].outerFilter.isEmpty, case .fullText(var access) = steps[0].access,
      query.matches.first(where: { $0.index == access.match.index }) == access.match,
      query.orderBy.count == 2, query.orderBy[0].isDescending, !query.orderBy[1].isDescending,
      query.orderBy[0].expression == .rank(access.match.index),
      query.orderBy[1].expression == .meta(source: SourceName(steps[0].source.name), .id)
    else { return }
    access.isRanked = true
    access.takesBest = true
    steps[0].access = .fullText(access)
    isOrdered = true
  }

  /// Whether a step gives the ranks of a match with its rows.
  func drives(_ match: ResolvedMatch) -> Bool {
    steps.contains { step in
      if case .fullText(let access) = step.access { access.match == match } else { false }
    }
  }
}

extension ResolvedQuery {
  /// Orders documents of equal rank by ID. The order is added to the query, so that it is the same for all
  /// plans.
  mutating func orderRanksByID() {
    guard case .rank? = orderBy.last?.expression, sources.count == 1, let source = sources.first else {
      return
    }
    orderBy.append(Ordering(.meta(source: SourceName(source.name), .id), isDescending: false))
  }
}
