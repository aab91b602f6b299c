import Bytes
import Fleece

/// Tells whether values pass a selector. Used on one thread at a time.
package final class MangoMatcher {
  private let selector: MangoSelector
  private let collation: MangoCollation
  private let effort = MangoEffort()

  /// Whether nobody waits for the results any more. A match ends then, also within a document.
  package var isCancelled: () -> Bool {
    get { effort.isCancelled }
    set { effort.isCancelled = newValue }
  }
  /// Whether the last match ended so. Its result is false then, and means nothing.
  package var wasCancelled: Bool { effort.wasCancelled }

  /// Throws if ICU has no collator.
  package init(_ selector: MangoSelector) throws {
    self.selector = selector
    collation = try MangoCollation()
  }

  /// Whether a document passes. It has `_id` and `_rev`, and what else the selector asks for (`MangoSelector.names`).
  package func matches(_ document: JSONValue) -> Bool {
    effort.begin()
    return passes(document, selector) && !effort.wasCancelled
  }

  private func passes(_ value: JSONValue, _ selector: MangoSelector) -> Bool {
    guard effort.goesOn() else { return false }
    return switch selector {
    case .all: true
    case .and(let parts): parts.allSatisfy { passes(value, $0) }
    case .or(let parts): parts.isEmpty || parts.contains { passes(value, $0) }
    case .not(let other): !passes(value, other)
    case .field(let field, let condition):
      switch field.find(in: value) {
      case .value(let found): passes(found, condition, isID: field.isID)
      case .missing: if case .exists(false) = condition { true } else { false }
      case .noPath: false
      }
    }
  }

  /// `isID`: the value is a document's ID, which CouchDB compares by its bytes.
  private func passes(_ value: JSONValue, _ condition: MangoCondition, isID: Bool = false) -> Bool {
    switch condition {
    case .compare(let comparison, let operand) where isID:
      comparison.isTrue(Self.orderByBytes(value, operand.value))
    case .isIn(let operands) where isID:
      operands.contains { Self.orderByBytes(value, $0.value) == 0 }
    case .isNotIn(let operands) where isID:
      !operands.contains { Self.orderByBytes(value, $0.value) == 0 }
    case .compare(.equal, let operand): collation.equals(value, operand)
    case .compare(.unequal, let operand): !collation.equals(value, operand)
    case .compare(let comparison, let operand): comparison.isTrue(collation.compare(value, operand))
    case .isIn(let operands): isIn(value, operands)
    case .isNotIn(let operands): !isIn(value, operands)
    case .exists(let isWanted): isWanted
    case .type(let type): Self.type(of: value).utf8.elementsEqual(type.utf8)
    case .modulo(let divisor, let remainder): Self.remainder(value, divisor) == remainder
    case .size(let count): value.array.map { $0.count == count } ?? false
    case .matches(let pattern): value.string.map { pattern.isFound(in: $0, effort) } ?? false
    case .beginsWith(let prefix): value.string.map { $0.utf8.starts(with: prefix.utf8) } ?? false
    case .hasAll(let wanted): Self.hasAll(wanted, value)
    case .someItem(let inner): value.array?.contains { passes($0, inner) } ?? false
    case .everyItem(let inner):
      value.array.map { !$0.isEmpty && $0.allSatisfy { passes($0, inner) } } ?? false
    case .someName(let inner): value.object?.keys.contains { passes(.string($0), inner) } ?? false
    case .not(let other): !passes(value, other, isID: isID)
    }
  }

  private func isIn(_ value: JSONValue, _ operands: [MangoOperand]) -> Bool {
    let values = value.array ?? [value]
    return operands.contains { operand in values.contains { collation.equals($0, operand) } }
  }

  /// Text is in the order of its bytes, behind all other values.
  private static func orderByBytes(_ value: JSONValue, _ other: JSONValue) -> Int {
    guard let text = value.string, let wanted = other.string else { return 1 }
    if text.utf8.elementsEqual(wanted.utf8) { return 0 }
    return text.utf8.lexicographicallyPrecedes(wanted.utf8) ? -1 : 1
  }

  private static func remainder(_ value: JSONValue, _ divisor: Int64) -> Int64? {
    switch value {
    case .int(let value): Int64(exactly: Int128(value) % Int128(divisor))
    case .uint(let value): Int64(exactly: Int128(value) % Int128(divisor))
    default: nil
    }
  }

  /// All of the values, or a list of one array that is the array.
  private static func hasAll(_ wanted: [JSONValue], _ value: JSONValue) -> Bool {
    guard let items = value.array, !wanted.isEmpty else { return false }
    if wanted.count == 1, wanted[0].array == items { return true }
    return wanted.allSatisfy { items.contains($0) }
  }

  static func type(of value: JSONValue) -> String {
    switch value {
    case .null: "null"
    case .bool: "boolean"
    case .int, .uint, .double: "number"
    case .string, .data: "string"
    case .array: "array"
    case .object: "object"
    }
  }
}

extension MangoSelector {
  /// The names of the document's members that the selector looks at; nil if it looks at the whole document.
  package var names: Set<ByteString>? {
    switch self {
    case .all: return []
    case .and(let parts), .or(let parts):
      var names: Set<ByteString> = []
      for part in parts {
        guard let own = part.names else { return nil }
        names.formUnion(own)
      }
      return names
    case .not(let other): return other.names
    case .field(let field, _): return field.parts.first.map { [ByteString($0)] }
    }
  }
}
