import Bytes
import Fleece

// A selector is compiled to nodes that test values in place, so that a scan makes neither JSON nor strings of the documents that don't
// pass. The nodes of one matcher are used by one thread at a time.

/// A value that conditions test, in place. It is valid as long as the bytes that it is in.
enum MangoValue: BitwiseCopyable {
  case stored(UnsafeValue)
  /// A document's ID, or a name in an object.
  case text(UnsafeRawBufferPointer)

  /// The bytes of a string.
  var utf8: UnsafeRawBufferPointer? {
    switch self {
    case .stored(let value): value.utf8
    case .text(let bytes): bytes
    }
  }

  var array: UnsafeValue? {
    guard case .stored(let value) = self, value.type == .array else { return nil }
    return value
  }

  var rank: MangoRank {
    guard case .stored(let value) = self else { return .string }
    return switch value.type {
    case .null: .null
    case .bool: value.bool == true ? .isTrue : .isFalse
    case .int, .double: .number
    case .string, .data: .string
    case .array: .array
    case .dict: .object
    }
  }

  /// A copy. A value that can't be read is null.
  func json(_ run: MangoRun) -> JSONValue {
    switch self {
    case .stored(let value): (try? value.jsonValue(sharedKeys: run.sharedKeys)) ?? .null
    case .text(let bytes): .string(String(decoding: bytes, as: UTF8.self))
    }
  }
}

/// What all nodes of a matcher share while they test a document.
final class MangoRun {
  let collation: MangoCollation
  let text = MangoText.shared
  let effort = MangoEffort()
  /// Those of the body.
  @exclusivity(unchecked) var sharedKeys = SharedKeys.empty
  /// The document's ID; nil if it has none.
  @exclusivity(unchecked) var id: UnsafeRawBufferPointer?

  init(_ collation: MangoCollation) { self.collation = collation }
}

/// A part of a selector.
class MangoNode {
  func passes(_ value: MangoValue, _ run: MangoRun) -> Bool { true }
  /// Finds the numbers of names in a table of shared keys.
  func resolve(_ sharedKeys: SharedKeys) {}
}

/// All of the parts.
private final class AndNode: MangoNode {
  private let parts: [MangoNode]

  init(_ parts: [MangoNode]) { self.parts = parts }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    guard run.effort.goesOn() else { return false }
    for part in parts where !part.passes(value, run) { return false }
    return true
  }

  override func resolve(_ sharedKeys: SharedKeys) { for part in parts { part.resolve(sharedKeys) } }
}

/// Any of the parts, or no parts at all.
private final class OrNode: MangoNode {
  private let parts: [MangoNode]

  init(_ parts: [MangoNode]) { self.parts = parts }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    guard run.effort.goesOn() else { return false }
    for part in parts where part.passes(value, run) { return true }
    return parts.isEmpty
  }

  override func resolve(_ sharedKeys: SharedKeys) { for part in parts { part.resolve(sharedKeys) } }
}

private final class NotNode: MangoNode {
  private let other: MangoNode

  init(_ other: MangoNode) { self.other = other }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool { !other.passes(value, run) }
  override func resolve(_ sharedKeys: SharedKeys) { other.resolve(sharedKeys) }
}

/// A condition of what a field leads to.
private final class FieldNode: MangoNode {
  /// A name, or the place in an array that it is; -1 for none.
  private struct Step: BitwiseCopyable {
    var move: PathMove
    var place: Int
  }

  private let steps: UnsafeMutableBufferPointer<Step>
  private let names: [UnsafeMutableBufferPointer<UInt8>]
  private let condition: MangoNode
  /// Whether a document without the field passes.
  private let takesMissing: Bool

  init(_ field: MangoField, _ condition: MangoNode, takesMissing: Bool) {
    names = field.parts.map { part in
      // An empty name needs an address too.
      let name = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: part.utf8.count + 1)
      _ = name.initialize(from: Array(part.utf8) + [0])
      return name
    }
    steps = .allocate(capacity: names.count)
    for (place, part) in field.parts.enumerated() {
      steps.initializeElement(
        at: place, to: Step(move: Self.move(names[place], .empty), place: Int(part) ?? -1))
    }
    self.condition = condition
    self.takesMissing = takesMissing
  }

  deinit {
    steps.deallocate()
    for name in names { name.deallocate() }
  }

  private static func move(_ name: UnsafeMutableBufferPointer<UInt8>, _ keys: SharedKeys) -> PathMove {
    PathMove(name: UnsafePointer(name.baseAddress.unsafelyUnwrapped), count: name.count - 1, in: keys)
  }

  override func resolve(_ sharedKeys: SharedKeys) {
    for place in steps.indices { steps[place].move = Self.move(names[place], sharedKeys) }
    condition.resolve(sharedKeys)
  }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    guard run.effort.goesOn() else { return false }
    guard case .stored(var value) = value else {
      return steps.isEmpty && condition.passes(value, run)
    }
    for step in steps {
      switch value.type {
      case .dict:
        guard let member = value.value(at: step.move) else { return takesMissing }
        value = member
      case .array:
        guard step.place >= 0, let item = value[step.place] else { return false }
        value = item
      default: return false
      }
    }
    return condition.passes(value, in: run)
  }
}

extension MangoNode {
  /// Binary data are the text that JSON has for them.
  @inline(__always)
  fileprivate final func passes(_ value: UnsafeValue, in run: MangoRun) -> Bool {
    value.type == .data ? passes(data: value, run) : passes(.stored(value), run)
  }

  private func passes(data value: UnsafeValue, _ run: MangoRun) -> Bool {
    guard let text = try? value.json(sharedKeys: run.sharedKeys) else { return false }
    return Array(text.utf8.dropFirst().dropLast()).withUnsafeBytes { passes(.text($0), run) }
  }
}

/// A condition of the document's ID.
private final class DocumentIDNode: MangoNode {
  private let condition: MangoNode
  private let takesMissing: Bool
  /// Whether the field leads on into the ID, where nothing is.
  private let leadsOn: Bool

  init(_ condition: MangoNode, takesMissing: Bool, leadsOn: Bool) {
    self.condition = condition
    self.takesMissing = takesMissing
    self.leadsOn = leadsOn
  }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    guard run.effort.goesOn() else { return false }
    guard let id = run.id else { return takesMissing }
    return !leadsOn && condition.passes(.text(id), run)
  }
}

// MARK: Conditions

/// What every value passes, or none.
private final class ConstantNode: MangoNode {
  private let result: Bool

  init(_ result: Bool) { self.result = result }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool { result }
}

private final class CompareNode: MangoNode {
  private let comparison: MangoComparison
  private let operand: MangoConstant

  init(_ comparison: MangoComparison, _ operand: MangoConstant) {
    self.comparison = comparison
    self.operand = operand
  }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    comparison.isTrue(operand.order(of: value, run))
  }
}

/// One of some values, or an array with one of them.
private final class InNode: MangoNode {
  private let one: OneNode
  /// Whether arrays have no items: those of IDs.
  private let takesNoItems: Bool

  init(_ operands: [MangoConstant], takesNoItems: Bool) {
    one = OneNode(operands)
    self.takesNoItems = takesNoItems
  }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    guard !takesNoItems, let array = value.array else { return one.passes(value, run) }
    for item in array.items where one.passes(item, in: run) { return true }
    return false
  }
}

/// One of some values.
private final class OneNode: MangoNode {
  private let operands: [MangoConstant]

  init(_ operands: [MangoConstant]) { self.operands = operands }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    for operand in operands where operand.order(of: value, run) == 0 { return true }
    return false
  }
}

private final class TypeNode: MangoNode {
  private let wanted: String

  init(_ wanted: String) { self.wanted = wanted }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    value.rank.typeName.utf8.elementsEqual(wanted.utf8)
  }
}

private final class ModuloNode: MangoNode {
  private let divisor: Int64
  private let remainder: Int64

  init(_ divisor: Int64, _ remainder: Int64) { (self.divisor, self.remainder) = (divisor, remainder) }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    guard case .stored(let value) = value, value.type == .int else { return false }
    guard let number = value.int.map({ Int128($0) }) ?? value.uint.map({ Int128($0) }) else { return false }
    return number % Int128(divisor) == Int128(remainder)
  }
}

private final class SizeNode: MangoNode {
  private let count: Int64

  init(_ count: Int64) { self.count = count }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    value.array.map { $0.count == count } ?? false
  }
}

private final class PatternNode: MangoNode {
  private let pattern: MangoPattern

  init(_ pattern: MangoPattern) { self.pattern = pattern }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    value.utf8.map { pattern.isFound(in: $0, run.effort) } ?? false
  }
}

private final class PrefixNode: MangoNode {
  private let prefix: [UInt8]

  init(_ prefix: String) { self.prefix = Array(prefix.utf8) }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    value.utf8?.starts(with: prefix) ?? false
  }
}

/// An array with all of some values, or a list of one array that is the array.
private final class AllNode: MangoNode {
  private let wanted: [JSONValue]

  init(_ wanted: [JSONValue]) { self.wanted = wanted }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    guard !wanted.isEmpty, value.array != nil, let items = value.json(run).array else { return false }
    if wanted.count == 1, wanted[0].array == items { return true }
    return wanted.allSatisfy { items.contains($0) }
  }
}

/// An array of which some item passes, or an array with items, which all pass.
private final class ItemsNode: MangoNode {
  private let inner: MangoNode
  private let isOfAll: Bool

  init(_ inner: MangoNode, isOfAll: Bool) {
    self.inner = inner
    self.isOfAll = isOfAll
  }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    guard let array = value.array, array.count > 0 else { return false }
    for item in array.items where inner.passes(item, in: run) != isOfAll { return !isOfAll }
    return isOfAll
  }

  override func resolve(_ sharedKeys: SharedKeys) { inner.resolve(sharedKeys) }
}

/// An object of which some name passes.
private final class NamesNode: MangoNode {
  private let inner: MangoNode

  init(_ inner: MangoNode) { self.inner = inner }

  override func passes(_ value: MangoValue, _ run: MangoRun) -> Bool {
    guard case .stored(let value) = value, value.type == .dict else { return false }
    for entry in value.entries {
      if let name = entry.utf8(in: run.sharedKeys), inner.passes(.text(name), run) { return true }
    }
    return false
  }

  override func resolve(_ sharedKeys: SharedKeys) { inner.resolve(sharedKeys) }
}

// MARK: Compiling

extension MangoSelector {
  /// The node that tests a document, or with `isInside` a value in one.
  func compiled(isInside: Bool = false) -> MangoNode {
    switch self {
    case .all: return ConstantNode(true)
    case .and(let parts): return AndNode(parts.map { $0.compiled(isInside: isInside) })
    case .or(let parts): return OrNode(parts.map { $0.compiled(isInside: isInside) })
    case .not(let other): return NotNode(other.compiled(isInside: isInside))
    case .field(let field, let condition):
      let takesMissing = if case .exists(false) = condition { true } else { false }
      let node = condition.compiled(isID: field.isID)
      if !isInside, field.parts.first.map({ $0.utf8.elementsEqual("_id".utf8) }) ?? false {
        return DocumentIDNode(node, takesMissing: takesMissing, leadsOn: field.parts.count > 1)
      }
      return FieldNode(field, node, takesMissing: takesMissing)
    }
  }
}

extension MangoCondition {
  /// `isID`: the value is a document's ID, which CouchDB compares by its bytes.
  fileprivate func compiled(isID: Bool) -> MangoNode {
    func constant(_ operand: MangoOperand) -> MangoConstant { MangoConstant(operand, inBytes: isID) }
    switch self {
    case .compare(let comparison, let operand): return CompareNode(comparison, constant(operand))
    case .isIn(let operands): return InNode(operands.map(constant), takesNoItems: isID)
    case .isNotIn(let operands): return NotNode(InNode(operands.map(constant), takesNoItems: isID))
    case .exists(let isWanted): return ConstantNode(isWanted)
    case .type(let type): return TypeNode(type)
    case .modulo(let divisor, let remainder): return ModuloNode(divisor, remainder)
    case .size(let count): return SizeNode(count)
    case .matches(let pattern): return PatternNode(pattern)
    case .beginsWith(let prefix): return PrefixNode(prefix)
    case .hasAll(let wanted): return AllNode(wanted)
    case .someItem(let inner): return ItemsNode(inner.compiled(isInside: true), isOfAll: false)
    case .everyItem(let inner): return ItemsNode(inner.compiled(isInside: true), isOfAll: true)
    case .someName(let inner): return NamesNode(inner.compiled(isInside: true))
    case .not(let other): return NotNode(other.compiled(isID: isID))
    }
  }
}
