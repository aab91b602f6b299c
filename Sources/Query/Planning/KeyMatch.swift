// Which conditions an index can serve, and how many entries that leaves.

import Storage

/// The conditions of a query on an index's leading expressions.
struct KeyMatch {
  /// One for each leading expression: values that are given, and at last what is no equality.
  var conditions: [KeyCondition] = []
  /// Conjuncts that all entries in the ranges meet: nobody has to ask them again.
  var exact: Set<Int> = []

  /// Of lists on several keys each combination of their items is a range of its own: so many at most, which one list alone
  /// may exceed.
  private static let mostCombinations = 1_024.0

  init(keys: [Expression], terms: [KeyTerm], allowing most: Int) {
    var combinations = 1.0
    for key in keys.prefix(most) {
      let about = terms.filter { $0.key == key }
      if let term = about.first(where: { $0.condition.isEquality })
        ?? about.first(where: { if case .anyOf = $0.condition { true } else { false } })
      {
        if case .anyOf(let items) = term.condition {
          let isFirst = combinations == 1
          // A list whose length isn't known goes together with a short one.
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

  /// The narrowest range that terms on one expression give.
  private static func range(_ terms: [KeyTerm]) -> (condition: KeyCondition, exact: Set<Int>)? {
    var lower: KeyBound?
    var upper: KeyBound?
    var exact: Set<Int> = []
    for term in terms {
      guard case .range(let low, let high) = term.condition else { continue }
      // A second bound on one side stays a condition.
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

/// How many entries conditions leave, by statistics where there are any.
struct KeyEstimate {
  var entries: Double
  /// How many entries share the values of 1, 2, … leading expressions.
  var perPrefix: [Double]

  func rows(_ conditions: [KeyCondition]) -> Double {
    var rows = entries
    var ranges = 1.0
    for (position, condition) in conditions.enumerated() {
      let known = perPrefix.indices.contains(position) ? perPrefix[position] : nil
      // The mean says little where one value is most of the entries (missing, often): what is asked for after another
      // equality is rather one of the rest.
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

extension Expression {
  /// How many items an array has that is written out; nil for what has its length at run time.
  fileprivate var literalCount: Double? {
    if case .array(let items) = self { Double(items.count) } else { nil }
  }

  /// How many items the array may have.
  fileprivate var itemCountEstimate: Double { literalCount ?? 8 }

  /// Whether a pattern of LIKE may begin with text.
  fileprivate var beginsWithText: Bool {
    if case .literal(.string(let pattern)) = self {
      return pattern.bytes.first != UInt8(ascii: "%") && pattern.bytes.first != UInt8(ascii: "_")
    }
    return true
  }

  /// A copy in which a path's first name is another.
  func renaming(_ name: ByteString, to other: ByteString) -> Expression {
    if name == other { return self }
    switch self {
    case .property(var path):
      if case .name(name)? = path.steps.first { path.steps[0] = .name(other) }
      return .property(path)
    case .star(let source): return .star(source: source.map { $0.renamed(name, to: other) })
    case .meta(let source, let member):
      return .meta(source: source.map { $0.renamed(name, to: other) }, member)
    case .quantified(_, name, _, _): return self
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
  /// The same index, its expressions those of a source.
  func of(_ source: ByteString) -> PlannedIndex {
    guard source != "_" else { return self }
    var copy = self
    copy.keys = keys.map { $0.renaming("_", to: source) }
    copy.condition = condition.map { $0.renaming("_", to: source) }
    copy.unnest = unnest.map { ($0.array.renaming("_", to: source), $0.variable) }
    return copy
  }

  /// What its expressions are read as where its entries are at hand.
  func keyReferences(of source: ByteString) -> [Expression: Expression] {
    var references: [Expression: Expression] = [:]
    for (position, key) in keys.enumerated() where references[key] == nil {
      references[key] = InternalName.reference(InternalName.indexKey(position, of: source))
    }
    return references
  }

  /// Whether its leading expressions are these, in any order.
  func gives(_ expressions: [Expression]) -> Bool {
    !expressions.isEmpty && Set(keys.prefix(expressions.count)) == Set(expressions)
  }
}

extension AccessChoice {
  /// The part of rows that conditions may let pass.
  func selectivity(_ conditions: [Expression]) -> Double {
    conditions.reduce(1) { $0 * $1.selectivity }
  }
}

extension Expression {
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
  /// How many rows are wanted: what LIMIT says when it is a number.
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
  /// Its binary logarithm, roughly; 0 below 2.
  var log2Estimate: Double { self < 2 ? 0 : Double(exponent) }
}

extension InternalName {
  /// An index's expression, where only the index is read.
  static func indexKey(_ position: Int, of source: ByteString) -> ByteString {
    ByteString(Array("\u{1}index\(position)\u{1}".utf8) + source.bytes)
  }
  /// An item that a condition looks for in an array.
  static let item: ByteString = "\u{1}item"
}
