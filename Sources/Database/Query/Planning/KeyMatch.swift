// Selects the conditions that an index can serve, and estimates the number of entries they leave.

import Storage

/// The conditions of a query on the leading expressions of an index.
struct KeyMatch {
  /// One condition for each leading expression: first equalities and lists of values, then at most one other
  /// condition.
  var conditions: [KeyCondition] = []
  /// The conjuncts that all entries in the ranges meet. They need no further check.
  var exact: Set<Int> = []

  /// The maximum number of ranges from lists on several keys. Each combination of their items is one range. A
  /// single list may exceed it.
  private static let mostCombinations = 1_024.0

  init(keys: [QueryExpression], terms: [KeyTerm], allowing most: Int) {
    var combinations = 1.0
    for key in keys.prefix(most) {
      let about = terms.filter { $0.key == key }
      if let term = about.first(where: { $0.condition.isEquality })
        ?? about.first(where: { if case .anyOf = $0.condition { true } else { false } })
      {
        if case .anyOf(let items) = term.condition {
          let isFirst = combinations == 1
          // A list of unknown length counts as 64 items.
          combinations *= items.literalCount ?? 64
          if !isFirst, combinations > KeyMatch.mostCombinations { break }
        }
        conditions.append(term.condition)
        if term.isWhole { exact.insert(term.conjunct) }
        continue
      }
      if let range = KeyMatch.range(about) {
        conditions.append(range.condition)
        exact.formUnion(range.exact)
      }
      break
    }
  }

  /// The narrowest range from the conditions on one expression.
  private static func range(_ terms: [KeyTerm]) -> (condition: KeyCondition, exact: Set<Int>)? {
    var lower: ConditionBound?
    var upper: ConditionBound?
    var exact: Set<Int> = []
    for term in terms {
      guard case .range(let low, let high) = term.condition else { continue }
      // A second bound on the same side stays a condition of its own.
      if low != nil && lower != nil || high != nil && upper != nil { continue }
      lower = lower ?? low
      upper = upper ?? high
      if term.isWhole { exact.insert(term.conjunct) }
    }
    if lower != nil, upper != nil { return (.range(lower: lower, upper: upper), exact) }
    if let like = terms.first(where: { if case .like = $0.condition { true } else { false } }) {
      return (like.condition, [])
    }
    if lower != nil || upper != nil { return (.range(lower: lower, upper: upper), exact) }
    guard let other = terms.first(where: { $0.condition == .isValued || $0.condition == .isThere }) else {
      return nil
    }
    return (other.condition, other.isWhole ? [other.conjunct] : [])
  }
}

/// Estimates how many entries conditions leave, with statistics if there are any.
struct KeyEstimate {
  var entries: Double
  /// The average number of entries that share the values of 1, 2, … leading expressions.
  var perPrefix: [Double]

  func rows(_ conditions: [KeyCondition]) -> Double {
    var rows = entries
    var ranges = 1.0
    for (position, condition) in conditions.enumerated() {
      let known = perPrefix.indices.contains(position) ? perPrefix[position] : nil
      // The average says little when one value, often missing, has most of the entries. A value that is
      // searched after another equality is probably not that one.
      let equal = min(position == 0 ? rows : max(1, rows * 0.1), known ?? max(1, rows * 0.05))
      switch condition {
      case .equal, .isNull, .isMissing: rows = equal
      case .anyOf(let items):
        rows = equal
        ranges *= items.itemCountEstimate
      case .range(let lower, let upper): rows *= lower != nil && upper != nil ? 0.1 : 0.3
      case .like(let pattern): rows *= pattern.beginsWithText ? 0.02 : 1
      case .isValued, .isThere: rows *= 0.9
      }
    }
    return min(entries, max(0.5, rows) * ranges)
  }
}

extension QueryExpression {
  /// The number of items of an array literal. Nil for other expressions, whose length is known at run time.
  fileprivate var literalCount: Double? {
    if case .array(let items) = self { Double(items.count) } else { nil }
  }

  /// An estimate of the number of items of the array.
  fileprivate var itemCountEstimate: Double { literalCount ?? 8 }

  /// Whether a LIKE pattern may begin with text.
  fileprivate var beginsWithText: Bool {
    if case .literal(.string(let pattern)) = self {
      return pattern.bytes.first != UInt8(ascii: "%") && pattern.bytes.first != UInt8(ascii: "_")
    }
    return true
  }

  /// A copy in which the first name of each path `name` is replaced by `other`.
  func renaming(_ name: ByteString, to other: ByteString) -> QueryExpression {
    if name == other { return self }
    switch self {
    case .property(var path):
      if case .name(name)? = path.steps.first { path.steps[0] = .name(other) }
      return .property(path)
    case .star(let source): return .star(source: source.map { $0.renamed(name, to: other) })
    case .meta(let source, let member):
      return .meta(source: source.map { $0.renamed(name, to: other) }, member)
    case .quantified(_, name, _, _): return self
    case .iteration(let iteration) where iteration.variables.contains(name): return self
    default: return mappingParts { $0.renaming(name, to: other) }
    }
  }
}

extension SourceName {
  fileprivate func renamed(_ name: ByteString, to other: ByteString) -> SourceName {
    self.name == name ? SourceName(other) : self
  }
}

extension PlannedIndex {
  /// The same index with its expressions renamed for a source.
  func of(_ source: ByteString) -> PlannedIndex {
    guard source != "_" else { return self }
    var copy = self
    copy.keys = keys.map { $0.renaming("_", to: source) }
    copy.condition = condition.map { $0.renaming("_", to: source) }
    copy.unnest = unnest.map { ($0.array.renaming("_", to: source), $0.variable) }
    return copy
  }

  /// The references that replace the index's expressions when its entries are available.
  func keyReferences(of source: ByteString) -> [QueryExpression: QueryExpression] {
    var references: [QueryExpression: QueryExpression] = [:]
    for (position, key) in keys.enumerated() where references[key] == nil {
      references[key] = InternalName.reference(InternalName.indexKey(position, of: source))
    }
    return references
  }

  /// Whether its leading expressions are the given ones, in any order.
  func gives(_ expressions: [QueryExpression]) -> Bool {
    !expressions.isEmpty && Set(keys.prefix(expressions.count)) == Set(expressions)
  }
}

extension AccessChoice {
  /// An estimate of the fraction of rows that the conditions let pass.
  func selectivity(_ conditions: [QueryExpression]) -> Double {
    conditions.reduce(1) { $0 * $1.selectivity }
  }
}

extension QueryExpression {
  fileprivate var selectivity: Double {
    switch self {
    case .binary(.equal, _, _), .test(_, .null, negated: false): 0.1
    case .contained(_, _, negated: false), .between, .like(_, _, negated: false): 0.2
    case .binary(.less, _, _), .binary(.lessOrEqual, _, _), .binary(.greater, _, _),
      .binary(.greaterOrEqual, _, _):
      0.3
    default: 0.5
    }
  }
}

extension ResolvedQuery {
  /// The number of rows that LIMIT and OFFSET ask for. It is an estimate when they aren't integer literals.
  var limitEstimate: Double {
    guard let limit else { return .infinity }
    var wanted = 50.0
    if case .literal(.int(let count)) = limit { wanted = Double(max(0, count)) }
    if let offset {
      if case .literal(.int(let count)) = offset { wanted += Double(max(0, count)) } else { wanted += 50 }
    }
    return wanted
  }
}

extension Double {
  /// A rough binary logarithm. 0 below 2.
  var log2Estimate: Double { self < 2 ? 0 : Double(exponent) }
}

extension InternalName {
  /// The name of an index's expression, where only the index is read.
  static func indexKey(_ position: Int, of source: ByteString) -> ByteString {
    ByteString(Array("\u{1}index\(position)\u{1}".utf8) + source.bytes)
  }
  /// The name of an item that a condition looks for in an array.
  static let item: ByteString = "\u{1}item"
}
