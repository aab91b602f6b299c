import Query
import TestSupport

// Loops over collections and subscripts, by their definition.

/// The items of an array or the members of an object, with positions or names; those inside of each behind it.
func naiveElements(_ value: JSONValue, isDeep: Bool) -> [(position: JSONValue, value: JSONValue)] {
  var own: [(position: JSONValue, value: JSONValue)] = []
  if let items = value.array {
    for (index, item) in items.enumerated() { own.append((JSONValue(index), item)) }
  } else if let object = value.object {
    for member in naiveMembers(object) { own.append((.string(member.name.string), member.value)) }
  }
  guard isDeep else { return own }
  var all: [(position: JSONValue, value: JSONValue)] = []
  for element in own {
    all.append(element)
    all += naiveElements(element.value, isDeep: true)
  }
  return all
}

func naiveIteration(_ iteration: Iteration, _ row: NaiveRow) throws -> JSONValue? {
  let isTest = [.any, .every, .anyAndEvery].contains(iteration.kind)
  var all: [[(position: JSONValue, value: JSONValue)]] = []
  var isNull = false
  for binding in iteration.bindings {
    let collection = try naive(binding.collection, row)
    if collection == nil, !isTest { return missing }
    let takesObjects = isTest || binding.isDeep || binding.position != nil
    if collection?.array == nil, !takesObjects || collection?.object == nil { isNull = true }
    all.append(collection.map { naiveElements($0, isDeep: binding.isDeep) } ?? [])
  }
  if isNull, !isTest { return .null }
  var verdicts: [Bool] = []
  var results: [JSONValue] = []
  var object = JSONObject()
  for step in 0..<(all.map(\.count).min() ?? 0) {
    var inner = row
    for (binding, elements) in zip(iteration.bindings, all) {
      inner.values[binding.variable] = .some(elements[step].value)
      if let position = binding.position { inner.values[position] = .some(elements[step].position) }
    }
    let isTrue = try iteration.condition.map { try naiveIsTrue($0, inner) } ?? true
    verdicts.append(isTrue)
    guard isTrue, !isTest, let result = iteration.result else { continue }
    if iteration.kind == .first { return try naive(result, inner) }
    if iteration.kind == .object, let name = iteration.name {
      guard let name = try naive(name, inner) else { return missing }
      guard let name = name.string else { return .null }
      if let value = try naive(result, inner) { object[name] = value }
    } else if let value = try naive(result, inner) {
      results.append(value)
    }
  }
  switch iteration.kind {
  case .any: return .bool(verdicts.contains(true))
  case .every: return .bool(!verdicts.contains(false))
  case .anyAndEvery: return .bool(!verdicts.contains(false) && !verdicts.isEmpty)
  case .array: return .array(results)
  case .first: return missing
  case .object: return .object(object)
  }
}

func naiveSubscript(_ base: JSONValue?, _ inside: Subscript, _ row: NaiveRow) throws -> JSONValue? {
  func whole(_ value: JSONValue) -> Int? { value.double.flatMap { Int(exactly: $0) } }
  switch inside {
  case .element(let index):
    guard let base, let index = try naive(index, row) else { return missing }
    if let name = index.string { return base.object == nil ? .null : base.object?[name] }
    guard let place = whole(index) else { return .null }
    return naiveFollow(base, [.index(place)])
  case .field(let name):
    guard let base, let name = try naive(name, row) else { return missing }
    guard let name = name.string else { return .null }
    return base.object == nil ? .null : base.object?[name]
  case .slice(let start, let end):
    var bounds: [Int?] = []
    var isNull = false
    for bound in [start, end] {
      guard let bound else {
        bounds.append(nil)
        continue
      }
      guard let value = try naive(bound, row) else { return missing }
      if whole(value) == nil { isNull = true }
      bounds.append(whole(value))
    }
    guard let base else { return missing }
    guard let items = base.array, !isNull else { return .null }
    func place(_ number: Int) -> Int { number < 0 ? items.count + number : number }
    let (from, to) = (place(bounds[0] ?? 0), bounds[1].map { place($0) } ?? items.count)
    guard from >= 0, from <= to, to <= items.count else { return missing }
    return .array(Array(items[from..<to]))
  }
}
