import Fleece
import TestSupport

/// Random documents and selectors, with few names and values so that they meet.
struct RandomSelectors {
  var random: SeededGenerator
  static let names = ["a", "b", "c"]

  init(seed: UInt64) { random = SeededGenerator(seed: seed) }

  private mutating func number(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &random) }
  private mutating func name() -> String { Self.names[number(Self.names.count)] }

  mutating func text() -> String {
    String((0..<number(3)).map { _ in ["a", "b", "A", "B"][number(4)] as Character })
  }

  mutating func value(depth: Int = 0) -> JSONValue {
    switch number(depth > 1 ? 7 : 10) {
    case 0: return .null
    case 1: return .bool(number(2) == 0)
    case 2, 3: return .int(Int64(number(4)))
    case 4: return .double([0.5, 1, 2, 2.5][number(4)])
    case 5, 6: return .string(text())
    case 7, 8: return .array((0..<number(3)).map { _ in value(depth: depth + 1) })
    default: return object(depth: depth + 1)
    }
  }

  mutating func object(depth: Int = 0) -> JSONValue {
    var object = JSONObject()
    for _ in 0..<(1 + number(3)) { object[name()] = value(depth: depth) }
    return .object(object)
  }

  /// A selector, which isn't an operator at its top without a field.
  mutating func selector(depth: Int = 0) -> JSONValue {
    switch number(depth > 2 ? 3 : 8) {
    case 3: return ["$and": .array((0..<(1 + number(2))).map { _ in selector(depth: depth + 1) })]
    case 4: return ["$or": .array((0..<(1 + number(3))).map { _ in selector(depth: depth + 1) })]
    case 5: return ["$nor": .array((0..<(1 + number(2))).map { _ in selector(depth: depth + 1) })]
    case 6: return ["$not": selector(depth: depth + 1)]
    default:
      var members = JSONObject()
      for _ in 0..<(1 + number(2)) { members[field()] = condition(depth: depth + 1) }
      return .object(members)
    }
  }

  private mutating func field() -> String {
    switch number(6) {
    case 0: "\(name()).\(name())"
    case 1: "\(name()).\(number(2))"
    default: name()
    }
  }

  private mutating func condition(depth: Int) -> JSONValue {
    switch number(depth > 3 ? 15 : 20) {
    case 0: return value()
    case 1: return ["$exists": .bool(number(2) == 0)]
    case 2: return ["$type": .string(["null", "boolean", "number", "string", "array", "object"][number(6)])]
    case 3: return ["$in": .array((0..<number(3)).map { _ in value() })]
    case 4: return ["$nin": .array((0..<number(3)).map { _ in value() })]
    case 5: return ["$size": .int(Int64(number(3)))]
    case 6: return ["$mod": [.int(Int64(1 + number(3))), .int(Int64(number(2)))]]
    case 7: return ["$beginsWith": .string(text())]
    case 8: return ["$regex": .string("^" + ["a", "b", "A"][number(3)])]
    case 9: return ["$all": .array((0..<number(3)).map { _ in value() })]
    case 10...14:
      let operators = ["$lt", "$lte", "$eq", "$ne", "$gte", "$gt"]
      var members = JSONObject()
      for _ in 0..<(1 + number(2)) { members[operators[number(6)]] = value() }
      return .object(members)
    case 15: return ["$elemMatch": inner(depth: depth)]
    case 16: return ["$allMatch": inner(depth: depth)]
    case 17: return ["$keyMapMatch": ["$eq": .string(name())]]
    case 18: return JSONValue(["$not": condition(depth: depth + 1)]).wrapped
    default: return selector(depth: depth + 1)
    }
  }

  private mutating func inner(depth: Int) -> JSONValue {
    number(2) == 0 ? ["$gt": value()] : selector(depth: depth + 1)
  }
}

extension JSONValue {
  /// The argument of `$not` has to be an object: another value becomes a comparison.
  fileprivate var wrapped: JSONValue {
    guard let argument = object?["$not"], argument.object == nil else { return self }
    return ["$not": ["$eq": argument]]
  }
}
