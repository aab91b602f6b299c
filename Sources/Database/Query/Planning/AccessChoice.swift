// Chooses how the rows of one source are found, given the sources before it.
//
// One unit of cost is one document read in a full scan. Costs only have to put plans into the right order.

import Storage

enum Cost {
  static let indexEntry = 0.5
  static let fetch = 3.0
  static let seek = 4.0
  static let hashedRow = 2.0
  static let probe = 1.5
  static let sortedRow = 0.3
  /// A row of a scan in ID order. Such a scan is slower than one in the engine's own order.
  static let rowByID = 1.6
}

struct AccessChoice {
  let planner: Planner
  let source: ResolvedSource
  /// The sources whose rows are known before this step.
  let bound: Set<ByteString>
  /// The conditions that the rows have to meet.
  let conditions: [QueryExpression]
  /// The conditions that items of the documents' arrays have to meet in later steps.
  let unnestConditions: [ItemConditions]
  /// The number of outer rows for which this access runs.
  let outerRows: Double
  let isFirst: Bool
  /// The sources that compared values may depend on.
  private let values: Set<ByteString>
  /// What the conditions say about keys.
  private let terms: [KeyTerm]

  init(
    planner: Planner, source: ResolvedSource, bound: Set<ByteString>, conditions: [QueryExpression],
    unnestConditions: [ItemConditions], outerRows: Double, isFirst: Bool
  ) {
    self.planner = planner
    self.source = source
    self.bound = bound
    self.conditions = conditions
    self.unnestConditions = unnestConditions
    self.outerRows = outerRows
    self.isFirst = isFirst
    let values = bound.union(planner.query.subqueries.indices.map(InternalName.subquery))
    self.values = values
    terms = conditions.enumerated().flatMap { index, condition in
      condition.keyTerms(of: source.name, bound: values, conjunct: index)
    }
  }

  struct Choice {
    var access: AccessPath
    var filter: [QueryExpression]
    var cost: Double
    var rowsPerOuterRow: Double
    var isOrdered = false
    /// Decides between choices of equal cost.
    var name = ""
  }

  /// The cheapest choice.
  func best() -> Choice {
    let usesIndexes = planner.context.usesIndexes && !source.includesDeleted
    var choices = usesIndexes ? matches() : []
    // A scan would have to run the full-text search as well, and then read all the other documents.
    if choices.isEmpty {
      choices.append(fullScan())
      if isFirst, let direction = idOrder() { choices.append(scanByID(direction)) }
    }
    if usesIndexes { choices += lookups() }
    // Documents are stored by ID, so a lookup by ID isn't an index.
    if planner.context.usesIndexes || source.includesDeleted { choices += identifierLookups() }
    if usesIndexes { choices += unions() }
    let best = choices.min { ($0.cost, $0.name) < ($1.cost, $1.name) } ?? fullScan()
    // A hash join costs one probe and one document for each row, besides building its table.
    if isFirst, planner.query.isCorrelated { return correlated(best) }
    if isFirst || best.cost <= max(1, outerRows) * (Cost.probe + Cost.fetch) { return best }
    guard let hash = hashJoin(), (hash.cost, hash.name) < (best.cost, best.name) else { return best }
    return hash
  }

  /// The number of outer rows for which a correlated query is planned.
  private static let correlatedRuns = 100.0

  /// The choice for a query that runs for each row of another one. A hash table on what the two rows have in
  /// common is built by the first run, and used by the others.
  private func correlated(_ best: Choice) -> Choice {
    guard best.cost > Cost.seek + Cost.probe + Cost.fetch, var hash = hashJoin(),
      hash.access.isSameForAllRuns, hash.access.readsCaptures
    else { return best }
    hash.cost = hash.cost / Self.correlatedRuns + Cost.probe + Cost.fetch
    // An index needs no table. The estimate of the number of runs may be far off.
    if case .index = best.access, hash.cost > best.cost * 0.3 { return best }
    return hash.cost < best.cost ? hash : best
  }

  var documentCount: Double { Double(max(1, planner.context.documentCount)) }
  private var id: QueryExpression { .meta(source: SourceName(source.name), .id) }

  // MARK: Scans

  private func fullScan() -> Choice {
    let rows = documentCount * selectivity(conditions)
    return priced(
      Choice(access: .documents(byID: nil), filter: conditions, cost: documentCount, rowsPerOuterRow: rows))
  }

  private func scanByID(_ direction: ScanDirection) -> Choice {
    let rows = documentCount * selectivity(conditions)
    return priced(
      Choice(
        access: .documents(byID: direction), filter: conditions, cost: documentCount * Cost.rowByID,
        rowsPerOuterRow: rows, isOrdered: true, name: "id"))
  }

  /// The direction of a scan by ID that gives the order of ORDER BY. Nil when IDs don't give it.
  private func idOrder() -> ScanDirection? {
    guard !planner.query.isGrouped, planner.query.orderBy.first?.expression == id,
      let first = planner.query.orderBy.first, !source.includesDeleted, planner.query.isOrdered(byIDAt: 0)
    else { return nil }
    return first.isDescending ? .backward : .forward
  }

  /// Adds the costs that all choices share: sorting, an early end by LIMIT, and the number of outer rows.
  func priced(_ choice: Choice) -> Choice {
    var choice = choice
    if isFirst {
      let query = planner.query
      let rows = max(1, choice.rowsPerOuterRow)
      let needsOrder = !query.orderBy.isEmpty && !query.isGrouped
      if needsOrder, !choice.isOrdered { choice.cost += rows * Cost.sortedRow * max(1, rows.log2Estimate) }
      let endsEarly = !query.isGrouped && (!needsOrder || choice.isOrdered)
      if endsEarly, query.limit != nil {
        choice.cost *= min(1, (query.limitEstimate + 1) / rows)
      }
    } else {
      choice.cost *= max(1, outerRows)
    }
    return choice
  }

  // MARK: Lookups by ID

  func identifierLookups() -> [Choice] {
    let match = KeyMatch(keys: [id], terms: terms, allowing: 1)
    guard !match.conditions.isEmpty else { return [] }
    let rows = KeyEstimate(entries: documentCount, perPrefix: [1]).rows(match.conditions)
    let direction = isFirst ? idOrder() : nil
    // Conditions that the IDs meet exactly aren't checked again.
    let filter = conditions.indices.filter { !match.exact.contains($0) }.map { conditions[$0] }
    let cost = Cost.seek + rows * (match.conditions[0].isEquality ? 0 : 1)
    return [
      priced(
        Choice(
          access: .identifiers([match.conditions], direction: direction ?? .forward), filter: filter,
          cost: cost,
          rowsPerOuterRow: rows * selectivity(filter), isOrdered: direction != nil, name: "id"))
    ]
  }

  // MARK: Indexes

  func lookups() -> [Choice] {
    planner.indexes(of: source.name).compactMap { $0.unnest == nil ? plainLookup($0) : itemLookup($0) }
  }

  private func plainLookup(_ index: PlannedIndex) -> Choice? {
    guard let implied = implied(index.condition) else { return nil }
    let match = KeyMatch(keys: index.keys, terms: terms, allowing: index.keys.count)
    let exact = index.isExact ? match.exact : []
    let filter = conditions.indices.filter { !exact.contains($0) && !implied.contains($0) }
      .map { conditions[$0] }
    let entries = KeyEstimate(entries: Double(index.entries), perPrefix: index.entriesPerPrefix)
      .rows(match.conditions)
    let order = isFirst ? indexOrder(index, match.conditions) : nil
    // Most indexes of a database are irrelevant to a query.
    if match.conditions.isEmpty, order == nil, index.condition.isEmpty,
      !planner.mayCover(index, source.name)
    {
      return nil
    }
    let isCovering = covers(index, filter)
    let isGrouping =
      isFirst && planner.query.groupBy?.isEmpty == false && index.gives(planner.query.groupBy ?? [])
    // Without a condition or an order that it serves, an index is only useful when it is covering.
    guard !match.conditions.isEmpty || order != nil || !index.condition.isEmpty || isCovering
    else { return nil }
    var cost = Cost.seek + entries * Cost.indexEntry
    var entryFilter: [QueryExpression] = []
    var rowFilter = filter
    if !isCovering {
      // Conditions on the index's own expressions are checked before the document is fetched.
      func isOfEntry(_ condition: QueryExpression) -> Bool {
        condition.reads(only: source.name) && !condition.readsRecord(of: source.name, besides: index.keys)
      }
      rowFilter = filter.filter { !isOfEntry($0) }
      entryFilter = filter.filter(isOfEntry)
      cost += entries * selectivity(entryFilter) * Cost.fetch
      if !entryFilter.isEmpty { cost += entries * Cost.indexEntry }
    }
    if isGrouping { cost *= 0.95 }
    let access = IndexAccess(
      index: index, ranges: [match.conditions], direction: order ?? .forward,
      isCovering: isCovering,
      entryFilter: entryFilter)
    return priced(
      Choice(
        access: .index(access), filter: rowFilter, cost: cost,
        rowsPerOuterRow: entries * selectivity(filter),
        isOrdered: order != nil, name: "index \(index.name)"))
  }

  /// An array index finds documents. Their items are then read as without the index.
  private func itemLookup(_ index: PlannedIndex) -> Choice? {
    guard let unnest = index.unnest, implied(index.condition) != nil else { return nil }
    var best: KeyMatch?
    for items in unnestConditions + quantified()
    where items.array == unnest.array && (index.hasObjects || !items.areOfObjects) {
      let terms = items.conditions.enumerated().flatMap { position, condition in
        condition.renaming(items.variable, to: unnest.variable)
          .keyTerms(of: unnest.variable, bound: values, conjunct: position)
      }
      let match = KeyMatch(keys: index.keys, terms: terms, allowing: index.keys.count)
      if match.conditions.count > best?.conditions.count ?? 0 { best = match }
    }
    guard let match = best else { return nil }
    let entries = KeyEstimate(entries: Double(index.entries), perPrefix: index.entriesPerPrefix)
      .rows(match.conditions)
    return priced(
      Choice(
        access: .index(IndexAccess(index: index, ranges: [match.conditions])), filter: conditions,
        cost: Cost.seek + entries * (Cost.indexEntry + Cost.fetch),
        rowsPerOuterRow: min(entries, documentCount) * selectivity(conditions), name: "index \(index.name)"))
  }

  /// The conditions that ANY puts on the items of an array.
  private func quantified() -> [ItemConditions] {
    conditions.compactMap { condition in
      switch condition {
      case .quantified(.any, let variable, let array, let items),
        .quantified(.anyAndEvery, let variable, let array, let items):
        ItemConditions(
          array: array, variable: variable, conditions: items.conjuncts, areOfObjects: true)
      // ARRAY_CONTAINS and IN look for one item.
      case .call(let call) where call.name == "ARRAY_CONTAINS" && call.arguments.count == 2:
        ItemConditions(
          array: call.arguments[0], variable: InternalName.item,
          conditions: [.binary(.equal, InternalName.reference(InternalName.item), call.arguments[1])])
      case .contained(let item, let array, negated: false) where array.sources == [source.name]:
        ItemConditions(
          array: array, variable: InternalName.item,
          conditions: [.binary(.equal, InternalName.reference(InternalName.item), item)])
      default: nil
      }
    }
  }

  /// The conjuncts that a partial index's condition implies. Nil when the query may need documents that
  /// aren't in the index.
  private func implied(_ condition: [QueryExpression]) -> Set<Int>? {
    var found: Set<Int> = []
    for part in condition {
      if let position = conditions.firstIndex(of: part) {
        found.insert(position)
        continue
      }
      // A comparison with an expression implies that the expression has a value.
      let needsValue = part.keyTerms(of: source.name, bound: [], conjunct: 0).first
      guard let needsValue, needsValue.condition == .isValued || needsValue.condition == .isThere,
        terms.contains(where: { term in
          guard term.key == needsValue.key else { return false }
          switch term.condition {
          case .isNull: return needsValue.condition == .isThere
          case .isMissing: return false
          case .isThere: return needsValue.condition == .isThere
          default: return true
          }
        })
      else { return nil }
    }
    return found
  }

  /// Whether an index has everything that the query reads of the source.
  private func covers(_ index: PlannedIndex, _ filter: [QueryExpression]) -> Bool {
    guard index.givesValues, index.unnest == nil, planner.mayCover(index, source.name) else { return false }
    var needed = planner.rowExpressions + filter
    // Conditions and arrays of other sources can also read rows of this one.
    needed += planner.query.conditions.subtracting(conditions)
    for other in planner.query.sources {
      // The source's own ON too: a condition that names a later source is checked there.
      needed += other.expressions.subtracting(conditions)
    }
    return needed.allSatisfy { !$0.readsRecord(of: source.name, besides: index.keys) }
  }

  /// The direction of a scan of the index that gives the order of ORDER BY. Nil when the index doesn't give
  /// it.
  private func indexOrder(_ index: PlannedIndex, _ conditions: [KeyCondition]) -> ScanDirection? {
    let query = planner.query
    guard index.isExact, !query.isGrouped, let first = query.orderBy.first else { return nil }
    // With several values for one expression, the ranges after it aren't in order.
    let equal = conditions.prefix(while: \.isEquality).count
    guard conditions.dropFirst(equal).count <= 1 else { return nil }
    let fixed = Set(index.keys.prefix(equal))
    var keys = index.keys.dropFirst(equal)[...]
    for (position, ordering) in query.orderBy.enumerated() {
      if fixed.contains(ordering.expression) { continue }
      guard ordering.isDescending == first.isDescending else { return nil }
      guard let key = keys.first else {
        // Entries with equal values are in the order of document IDs.
        guard ordering.expression == id, query.isOrdered(byIDAt: position) else { return nil }
        break
      }
      guard key == ordering.expression else { return nil }
      keys = keys.dropFirst()
    }
    return first.isDescending ? .backward : .forward
  }

  // MARK: Hash joins

  private func hashJoin() -> Choice? {
    var keys: [QueryExpression] = []
    var probes: [QueryExpression] = []
    var rest: [QueryExpression] = []
    var own: [QueryExpression] = []
    for condition in conditions {
      // A value of the outer query is probed with, like one of an earlier source.
      if condition.reads(within: [source.name]), !(isFirst && condition.hasCaptures) {
        own.append(condition)
        continue
      }
      // The hash table compares values by their bytes, so it can't serve a comparison under a COLLATE.
      if case .binary(.equal, let left, let right) = condition, !left.isCollated, !right.isCollated {
        if left.sources == [source.name], right.sources.isSubset(of: bound) {
          keys.append(left)
          probes.append(right)
          continue
        }
        if right.sources == [source.name], left.sources.isSubset(of: bound) {
          keys.append(right)
          probes.append(left)
          continue
        }
      }
      rest.append(condition)
    }
    guard !keys.isEmpty else { return nil }
    let build = AccessChoice(
      planner: planner, source: source, bound: [], conditions: own, unnestConditions: [], outerRows: 1,
      isFirst: false
    ).best()
    var access = build.access
    // The table keeps documents by ID, so the index isn't covering here.
    var filter = build.filter
    if case .index(var index) = access {
      index.isCovering = false
      filter += index.entryFilter
      index.entryFilter = []
      access = .index(index)
    }
    let matches = max(1, build.rowsPerOuterRow * 0.05)
    return Choice(
      access: .hash(build: access, filter: filter, keys: keys, probes: probes), filter: rest,
      cost: build.cost + build.rowsPerOuterRow * Cost.hashedRow
        + max(1, outerRows) * (Cost.probe + min(matches, 4) * Cost.fetch),
      rowsPerOuterRow: matches * selectivity(rest), name: "hash")
  }
}

extension AccessPath {
  /// Whether the table of a hash join is the same for all rows of the outer query.
  var isSameForAllRuns: Bool {
    guard case .hash(let build, let filter, let keys, _) = self else { return false }
    return !(build.expressions + filter + keys).contains { $0.hasCaptures || $0.hasSubqueries }
  }

  /// Whether a hash join compares with values of the outer query.
  var readsCaptures: Bool {
    guard case .hash(_, _, _, let probes) = self else { return false }
    return probes.contains(where: \.hasCaptures)
  }
}

extension [QueryExpression] {
  /// The elements that aren't in `others`, which can be long.
  fileprivate func subtracting(_ others: [QueryExpression]) -> [QueryExpression] {
    if Swift.min(count, others.count) <= 16 { return filter { !others.contains($0) } }
    let others = Set(others)
    return filter { !others.contains($0) }
  }
}

extension ResolvedQuery {
  /// Whether no term of ORDER BY after the document ID at `position` can matter. Such terms do matter when a
  /// join or an UNNEST makes several rows of one document.
  fileprivate func isOrdered(byIDAt position: Int) -> Bool {
    sources.count == 1 || position == orderBy.count - 1
  }
}
