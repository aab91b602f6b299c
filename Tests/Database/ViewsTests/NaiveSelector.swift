import Fleece

/// Evaluates selectors as CouchDB's documentation describes them, straight from their JSON. It shares no code with `MangoSelector`:
/// neither a normal form nor a collation. Strings have only ASCII letters.
enum NaiveSelector {
  /// Whether a document passes.
  static func passes(_ document: JSONValue, _ selector: JSONValue) -> Bool {
    if selector.object?.isEmpty ?? false { return true }
    return holds(selector, document, path: [], isNegated: false, isInside: false)
  }

  /// Where a path leads: nil for nothing, and whether the last object on the way lacks the name.
  private static func look(_ document: JSONValue, _ path: [String]) -> (value: JSONValue?, isMissing: Bool) {
    guard let name = path.first else { return (document, false) }
    if let object = document.object {
      guard let inner = object[name] else { return (nil, true) }
      return look(inner, Array(path.dropFirst()))
    }
    if let items = document.array, let place = Int(name), place >= 0, place < items.count {
      return look(items[place], Array(path.dropFirst()))
    }
    return (nil, false)
  }

  /// `isInside`: in `$elemMatch` and its relatives, where a negation is just that.
  private static func holds(
    _ selector: JSONValue, _ root: JSONValue, path: [String], isNegated: Bool, isInside: Bool
  ) -> Bool {
    guard let object = selector.object, !object.isEmpty else {
      return test("$eq", selector, root, path, isNegated)
    }
    if object.count > 1 {
      let each = object.map { member in
        holds(.object([member.key: member.value]), root, path: path, isNegated: isNegated, isInside: isInside)
      }
      return isNegated ? each.contains(true) : !each.contains(false)
    }
    guard let (name, argument) = object.first(where: { _ in true }).map({ ($0.key, $0.value) }) else {
      return false
    }
    func each(_ isNegated: Bool) -> [Bool] {
      (argument.array ?? []).map { holds($0, root, path: path, isNegated: isNegated, isInside: isInside) }
    }
    switch name {
    case "$and": return isNegated ? anyOrEmpty(each(true)) : !each(false).contains(false)
    case "$or": return isNegated ? !each(true).contains(false) : anyOrEmpty(each(false))
    case "$nor":
      if isInside { return !anyOrEmpty(each(false)) }
      return isNegated ? anyOrEmpty(each(false)) : !each(true).contains(false)
    case "$not":
      if isInside { return !holds(argument, root, path: path, isNegated: false, isInside: true) }
      return holds(argument, root, path: path, isNegated: !isNegated, isInside: false)
    default:
      if name.hasPrefix("$") { return test(name, argument, root, path, isNegated) }
      let parts = name.split(separator: ".").map(String.init)
      return holds(argument, root, path: path + parts, isNegated: isNegated, isInside: isInside)
    }
  }

  private static func anyOrEmpty(_ results: [Bool]) -> Bool { results.isEmpty || results.contains(true) }

  private static func test(
    _ name: String, _ argument: JSONValue, _ root: JSONValue, _ path: [String], _ isNegated: Bool
  ) -> Bool {
    let (found, isMissing) = look(root, path)
    if name == "$exists" {
      let isWanted = argument.bool != isNegated
      return isWanted ? found != nil : isMissing
    }
    guard let value = found else { return false }
    return passes(name, value, argument) != isNegated
  }

  private static func passes(_ name: String, _ value: JSONValue, _ argument: JSONValue) -> Bool {
    let order = order(value, argument)
    switch name {
    case "$eq": return order == 0
    case "$ne": return order != 0
    case "$lt": return order < 0
    case "$lte": return order <= 0
    case "$gt": return order > 0
    case "$gte": return order >= 0
    case "$in", "$nin":
      var isIn = false
      for wanted in argument.array ?? [] {
        for one in value.array ?? [value] where Self.order(one, wanted) == 0 { isIn = true }
      }
      return isIn == (name == "$in")
    case "$all":
      guard let items = value.array, let wanted = argument.array, !wanted.isEmpty else { return false }
      if wanted == [value] { return true }
      return wanted.allSatisfy { one in items.contains(one) }
    case "$size": return value.array?.count == argument.int.map { Int($0) }
    case "$type": return argument.string == kind(value)
    case "$mod":
      guard case .int(let number) = value else { return false }
      return number % (argument[0].int ?? 1) == argument[1].int
    case "$beginsWith": return value.string?.hasPrefix(argument.string ?? "") ?? false
    // The random expressions are a letter at the start.
    case "$regex": return value.string?.first == argument.string?.last
    case "$elemMatch":
      return value.array?.contains { inside(argument, $0) } ?? false
    case "$allMatch":
      return value.array.map { !$0.isEmpty && !$0.contains { !inside(argument, $0) } } ?? false
    case "$keyMapMatch": return value.object?.keys.contains { inside(argument, .string($0)) } ?? false
    default: return false
    }
  }

  private static func inside(_ selector: JSONValue, _ value: JSONValue) -> Bool {
    holds(selector, value, path: [], isNegated: false, isInside: true)
  }

  private static func kind(_ value: JSONValue) -> String {
    switch value {
    case .null: "null"
    case .bool: "boolean"
    case .int, .uint, .double: "number"
    case .string, .data: "string"
    case .array: "array"
    case .object: "object"
    }
  }

  /// The order of CouchDB's views: below 0, 0, above 0.
  static func order(_ left: JSONValue, _ right: JSONValue) -> Int {
    let kinds = ["null", "boolean", "number", "string", "array", "object"]
    let (a, b) = (kinds.firstIndex(of: kind(left)) ?? 0, kinds.firstIndex(of: kind(right)) ?? 0)
    if a != b { return a - b }
    switch (left, right) {
    case (.bool(let left), .bool(let right)): return (left ? 1 : 0) - (right ? 1 : 0)
    case (.string(let left), .string(let right)): return order(left, right)
    case (.array(let left), .array(let right)):
      for (one, other) in zip(left, right) where order(one, other) != 0 { return order(one, other) }
      return left.count - right.count
    case (.object(let left), .object(let right)):
      let (names, others) = (left.keys.sorted(), right.keys.sorted())
      for (name, other) in zip(names, others) {
        if order(name, other) != 0 { return order(name, other) }
        let inner = order(left[name] ?? .null, right[other] ?? .null)
        if inner != 0 { return inner }
      }
      return names.count - others.count
    default:
      guard let left = left.double, let right = right.double else { return 0 }
      return left < right ? -1 : left > right ? 1 : 0
    }
  }

  /// Letters of ASCII: by letter first, then small ones before capitals.
  private static func order(_ left: String, _ right: String) -> Int {
    let (small, other) = (left.lowercased(), right.lowercased())
    if small != other { return small < other ? -1 : 1 }
    if left == right { return 0 }
    // The capital has the lower byte.
    return left > right ? -1 : 1
  }
}
