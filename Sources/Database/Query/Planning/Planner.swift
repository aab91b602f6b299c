// Chooses how a query's rows are found. The choice depends on the query, the existing indexes and their
// statistics. It doesn't depend on the order in which indexes were created: between equal costs, the name
// decides.

import Storage

/// The planner's knowledge of a database.
struct PlanningContext {
  /// The value indexes, and the number of documents.
  let knowledge: IndexKnowledge
  /// Whether indexes may be used. Tests compare the results of plans with and without indexes.
  var usesIndexes: Bool
  /// The full-text indexes that the query names.
  var fullText: [ByteString: FullTextIndexInfo] = [:]
  /// For each MATCH, an estimate of the number of documents it finds.
  var matchEstimates: [QueryExpression: Double] = [:]

  init(_ knowledge: IndexKnowledge, usesIndexes: Bool) {
    self.knowledge = knowledge
    self.usesIndexes = usesIndexes
  }

  /// The approximate number of live documents.
  var documentCount: Int { knowledge.documentCount }
}

struct Planner {
  let query: ResolvedQuery
  let context: PlanningContext
  /// For each source, the indexes with expressions renamed for it.
  private let indexes: [ByteString: [PlannedIndex]]
  /// The expressions that are computed from whole rows: results, groups, order.
  let rowExpressions: [QueryExpression]
  /// For each source, the paths and metadata that results, groups and order read, without its ID. A covering
  /// index has to contain them.
  private let reads: [ByteString: [QueryExpression]]
  /// The conditions of WHERE, and by source those of joins. Each has the set of sources that it reads.
  private let conditions: [Condition]
  private let joinConditions: [ByteString: [Condition]]

  private struct Condition {
    var expression: QueryExpression
    var sources: Set<ByteString>
    /// Whether it is the same for all rows.
    var isConstant: Bool

    /// Results of subqueries and values of groups aren't sources. They are known from the start.
    init(_ expression: QueryExpression, _ query: ResolvedQuery) {
      self.expression = expression
      sources = expression.sources.filter { name in query.sources.contains { $0.name == name } }
      isConstant = sources.isEmpty && (query.sources.isEmpty || !expression.isVolatile)
    }
  }

  static func plan(_ query: ResolvedQuery, _ context: PlanningContext) -> QueryPlan {
    guard let windowOrder = query.windowOrder else { return Planner(query, context).plan() }
    // Rows in the order of the windows need no sorting, if nothing else orders them.
    var ordered = query
    if query.orderBy.isEmpty { ordered.orderBy = windowOrder }
    var plan = Planner(ordered, context).plan()
    plan.query = query
    plan.isWindowOrdered = plan.isOrdered && ordered.orderBy == windowOrder
    plan.isOrdered = plan.isOrdered && !query.orderBy.isEmpty
    return plan
  }

  private init(_ query: ResolvedQuery, _ context: PlanningContext) {
    self.query = query
    self.context = context
    rowExpressions = query.rowExpressions
    var indexes: [ByteString: [PlannedIndex]] = [:]
    var reads: [ByteString: [QueryExpression]] = [:]
    for source in query.sources where source.isDocuments {
      if context.usesIndexes {
        let all = context.knowledge.indexes(of: source.name)
        let named = source.indexes.isEmpty ? [] : all.filter { source.indexes.contains($0.name) }
        // A hint that names no index is ignored.
        indexes[source.name] = named.isEmpty ? all : named
      }
      var found: [QueryExpression] = []
      for expression in rowExpressions { expression.collectReads(of: source.name, into: &found) }
      reads[source.name] = found
    }
    self.indexes = indexes
    self.reads = reads
    conditions = query.conditions.map { Condition($0, query) }
    var joinConditions: [ByteString: [Condition]] = [:]
    for source in query.sources where !source.on.isEmpty {
      joinConditions[source.name] = source.on.map { Condition($0, query) }
    }
    self.joinConditions = joinConditions
  }

  /// The indexes, with expressions renamed for a source.
  func indexes(of source: ByteString) -> [PlannedIndex] { indexes[source] ?? [] }

  /// Whether an index may cover what the results read of a source. This is a quick test;
  /// `AccessChoice.covers` decides.
  func mayCover(_ index: PlannedIndex, _ source: ByteString) -> Bool {
    guard index.keys.allSatisfy({ if case .property = $0 { true } else { false } }) else { return true }
    return (reads[source] ?? []).allSatisfy { index.keys.contains($0) }
  }

  private func plan() -> QueryPlan {
    if query.sources.count == 1, query.isCountOfDocuments {
      return QueryPlan(query: query, steps: [], grouping: .documentCount)
    }
    var best: (plan: QueryPlan, cost: Double)?
    for order in sourceOrders() {
      // The order of the query text wins unless another one is clearly cheaper.
      if let candidate = plan(order, below: best.map { $0.cost * 0.7 }) { best = candidate }
    }
    guard var plan = best?.plan else { return QueryPlan(query: query, steps: []) }
    if query.isGrouped { plan.grouping = plan.isGroupOrdered ? .streaming : .hash }
    plan.takeBestMatches()
    return plan
  }

  // MARK: The order of sources

  /// The possible nesting orders of the sources, the written one first. Only inner joins of up to four
  /// sources can be reordered.
  private func sourceOrders() -> [[ResolvedSource]] {
    let sources = query.sources
    let isFree = sources.allSatisfy {
      if case .documents(let kind, _) = $0.kind { kind == .inner || kind == .cross } else { false }
    }
    guard isFree, sources.count > 1, sources.count <= 4 else { return [sources] }
    var orders: [[ResolvedSource]] = []
    func extend(_ chosen: [ResolvedSource], _ left: [ResolvedSource]) {
      if left.isEmpty { orders.append(chosen) }
      for index in left.indices {
        var rest = left
        let next = rest.remove(at: index)
        extend(chosen + [next], rest)
      }
    }
    extend([], sources)
    return orders
  }

  // MARK: Steps

  /// The plan for one order of sources. Nil when it costs at least `limit`.
  private func plan(
    _ sources: [ResolvedSource], below limit: Double?
  ) -> (plan: QueryPlan, cost: Double)? {
    // Conditions of WHERE are checked after the last RIGHT or FULL JOIN. A row that one of them refuses may be
    // the match of another row.
    let lastUnmatched = sources.lastIndex { $0.joinKind.keepsUnmatched } ?? 0
    var conditions = conditions.map { (condition: $0, earliest: lastUnmatched) }
    var outer: Set<ByteString> = []
    for (position, source) in sources.enumerated() {
      if source.joinKind.keepsUnmatched || source.joinKind == .leftOuter && !rejectsUnmatched(source) {
        outer.insert(source.name)
      } else {
        conditions += (joinConditions[source.name] ?? []).map { ($0, lastUnmatched == 0 ? 0 : position) }
      }
    }
    var bound: Set<ByteString> = []
    var plan = QueryPlan(query: query, steps: [])
    let isConstant = { (entry: (condition: Condition, earliest: Int)) in
      entry.condition.isConstant && entry.earliest <= lastUnmatched
    }
    plan.constantConditions = conditions.filter(isConstant).map(\.condition.expression)
    var pending = conditions.filter { !isConstant($0) }
    var rows = 1.0
    var cost = 0.0
    for (position, source) in sources.enumerated() {
      bound.insert(source.name)
      if let limit, cost >= limit { return nil }
      let isReady = { [bound] (entry: (condition: Condition, earliest: Int)) in
        entry.earliest <= position && entry.condition.sources.isSubset(of: bound)
      }
      let ready = pending.filter(isReady).map(\.condition.expression)
      pending.removeAll(where: isReady)
      switch source.kind {
      case .unnest(let array, let isLeftOuter):
        rows *= 4
        cost += rows
        var step = PlanStep(
          source: source, kind: isLeftOuter ? .leftOuter : .inner, access: .unnest(array), filter: ready)
        if isLeftOuter {
          step.filter = []
          step.outerFilter = ready
        }
        rows *= step.filter.isEmpty ? 1 : 0.3
        step.estimatedRows = rows
        plan.steps.append(step)
      case .items(let items, let kind, let on):
        let isOuter = outer.contains(source.name)
        rows *= 10
        cost += rows
        var step = PlanStep(
          source: source, kind: isOuter ? kind : .inner, access: .items(items), filter: isOuter ? on : ready)
        if isOuter { step.outerFilter = ready }
        step.estimatedRows = rows
        plan.steps.append(step)
      case .value(let value):
        cost += rows
        var step = PlanStep(source: source, kind: .inner, access: .value(value), filter: ready)
        step.estimatedRows = rows
        plan.steps.append(step)
      case .documents(let kind, let on):
        let isOuter = outer.contains(source.name)
        let filter = isOuter ? on : ready
        let choice = AccessChoice(
          planner: self, source: source, bound: bound.subtracting([source.name]), conditions: filter,
          unnestConditions: unnestConditions(of: source, pending.map(\.condition), ready, sources),
          outerRows: rows, isFirst: position == 0
        ).best()
        cost += choice.cost
        rows = max(rows * choice.rowsPerOuterRow, isOuter ? rows : 0)
        var step = PlanStep(
          source: source, kind: isOuter ? kind : .inner, access: choice.access, filter: choice.filter)
        if isOuter { step.outerFilter = ready }
        step.estimatedRows = rows
        plan.steps.append(step)
        if position == 0 { plan.isOrdered = choice.isOrdered && lastUnmatched == 0 }
        if case .index(let access) = choice.access, access.isCovering {
          plan.substitutions.merge(access.index.keyReferences(of: source.name)) { first, _ in first }
        }
      }
    }
    if let limit, cost >= limit { return nil }
    for index in plan.steps.indices { plan.steps[index].needsRecord = needsRecord(plan.steps[index], plan) }
    return (plan, cost)
  }

  /// Whether WHERE refuses the rows of an outer join that have no match. The join can then be an inner join.
  private func rejectsUnmatched(_ source: ResolvedSource) -> Bool {
    let others = Set(query.sources.map(\.name)).subtracting([source.name])
    return query.conditions.contains { condition in
      condition.keyTerms(of: source.name, bound: others, conjunct: 0).contains {
        if case .isMissing = $0.condition { return false }
        switch $0.key {
        case .property(let path): return path.steps.count > 1
        case .meta: return true
        default: return false
        }
      }
    }
  }

  /// The conditions that inner UNNESTs put on the items of a source's arrays.
  private func unnestConditions(
    of source: ResolvedSource, _ pending: [Condition], _ ready: [QueryExpression], _ sources: [ResolvedSource]
  ) -> [ItemConditions] {
    guard sources.contains(where: { !$0.isDocuments }), !sources.contains(where: \.joinKind.keepsUnmatched)
    else { return [] }
    let conditions = pending.map(\.expression) + ready
    return sources.compactMap { unnest in
      guard case .unnest(let array, false) = unnest.kind, array.sources == [source.name] else { return nil }
      let about = conditions.filter { $0.sources == [unnest.name] }
      return about.isEmpty ? nil : ItemConditions(array: array, variable: unnest.name, conditions: about)
    }
  }

  /// Whether a step reads anything of its documents besides the ID.
  private func needsRecord(_ step: PlanStep, _ plan: QueryPlan) -> Bool {
    guard step.source.isDocuments else { return false }
    let name = step.source.name
    return allExpressions(plan).contains { $0.substituting(plan.substitutions).readsRecord(of: name) }
  }

  /// All expressions that are computed for rows.
  func allExpressions(_ plan: QueryPlan) -> [QueryExpression] {
    var all = rowExpressions
    for step in plan.steps {
      all += step.filter + step.outerFilter
      all += step.access.expressions
    }
    return all
  }
}

extension JoinKind {
  /// Whether rows of the joined source without a match stay.
  var keepsUnmatched: Bool { self == .rightOuter || self == .fullOuter }
}

/// Conditions that one item of an array has to meet.
struct ItemConditions {
  var array: QueryExpression
  var variable: ByteString
  var conditions: [QueryExpression]
  /// Whether the member values of an object may meet them as well.
  var areOfObjects = false
}

extension ResolvedQuery {
  /// Whether the query only counts all documents.
  fileprivate var isCountOfDocuments: Bool {
    guard groupBy == [], conditions.isEmpty, let source = sources.first, source.isDocuments,
      !source.includesDeleted
    else { return false }
    return rowExpressions.allSatisfy(\.needsOnlyCount)
  }
}

extension QueryExpression {
  /// Whether it depends only on the number of rows.
  fileprivate var needsOnlyCount: Bool {
    if case .call(let call) = self, call.name == "COUNT", call.arguments == [.star(source: nil)],
      call.filter == nil, call.window == nil
    {
      return true
    }
    switch self {
    case .property, .star, .meta, .match, .rank: return false
    case .call(let call) where AggregateFunctions.names.contains(call.name): return false
    default:
      var only = true
      forEachPart { if !$0.needsOnlyCount { only = false } }
      return only
    }
  }

  /// Collects what it reads of a source besides the ID.
  fileprivate func collectReads(of name: ByteString, into reads: inout [QueryExpression]) {
    switch self {
    case .property(let path):
      if case .name(name)? = path.steps.first { reads.append(self) }
    case .star(let source): if source?.name == name { reads.append(self) }
    case .meta(let source, let member): if source?.name == name, member != .id { reads.append(self) }
    default: forEachPart { $0.collectReads(of: name, into: &reads) }
    }
  }

  /// Whether it reads more of a document than its ID and the values of an index's expressions.
  func readsRecord(of name: ByteString, besides keys: [QueryExpression] = []) -> Bool {
    if !keys.isEmpty, keys.contains(self) { return false }
    switch self {
    case .property(let path):
      if case .name(name)? = path.steps.first { return true }
      return false
    case .star(let source): return source?.name == name
    case .meta(let source, let member): return source?.name == name && member != .id
    // Full-text functions read the texts of the document.
    case .call(let call) where FullTextFunctions.names.contains(call.name):
      return call.arguments.contains { $0.sources.contains(name) }
    default:
      var reads = false
      forEachPart { if !reads, $0.readsRecord(of: name, besides: keys) { reads = true } }
      return reads
    }
  }

  /// A copy in which parts are replaced.
  func substituting(_ substitutions: [QueryExpression: QueryExpression]) -> QueryExpression {
    if substitutions.isEmpty { return self }
    if let other = substitutions[self] { return other }
    return mappingParts { $0.substituting(substitutions) }
  }
}

extension AccessPath {
  /// The expressions that the access computes.
  var expressions: [QueryExpression] {
    switch self {
    case .documents: []
    case .identifiers(let ranges, _): ranges.flatMap { $0.flatMap(\.values) }
    case .index(let access): access.ranges.flatMap { $0.flatMap(\.values) }
    case .union(let paths): paths.flatMap(\.expressions)
    case .hash(let build, let filter, let keys, let probes): build.expressions + filter + keys + probes
    case .unnest(let array): [array]
    case .items(let value), .value(let value): [value]
    case .fullText(let access): [access.match.text]
    }
  }
}

extension QueryPlan {
  /// Whether the rows of a group come one after the other. That is the case when the first step scans an
  /// index whose first expressions are those of GROUP BY, apart from expressions with the same value in all
  /// rows.
  fileprivate var isGroupOrdered: Bool {
    guard let groupBy = query.groupBy, !groupBy.isEmpty, case .index(let access)? = steps.first?.access,
      access.index.isExact, access.index.unnest == nil, access.ranges.count == 1,
      !query.sources.contains(where: \.joinKind.keepsUnmatched)
    else { return false }
    let equal = access.ranges[0].prefix(while: \.isEquality).count
    let fixed = Set(access.index.keys.prefix(equal))
    var left = Set(groupBy).subtracting(fixed)
    for key in access.index.keys.dropFirst(equal) {
      if left.isEmpty { return true }
      guard left.remove(key) != nil else { return false }
    }
    return left.isEmpty
  }
}
