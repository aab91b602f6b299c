// Lookups for the conditions of an OR, whose documents are united by ID.

extension AccessChoice {
  /// The maximum number of conditions of one OR, and of all ORs, that are looked up. Each condition takes as
  /// long as a plan for the rest.
  private static let mostParts = (ofOne: 64, ofAll: 128)

  /// For each OR, a union of lookups, one for each of its conditions.
  func unions() -> [Choice] {
    var left = AccessChoice.mostParts.ofAll
    return conditions.indices.compactMap { position in
      let parts = conditions[position].disjuncts
      guard parts.count > 1, parts.count <= min(left, AccessChoice.mostParts.ofOne) else { return nil }
      left -= parts.count
      var others = conditions
      others.remove(at: position)
      var paths: [AccessPath] = []
      var cost = 0.0
      var rows = 0.0
      for part in parts {
        let single = AccessChoice(
          planner: planner, source: source, bound: bound, conditions: others + part.conjuncts,
          unnestConditions: [], outerRows: 1, isFirst: false)
        let choices = (single.lookups() + single.identifierLookups() + single.matches()).filter {
          $0.access.isLookup
        }
        guard let best = choices.min(by: { ($0.cost, $0.name) < ($1.cost, $1.name) }) else { return nil }
        var path = best.access
        // Documents are fetched, because the parts can use different indexes.
        if case .index(var access) = path {
          access.isCovering = false
          access.entryFilter = []
          path = .index(access)
        }
        paths.append(path)
        cost += best.cost + best.rowsPerOuterRow * Cost.fetch
        rows += best.rowsPerOuterRow
      }
      return priced(
        Choice(
          access: AccessPath.merged(paths), filter: conditions, cost: cost,
          rowsPerOuterRow: min(rows, documentCount), name: "union"))
    }
  }
}

extension AccessPath {
  /// Whether it reads less than everything.
  fileprivate var isLookup: Bool {
    switch self {
    case .identifiers: true
    case .index(let access): access.ranges.allSatisfy { !$0.isEmpty }
    case .fullText: true
    default: false
    }
  }

  /// Combines paths into one. Ranges of the same index are merged, so that nothing is found twice.
  fileprivate static func merged(_ paths: [AccessPath]) -> AccessPath {
    var merged: [AccessPath] = []
    for path in paths {
      let same = merged.firstIndex { other in
        switch (other, path) {
        case (.identifiers, .identifiers): true
        case (.index(let left), .index(let right)): left.index.name == right.index.name
        default: false
        }
      }
      guard let same else {
        merged.append(path)
        continue
      }
      switch (merged[same], path) {
      case (.identifiers(let left, let direction), .identifiers(let right, _)):
        merged[same] = .identifiers(left + right, direction: direction)
      case (.index(var left), .index(let right)):
        left.ranges += right.ranges
        merged[same] = .index(left)
      default: break
      }
    }
    return merged.count == 1 ? merged[0] : .union(merged)
  }
}
