import Fleece
import Query
import Storage

// A plain interpreter of expressions over values in memory: no compilation, no bytes in place, nothing shared with the
// library but the syntax tree. It is slow, and meant to be right at a glance. Nil is missing.

/// What names stand for: sources and variables by their names, and the document's ID of each source.
struct NaiveRow {
  var values: [ByteString: JSONValue?] = [:]
  var ids: [ByteString: String] = [:]
  /// The rows of the group, for aggregates.
  var group: [NaiveRow]?
}

enum NaiveError: Error { case unsupported(String) }

/// Missing, null, false, true, numbers, strings, arrays, objects.
func naiveRank(_ value: JSONValue?) -> Int {
  guard let value else { return 0 }
  return switch value {
  case .null: 1
  case .bool: 2
  case .int, .uint, .double: 3
  case .string: 4
  case .array: 5
  case .object: 6
  case .data: 7
  }
}

/// Below, at or above 0. The tests' numbers are small: doubles hold them exactly.
func naiveCompare(_ a: JSONValue?, _ b: JSONValue?) -> Int {
  if naiveRank(a) != naiveRank(b) { return naiveRank(a) < naiveRank(b) ? -1 : 1 }
  guard let a, let b else { return 0 }
  if let x = a.bool, let y = b.bool { return x == y ? 0 : y ? -1 : 1 }
  if let x = a.double, let y = b.double { return x < y ? -1 : x == y ? 0 : 1 }
  if let x = a.string, let y = b.string {
    let (left, right) = (Array(x.utf8), Array(y.utf8))
    return left == right ? 0 : left.lexicographicallyPrecedes(right) ? -1 : 1
  }
  if let x = a.array, let y = b.array {
    for (left, right) in zip(x, y) {
      let order = naiveCompare(left, right)
      if order != 0 { return order }
    }
    return x.count - y.count
  }
  if let x = a.object, let y = b.object {
    let left = x.sorted { Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8)) }
    let right = y.sorted { Array($0.key.utf8).lexicographicallyPrecedes(Array($1.key.utf8)) }
    for (l, r) in zip(left, right) {
      let names = naiveCompare(.string(l.key), .string(r.key))
      if names != 0 { return names }
      let order = naiveCompare(l.value, r.value)
      if order != 0 { return order }
    }
    return left.count - right.count
  }
  return 0
}

/// FALSE, MISSING, NULL, TRUE as 0 … 3.
private func truth(_ value: JSONValue?) -> Int {
  guard let value else { return 1 }
  switch value {
  case .null: return 2
  case .bool(let value): return value ? 3 : 0
  case .int, .uint, .double: return value.double == 0 ? 0 : 3
  case .string(let text):
    // The number that the text begins with.
    let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == "-" || $0 == ".") }
    return (Double(number) ?? 0) == 0 ? 0 : 3
  default: return 0
  }
}

// JSONValue takes the literal nil for null, so that missing is written `missing` where either could be meant.
private let missing = JSONValue?.none

private func value(ofTruth truth: Int) -> JSONValue? {
  switch truth {
  case 0: return .bool(false)
  case 1: return missing
  case 2: return .null
  default: return .bool(true)
  }
}

func naiveIsTrue(_ expression: Expression, _ row: NaiveRow) throws -> Bool {
  truth(try naive(expression, row)) == 3
}

/// The value of an expression for a row.
func naive(_ expression: Expression, _ row: NaiveRow) throws -> JSONValue? {
  switch expression {
  case .literal(let literal):
    switch literal {
    case .missing: return missing
    case .null: return .null
    case .bool(let value): return .bool(value)
    case .int(let value): return .int(value)
    case .uint(let value): return .uint(value)
    case .double(let value): return .double(value)
    case .string(let value): return .string(value.string)
    }
  case .property(let reference):
    guard case .name(let name)? = reference.steps.first, let value = row.values[name] else {
      throw NaiveError.unsupported("a path without its source")
    }
    return follow(value, reference.steps.dropFirst())
  case .meta(let source, .id):
    let name = source?.name ?? row.ids.keys.first ?? ""
    return row.ids[name].map { .string($0) }
  case .member(let base, let steps): return follow(try naive(base, row), steps[...])
  case .array(let items): return .array(try items.map { try naive($0, row) ?? .null })
  case .object(let members):
    var object = JSONObject()
    for member in members {
      if let value = try naive(member.value, row) { object[member.name.string] = value }
    }
    return .object(object)
  case .unary(.not, let operand):
    let operand = truth(try naive(operand, row))
    return value(ofTruth: operand == 0 ? 3 : operand == 3 ? 0 : operand)
  case .unary(let sign, let operand):
    guard let operand = try naive(operand, row) else { return missing }
    guard let number = operand.double else { return .null }
    if sign == .plus { return operand }
    return operand.int.map { .int(-$0) } ?? .double(-number)
  case .binary(.and, let left, let right):
    return value(ofTruth: min(truth(try naive(left, row)), truth(try naive(right, row))))
  case .binary(.or, let left, let right):
    return value(ofTruth: max(truth(try naive(left, row)), truth(try naive(right, row))))
  case .binary(let binary, let left, let right):
    return try naiveBinary(binary, try naive(left, row), try naive(right, row))
  case .test(let operand, let test, let negated):
    let value = try naive(operand, row)
    switch test {
    case .null: return value.map { .bool($0.isNull != negated) }
    case .missing: return .bool((value == nil) != negated)
    case .valued: return .bool((value.map { !$0.isNull } ?? false) != negated)
    }
  case .between(let operand, let lower, let upper, let negated):
    let both = Expression.binary(
      .and, .binary(.greaterOrEqual, operand, lower), .binary(.lessOrEqual, operand, upper))
    return try naive(negated ? .unary(.not, both) : both, row)
  case .contained(let operand, let collection, let negated):
    let operand = try naive(operand, row)
    var items: [JSONValue?] = []
    if case .array(let list) = collection {
      items = try list.map { try naive($0, row) }
    } else {
      guard let collection = try naive(collection, row), operand != nil else { return missing }
      guard let list = collection.array else { return .null }
      items = list
    }
    if operand == nil { return missing }
    var found = 0
    for item in items { found = max(found, truth(try naiveBinary(.equal, operand, item))) }
    return value(ofTruth: negated && found == 0 ? 3 : negated && found == 3 ? 0 : found)
  case .like(let operand, let pattern, let negated):
    guard let operand = try naive(operand, row), let pattern = try naive(pattern, row) else { return missing }
    guard let text = operand.string, let wanted = pattern.string else { return .null }
    return .bool(naiveLike(Array(text.lowercased()), Array(wanted.lowercased())) != negated)
  case .conditional(let operand, let branches, let otherwise):
    for branch in branches {
      let condition = operand.map { Expression.binary(.equal, $0, branch.condition) } ?? branch.condition
      if try naiveIsTrue(condition, row) { return try naive(branch.result, row) }
    }
    return try otherwise.map { try naive($0, row) } ?? .null
  case .quantified(let quantifier, let variable, let collection, let condition):
    let collection = try naive(collection, row)
    let items = collection?.array ?? collection?.object.map { Array($0.values) } ?? []
    let verdicts = try items.map { item in
      var inner = row
      inner.values[variable] = .some(item)
      return try naiveIsTrue(condition, inner)
    }
    switch quantifier {
    case .any: return .bool(verdicts.contains(true))
    case .every: return .bool(!verdicts.contains(false))
    case .anyAndEvery: return .bool(!verdicts.contains(false) && !verdicts.isEmpty)
    }
  case .call(let call): return try naiveCall(call, row)
  default: throw NaiveError.unsupported("\(expression)")
  }
}

private func follow(_ value: JSONValue?, _ steps: ArraySlice<PathStep>) -> JSONValue? {
  var value = value
  for step in steps {
    switch step {
    case .name(let name): value = value?.object?[name.string]
    case .index(let index):
      guard let items = value?.array else { return missing }
      let place = index < 0 ? items.count + index : index
      value = items.indices.contains(place) ? items[place] : missing
    }
  }
  return value
}

private func naiveBinary(_ binary: BinaryOperator, _ left: JSONValue?, _ right: JSONValue?) throws
  -> JSONValue?
{
  let order = naiveCompare(left, right)
  if binary == .identical { return .bool(order == 0) }
  if binary == .notIdentical { return .bool(order != 0) }
  guard let left, let right else { return missing }
  if binary == .concatenate { return .string(try naiveText(left) + naiveText(right)) }
  switch binary {
  case .equal, .notEqual, .less, .lessOrEqual, .greater, .greaterOrEqual:
    if left.isNull || right.isNull { return .null }
    switch binary {
    case .equal: return .bool(order == 0)
    case .notEqual: return .bool(order != 0)
    case .less: return .bool(order < 0)
    case .lessOrEqual: return .bool(order <= 0)
    case .greater: return .bool(order > 0)
    default: return .bool(order >= 0)
    }
  default: break
  }
  guard let a = left.double, let b = right.double else { return .null }
  if let x = left.int, let y = right.int {
    switch binary {
    case .add: return .int(x + y)
    case .subtract: return .int(x - y)
    case .multiply: return .int(x * y)
    case .divide: return y == 0 ? missing : .int(x / y)
    default: return y == 0 ? missing : .int(x % y)
    }
  }
  switch binary {
  case .add: return .double(a + b)
  case .subtract: return .double(a - b)
  case .multiply: return .double(a * b)
  case .divide: return b == 0 ? missing : .double(a / b)
  default:
    let divisor = b.rounded(.towardZero)
    return divisor == 0 ? missing : .double(a.rounded(.towardZero).truncatingRemainder(dividingBy: divisor))
  }
}

private func naiveText(_ value: JSONValue) throws -> String {
  if let text = value.string { return text }
  return try value.canonicalJSON()
}

private func naiveLike(_ text: [Character], _ pattern: [Character]) -> Bool {
  guard let first = pattern.first else { return text.isEmpty }
  let rest = Array(pattern.dropFirst())
  if first == "%" { return (0...text.count).contains { naiveLike(Array(text[$0...]), rest) } }
  guard let character = text.first, first == "_" || first == character else { return false }
  return naiveLike(Array(text.dropFirst()), rest)
}

private func naiveCall(_ call: FunctionCall, _ row: NaiveRow) throws -> JSONValue? {
  if let group = row.group, ["COUNT", "SUM", "AVG", "MIN", "MAX"].contains(call.name) {
    return try naiveAggregate(call, group)
  }
  let arguments = try call.arguments.map { try naive($0, row) }
  let first = arguments.first ?? nil
  switch call.name {
  case "TYPE":
    return .string(["missing", "null", "boolean", "number", "string", "array", "object"][naiveRank(first)])
  case "IFMISSINGORNULL": return arguments.first { $0.map { !$0.isNull } ?? false } ?? .null
  default: break
  }
  guard let first else { return missing }
  switch call.name {
  case "LOWER": return first.string.map { .string($0.lowercased()) } ?? .null
  case "UPPER": return first.string.map { .string($0.uppercased()) } ?? .null
  case "LENGTH": return first.string.map { .int(Int64($0.unicodeScalars.count)) } ?? .null
  case "ARRAY_LENGTH": return first.array.map { .int(Int64($0.count)) } ?? .null
  case "ABS": return first.int.map { .int(abs($0)) } ?? first.double.map { .double(abs($0)) } ?? .null
  default: throw NaiveError.unsupported(call.name)
  }
}

private func naiveAggregate(_ call: FunctionCall, _ group: [NaiveRow]) throws -> JSONValue? {
  let argument = call.arguments[0]
  if case .star = argument { return .int(Int64(group.count)) }
  var values = try group.compactMap { try naive(argument, $0) }.filter { !$0.isNull }
  if call.isDistinct {
    var distinct: [JSONValue] = []
    for value in values where !distinct.contains(where: { naiveCompare($0, value) == 0 }) {
      distinct.append(value)
    }
    values = distinct
  }
  switch call.name {
  case "COUNT": return .int(Int64(values.count))
  case "MIN": return values.min { naiveCompare($0, $1) < 0 }
  case "MAX": return values.max { naiveCompare($0, $1) < 0 }
  default:
    let numbers = values.compactMap(\.double)
    if numbers.isEmpty { return missing }
    let sum = numbers.reduce(0, +)
    return .double(call.name == "SUM" ? sum : sum / Double(numbers.count))
  }
}
