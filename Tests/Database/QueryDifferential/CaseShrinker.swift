import Query
import TestSupport

/// Makes a failing case smaller while it fails: fewer clauses, simpler expressions, fewer steps, smaller bodies.
package struct CaseShrinker {
  /// The smallest case so far.
  package private(set) var best: DifferentialCase
  /// What is wrong with it.
  package private(set) var failure: DifferentialFailure
  private let engines: [EngineName]
  private let deadline: ContinuousClock.Instant

  /// A shrinker of a case that fails, which takes so much time at most.
  package init(
    _ found: DifferentialCase, _ failure: DifferentialFailure, _ engines: [EngineName],
    limit: Duration = .seconds(30)
  ) {
    best = found
    self.failure = failure
    // Where the naive evaluator has no answer, engines are compared with one another.
    self.engines = engines
    deadline = ContinuousClock.now.advanced(by: limit)
  }

  private var isLate: Bool { ContinuousClock.now > deadline }

  /// Makes it as small as it gets.
  package mutating func shrink() {
    var isSmaller = true
    while isSmaller, !isLate {
      isSmaller = shrinkQuery()
      if shrinkSteps() { isSmaller = true }
    }
  }

  // MARK: The query

  private mutating func shrinkQuery() -> Bool {
    guard best.liveSteps.isEmpty else { return false }
    // Each query has a database of its own then: a batch is for one.
    if !best.batchSteps.isEmpty { return takeSimplerQueries { $0.take($1) } }
    guard let database = try? CaseDatabase(engines, best.steps) else { return false }
    return takeSimplerQueries { $0.take($1, $1.failure(of: $1.query, in: database)) }
  }

  /// Offers simpler queries to `takes` until it takes none. Returns whether it took any.
  private mutating func takeSimplerQueries(_ takes: (inout CaseShrinker, DifferentialCase) -> Bool) -> Bool {
    func takeOne(_ shrinker: inout CaseShrinker) -> Bool {
      shrinker.best.query.simpler.contains { simpler in
        // What can't be written as text isn't a query.
        guard simpler.weight < shrinker.best.query.weight, !shrinker.isLate,
          let query = try? SelectStatement(parsing: simpler.description), query == simpler
        else { return false }
        var candidate = shrinker.best
        candidate.query = query
        return takes(&shrinker, candidate)
      }
    }
    var isAnySmaller = false
    while takeOne(&self) { isAnySmaller = true }
    return isAnySmaller
  }

  // MARK: The steps

  private mutating func take(_ candidate: DifferentialCase) -> Bool {
    !isLate && take(candidate, candidate.failure(on: engines))
  }

  private mutating func take(_ candidate: DifferentialCase, _ failure: DifferentialFailure?) -> Bool {
    guard let failure else { return false }
    best = candidate
    self.failure = failure
    return true
  }

  private mutating func shrinkSteps() -> Bool {
    var isAnySmaller = false
    // Halves, quarters, and so on.
    var size = max(1, best.steps.count / 2)
    while !isLate {
      var start = 0
      while start < best.steps.count, !isLate {
        var candidate = best
        candidate.steps.removeSubrange(start..<min(start + size, best.steps.count))
        if take(candidate) { isAnySmaller = true } else { start += size }
      }
      if size == 1 { break }
      size /= 2
    }
    for steps in [\DifferentialCase.liveSteps, \.batchSteps] {
      for index in best[keyPath: steps].indices.reversed() where best[keyPath: steps].count > 1 {
        var candidate = best
        candidate[keyPath: steps].remove(at: index)
        if take(candidate) { isAnySmaller = true }
      }
    }
    for index in best.steps.indices {
      guard case .save(let id, let body) = best.steps[index], let members = body.object else { continue }
      var left = members
      for name in members.keys {
        var fewer = left
        fewer.removeValue(forKey: name)
        var candidate = best
        candidate.steps[index] = .save(id: id, body: .object(fewer))
        if take(candidate) {
          left = fewer
          isAnySmaller = true
        }
      }
    }
    return isAnySmaller
  }
}

extension DifferentialCase {
  /// What is wrong with the case; nil when nothing is.
  package func failure(on engines: [EngineName]) -> DifferentialFailure? {
    guard let database = try? CaseDatabase(engines, steps) else { return nil }
    defer { database.close() }
    database.patience = 3
    if !liveSteps.isEmpty { return (try? database.checkLive([(query, parameters)], liveSteps))??.1 }
    if !batchSteps.isEmpty {
      var failure: DifferentialFailure?
      do { try database.inUndoneBatch(batchSteps) { failure = self.failure(of: query, in: database) } } catch
      {
        failure = DifferentialFailure(engine: engines[0], way: "batch", message: "\(error)")
      }
      // What is undone must leave nothing behind.
      return failure ?? self.failure(of: query, in: database)
    }
    return failure(of: query, in: database)
  }

  /// What is wrong with a query of a database.
  func failure(of query: SelectStatement, in database: CaseDatabase) -> DifferentialFailure? {
    if let planted {
      return planted(query.description).map {
        DifferentialFailure(engine: .sqlite, way: "planted", message: $0)
      }
    }
    // A live query doesn't see a batch that isn't committed.
    let ways = RowWay.allCases.filter { batchSteps.isEmpty || $0 != .live }
    if case .failed(let failure)? = try? database.check(query, parameters, ways: ways).outcome {
      return failure
    }
    return nil
  }
}

extension SelectStatement {
  /// How much there is of it.
  fileprivate var weight: Int {
    var weight = joins.count * 4 + results.count + (isDistinct ? 1 : 0) + excluded.count
    weight += source?.indexes.count ?? 0
    forEachExpression { weight += 2 + $0.ownWeight }
    return weight
  }

  /// The same with something left out or made simpler.
  fileprivate var simpler: [SelectStatement] {
    var all: [SelectStatement] = []
    func add(_ change: (inout SelectStatement) -> Void) {
      var copy = self
      change(&copy)
      all.append(copy)
    }
    add { $0.condition = nil }
    add { $0.orderBy = [] }
    add { $0.limit = nil }
    add { $0.offset = nil }
    add { $0.having = nil }
    add { $0.isDistinct = false }
    add { $0.excluded = [] }
    add { $0.letting = [] }
    add { $0.source?.indexes = [] }
    if !joins.isEmpty { add { $0.joins.removeLast() } }
    for index in joins.indices { add { $0.joins.remove(at: index) } }
    for index in results.indices where results.count > 1 { add { $0.results.remove(at: index) } }
    if groupingSets.isEmpty {
      for index in groupBy.indices { add { $0.groupBy.remove(at: index) } }
    } else {
      add { $0.groupingSets = [] }
      for index in groupingSets.indices where groupingSets.count > 1 {
        add { $0.groupingSets.remove(at: index) }
      }
    }
    for index in orderBy.indices {
      add { $0.orderBy.remove(at: index) }
      for simpler in orderBy[index].expression.simpler { add { $0.orderBy[index].expression = simpler } }
    }
    for simpler in condition?.simpler ?? [] { add { $0.condition = simpler } }
    for simpler in having?.simpler ?? [] { add { $0.having = simpler } }
    for index in results.indices {
      for simpler in results[index].expression.simpler { add { $0.results[index].expression = simpler } }
    }
    for index in groupBy.indices {
      for simpler in groupBy[index].simpler { add { $0.groupBy[index] = simpler } }
    }
    for index in joins.indices {
      switch joins[index] {
      case .join(let kind, let source, let condition):
        for simpler in condition?.simpler ?? [] { add { $0.joins[index] = .join(kind, source, on: simpler) } }
        if kind == .leftOuter { add { $0.joins[index] = .join(.inner, source, on: condition) } }
      case .nest(let source, let condition, let isLeftOuter):
        for simpler in condition.simpler {
          add { $0.joins[index] = .nest(source, on: simpler, isLeftOuter: isLeftOuter) }
        }
      case .unnest(let array, let name, let isLeftOuter):
        for simpler in array.simpler {
          add { $0.joins[index] = .unnest(simpler, as: name, isLeftOuter: isLeftOuter) }
        }
      }
    }
    return all
  }
}

extension QueryExpression {
  fileprivate var ownWeight: Int {
    switch self {
    case .literal(.int(0)), .literal(.int(1)), .literal(.bool): 0
    case .literal: 1
    case .property(let path): path.steps.count
    case .exists, .subquery: 6
    case .contained(_, _, let negated), .like(_, _, let negated), .between(_, _, _, let negated):
      negated ? 4 : 3
    default: 3
    }
  }

  /// What is simpler: its parts, literals, and itself with a simpler part.
  fileprivate var simpler: [QueryExpression] {
    var all = parts
    switch self {
    case .literal: return []
    case .property: return [.literal(.int(1))]
    case .array(let items):
      for index in items.indices {
        var fewer = items
        fewer.remove(at: index)
        all.append(.array(fewer))
      }
    case .between(let value, let lower, let upper, true):
      all.append(.between(value, lower: lower, upper: upper, negated: false))
    case .contained(let value, let collection, true):
      all.append(.contained(value, in: collection, negated: false))
    case .like(let value, let pattern, true): all.append(.like(value, pattern: pattern, negated: false))
    default: break
    }
    all += [.literal(.int(1)), .literal(.bool(true))]
    for (index, part) in parts.enumerated() {
      for simpler in part.simpler {
        var changed = parts
        changed[index] = simpler
        all.append(replacing(parts: changed))
      }
    }
    return all
  }
}
