import Fleece

// A selector is JSON that chooses documents, in the language of CouchDB's `_find`:
//
//   selector  := { }                                                     every document
//              | { member, … }                                          all of them
//   member    := "$and": [ selector, … ] | "$or": [ … ] | "$nor": [ … ] | "$not": selector
//              | field: condition
//   condition := { "$lt" | "$lte" | "$eq" | "$ne" | "$gte" | "$gt": value }
//              | { "$in" | "$nin" | "$all": [ value, … ] }
//              | { "$exists": boolean } | { "$type": text } | { "$size": count } | { "$mod": [ divisor, remainder ] }
//              | { "$regex": text } | { "$beginsWith": text }
//              | { "$elemMatch" | "$allMatch" | "$keyMapMatch": selector }
//              | selector                                               of what the field leads to
//              | value                                                  the same as "$eq"
//
// It is brought into CouchDB's normal form: fields are whole paths, and negations are moved down to the conditions. So `$not` of a
// comparison doesn't choose documents without the field, and what `_explain` shows is the same.

/// A selector in its normal form.
package indirect enum MangoSelector: Sendable {
  /// Every document.
  case all
  /// All of them. Empty: every document.
  case and([MangoSelector])
  /// Any of them. Empty: every document, as in CouchDB.
  case or([MangoSelector])
  /// Only in the selectors of `$elemMatch` and its relatives, where negations stay where they are.
  case not(MangoSelector)
  /// A condition of what a field leads to.
  case field(MangoField, MangoCondition)
}

/// A comparison.
package enum MangoComparison: String, Sendable {
  case less = "$lt"
  case lessOrEqual = "$lte"
  case equal = "$eq"
  case unequal = "$ne"
  case greaterOrEqual = "$gte"
  case greater = "$gt"

  var negated: MangoComparison {
    switch self {
    case .less: .greaterOrEqual
    case .lessOrEqual: .greater
    case .equal: .unequal
    case .unequal: .equal
    case .greaterOrEqual: .less
    case .greater: .lessOrEqual
    }
  }

  /// Whether values with this order (below 0, 0, above 0) pass.
  func isTrue(_ order: Int) -> Bool {
    switch self {
    case .less: order < 0
    case .lessOrEqual: order <= 0
    case .equal: order == 0
    case .unequal: order != 0
    case .greaterOrEqual: order >= 0
    case .greater: order > 0
    }
  }
}

/// A condition of a value.
package indirect enum MangoCondition: Sendable {
  case compare(MangoComparison, MangoOperand)
  /// One of these, or an array with one of these.
  case isIn([MangoOperand])
  case isNotIn([MangoOperand])
  case exists(Bool)
  case type(String)
  /// An integer whose remainder is this one.
  case modulo(divisor: Int64, remainder: Int64)
  case size(Int64)
  case matches(MangoPattern)
  case beginsWith(String)
  /// An array with all of these.
  case hasAll([JSONValue])
  /// An array of which some item passes.
  case someItem(MangoSelector)
  /// An array with items, which all pass.
  case everyItem(MangoSelector)
  /// An object of which some name passes.
  case someName(MangoSelector)
  case not(MangoCondition)
}

extension MangoSelector {
  /// Reads a selector. Throws CouchDB's errors.
  package init(_ json: OrderedJSON) throws {
    guard let members = json.members else {
      throw CouchDBError(
        400, "invalid_selector_json", "Selector must be a JSON object, not: \(json.term)")
    }
    guard !members.isEmpty else {
      self = .all
      return
    }
    let reader = MangoSelectorReader(try MangoCollation(), keepsNegations: false)
    self = try reader.read(json, .itself, isNegated: false)
    if case .field(let field, _) = self, field.parts.isEmpty {
      throw CouchDBError(
        400, "invalid_selector", "One or more conditions is missing a field name.")
    }
  }

  /// Reads a selector. Members that have no order come in that of their names' bytes.
  package init(_ value: JSONValue) throws { try self.init(OrderedJSON(sorting: value)) }

  /// The selector that a condition is of: the documents that pass both.
  package func and(_ other: MangoSelector) -> MangoSelector {
    switch (self, other) {
    case (.all, _): other
    case (_, .all): self
    default: .and([self, other])
    }
  }
}

/// Reads selectors.
struct MangoSelectorReader {
  private let collation: MangoCollation
  /// Whether `$not` and `$nor` stay where they are.
  private let keepsNegations: Bool

  init(_ collation: MangoCollation, keepsNegations: Bool) {
    self.collation = collation
    self.keepsNegations = keepsNegations
  }

  /// Reads what holds for the value at `path`.
  func read(_ json: OrderedJSON, _ path: MangoField, isNegated: Bool) throws -> MangoSelector {
    guard let members = json.members, !members.isEmpty else {
      return compare(.equal, json, path, isNegated)
    }
    guard members.count == 1 else {
      let parts = try members.map { try read(.object([$0]), path, isNegated: isNegated) }
      return isNegated ? .or(parts) : .and(parts)
    }
    let (name, argument) = (members[0].name, members[0].value)
    guard name.utf8.first == UInt8(ascii: "$") else {
      return try read(argument, path.appending(MangoField(name)), isNegated: isNegated)
    }
    switch name {
    case "$and", "$or", "$nor":
      guard let items = argument.array else { throw Self.badArgument(name, argument) }
      return try combine(name, items, path, isNegated)
    case "$not":
      guard argument.members != nil else { throw Self.badArgument(name, argument) }
      if keepsNegations { return .not(try read(argument, path, isNegated: false)) }
      return try read(argument, path, isNegated: !isNegated)
    default:
      if let comparison = MangoComparison(rawValue: name) {
        return compare(comparison, argument, path, isNegated)
      }
      let condition = try condition(name, argument)
      return .field(path, isNegated ? Self.negate(condition) : condition)
    }
  }

  private func combine(
    _ name: String, _ items: [OrderedJSON], _ path: MangoField, _ isNegated: Bool
  ) throws -> MangoSelector {
    if name == "$nor", keepsNegations {
      return .not(.or(try items.map { try read($0, path, isNegated: false) }))
    }
    // NOT (a AND b) is NOT a OR NOT b.
    let parts = try items.map { try read($0, path, isNegated: isNegated != (name == "$nor")) }
    return (name == "$or") == isNegated || name == "$nor" && !isNegated ? .and(parts) : .or(parts)
  }

  private func compare(
    _ comparison: MangoComparison, _ json: OrderedJSON, _ path: MangoField, _ isNegated: Bool
  ) -> MangoSelector {
    let operand = MangoOperand(json.value, collation)
    return .field(path, .compare(isNegated ? comparison.negated : comparison, operand))
  }

  private static func negate(_ condition: MangoCondition) -> MangoCondition {
    switch condition {
    case .isIn(let values): .isNotIn(values)
    case .isNotIn(let values): .isIn(values)
    case .exists(let isWanted): .exists(!isWanted)
    default: .not(condition)
    }
  }

  private func condition(_ name: String, _ argument: OrderedJSON) throws -> MangoCondition {
    switch name {
    case "$in", "$nin":
      guard let items = argument.array else { break }
      let operands = items.map { MangoOperand($0.value, collation) }
      return name == "$in" ? .isIn(operands) : .isNotIn(operands)
    case "$all": if let items = argument.array { return .hasAll(items.map(\.value)) }
    case "$exists": if let isWanted = argument.bool { return .exists(isWanted) }
    case "$type": if let type = argument.string { return .type(type) }
    case "$size": if let count = argument.int, count >= 0 { return .size(count) }
    case "$mod":
      if let items = argument.array, items.count == 2, let divisor = items[0].int, divisor != 0,
        let remainder = items[1].int
      {
        return .modulo(divisor: divisor, remainder: remainder)
      }
    case "$regex":
      // CouchDB knows these two for texts alone.
      guard let text = argument.string else { throw Self.unknown(name) }
      if let pattern = MangoPattern(text) { return .matches(pattern) }
    case "$beginsWith":
      guard let text = argument.string else { throw Self.unknown(name) }
      return .beginsWith(text)
    case "$elemMatch", "$allMatch", "$keyMapMatch":
      guard argument.members != nil else { break }
      let inner = try MangoSelectorReader(collation, keepsNegations: true)
        .read(argument, .itself, isNegated: false)
      return name == "$elemMatch"
        ? .someItem(inner) : name == "$allMatch" ? .everyItem(inner) : .someName(inner)
    case "$text", "$where", "$geoWithin", "$geoIntersects", "$near", "$nearSphere":
      throw CouchDBError(400, "not_supported", "Unsupported operator: \(name)")
    default: throw Self.unknown(name)
    }
    throw Self.badArgument(name, argument)
  }

  private static func unknown(_ name: String) -> CouchDBError {
    CouchDBError(400, "invalid_operator", "Invalid operator: \(name)")
  }

  private static func badArgument(_ name: String, _ argument: OrderedJSON) -> CouchDBError {
    CouchDBError(400, "bad_arg", "Bad argument for operator \(name): \(argument.term)")
  }
}
