import Fleece

/// The values of a field that a selector allows, as far as a range says it.
struct MangoRange {
  /// An end of the range. Whether the bound itself belongs to it.
  struct Bound {
    var operand: MangoOperand
    var isInclusive: Bool
  }

  var lower: Bound?
  var upper: Bound?
  /// Whether no value is allowed.
  var isEmpty = false

  /// Narrows the range by a condition. Conditions that aren't ranges leave it as it is.
  mutating func narrow(_ condition: MangoCondition, _ collation: MangoCollation) {
    switch condition {
    case .compare(.equal, let operand):
      raise(to: Bound(operand: operand, isInclusive: true), collation)
      lower(to: Bound(operand: operand, isInclusive: true), collation)
    case .compare(.greater, let operand): raise(to: Bound(operand: operand, isInclusive: false), collation)
    case .compare(.greaterOrEqual, let operand):
      raise(to: Bound(operand: operand, isInclusive: true), collation)
    case .compare(.less, let operand): lower(to: Bound(operand: operand, isInclusive: false), collation)
    case .compare(.lessOrEqual, let operand):
      lower(to: Bound(operand: operand, isInclusive: true), collation)
    case .beginsWith(let prefix):
      // U+FFFF comes behind all other characters in the collation.
      let (first, last) = (JSONValue.string(prefix), JSONValue.string(prefix + "\u{FFFF}"))
      raise(to: Bound(operand: MangoOperand(first, collation), isInclusive: true), collation)
      lower(to: Bound(operand: MangoOperand(last, collation), isInclusive: true), collation)
    default: return
    }
    guard let lower, let upper else { return }
    let order = collation.compare(lower.operand.value, upper.operand)
    isEmpty = isEmpty || order > 0 || order == 0 && !(lower.isInclusive && upper.isInclusive)
  }

  private mutating func raise(to bound: Bound, _ collation: MangoCollation) {
    guard let known = lower else { return lower = bound }
    let order = collation.compare(bound.operand.value, known.operand)
    if order > 0 || order == 0 && !bound.isInclusive { lower = bound }
  }

  private mutating func lower(to bound: Bound, _ collation: MangoCollation) {
    guard let known = upper else { return upper = bound }
    let order = collation.compare(bound.operand.value, known.operand)
    if order < 0 || order == 0 && !bound.isInclusive { upper = bound }
  }
}

extension MangoCondition {
  /// Whether an index may be used for it. `$exists` is, because it makes an index of that field the better choice.
  var isIndexable: Bool {
    switch self {
    case .compare(.unequal, _): false
    case .compare, .beginsWith, .exists: true
    default: false
    }
  }
}

extension MangoSelector {
  /// The fields that an index may be used for, in the order of their names: those that every chosen document has in some range.
  var indexableFields: [MangoField] {
    var fields: [MangoField] = []
    collectIndexable(into: &fields)
    return fields.sorted { Self.precedes($0, $1) }
  }

  private func collectIndexable(into fields: inout [MangoField]) {
    switch self {
    case .and(let parts): for part in parts { part.collectIndexable(into: &fields) }
    case .field(let field, let condition):
      if condition.isIndexable, !fields.contains(field) { fields.append(field) }
    default: break
    }
  }

  private static func precedes(_ left: MangoField, _ right: MangoField) -> Bool {
    for (part, other) in zip(left.parts, right.parts) where !part.utf8.elementsEqual(other.utf8) {
      return part.utf8.lexicographicallyPrecedes(other.utf8)
    }
    return left.parts.count < right.parts.count
  }

  /// The values of a field that all chosen documents have.
  func range(of field: MangoField, _ collation: MangoCollation) -> MangoRange {
    var range = MangoRange()
    narrow(&range, field, collation)
    return range
  }

  private func narrow(_ range: inout MangoRange, _ wanted: MangoField, _ collation: MangoCollation) {
    switch self {
    case .and(let parts): for part in parts { part.narrow(&range, wanted, collation) }
    case .field(let field, let condition):
      if field == wanted { range.narrow(condition, collation) }
    default: break
    }
  }

  /// Whether every chosen document has the field.
  func requires(_ field: MangoField) -> Bool {
    switch self {
    case .all, .not: false
    case .and(let parts): parts.contains { $0.requires(field) }
    case .or(let parts): !parts.isEmpty && parts.allSatisfy { $0.requires(field) }
    case .field(_, .exists(false)): false
    case .field(let own, _): own == field
    }
  }

  /// Whether all chosen documents have the same value there.
  func isConstant(_ field: MangoField) -> Bool {
    switch self {
    case .and(let parts): parts.contains { $0.isConstant(field) }
    case .field(let own, .compare(.equal, _)): own == field
    default: false
    }
  }
}
