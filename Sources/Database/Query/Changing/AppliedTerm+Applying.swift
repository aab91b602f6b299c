import Fleece
import Storage

extension AppliedTerm {
  /// Changes the body of a document by all terms.
  ///
  /// Items of arrays are removed last, those behind before those in front, so that an index means the item that was there at the start.
  package static func apply(_ terms: [AppliedTerm], to body: inout JSONValue) {
    var removed: [[PathStep]] = []
    for term in terms {
      if term.removesItem { removed.append(term.path) } else { term.apply(to: &body) }
    }
    removed = removed.map { places($0, in: body) }.sorted(by: isBehind)
    for (number, path) in removed.enumerated() where number == 0 || path != removed[number - 1] {
      set(&body, path[...], nil)
    }
  }

  /// The terms as changes of properties, whose paths are `propertyPaths` of the plan.
  package static func changes(_ terms: [AppliedTerm], at paths: [[ByteString]]) -> [BodyChange] {
    zip(paths, terms).map { BodyChange($0, $1.value) }
  }

  private var removesItem: Bool {
    guard value == nil, loops.isEmpty, case .index? = path.last else { return false }
    return true
  }

  /// A path with indexes from the start of the arrays only. What isn't there stays as it is.
  private static func places(_ path: [PathStep], in body: JSONValue) -> [PathStep] {
    var place: JSONValue? = body
    return path.map { step in
      switch step {
      case .name(let name):
        place = place?.object?[name.string]
        return step
      case .index(let index):
        let items = place?.array ?? []
        let found = index < 0 ? items.count + index : index
        place = items.indices.contains(found) ? items[found] : nil
        return place == nil ? step : .index(found)
      }
    }
  }

  /// Whether an item is to be removed before another one: it stands behind it, or inside of it.
  private static func isBehind(_ left: [PathStep], _ right: [PathStep]) -> Bool {
    for (left, right) in zip(left, right) where left != right {
      switch (left, right) {
      case (.index(let left), .index(let right)): return left > right
      case (.name(let left), .name(let right)): return left > right
      case (.name, .index): return true
      case (.index, .name): return false
      }
    }
    return left.count > right.count
  }

  /// Changes the body of a document.
  ///
  /// A property is set in an object that is there. Where a step of the path finds no object, and no item of an
  /// array, nothing is changed. A nil value removes the property.
  private func apply(to body: inout JSONValue) {
    guard !loops.isEmpty else { return Self.set(&body, path[...], value) }
    Self.loop(&body, loops[...], value) { item, value in Self.set(&item, path[...], value) }
  }

  private static func loop(
    _ body: inout JSONValue, _ loops: ArraySlice<[PathStep]>, _ values: JSONValue?,
    _ assign: (inout JSONValue, JSONValue?) -> Void
  ) {
    guard let steps = loops.first else {
      guard values?.object?["w"] == true else { return }
      return assign(&body, values?.object?["v"])
    }
    // The first array is a value of the row, the others are members of the objects in it.
    guard let values = values?.array ?? values?.object?["v"]?.array else { return }
    change(&body, at: steps[...]) { found in
      guard case .array(var items) = found else { return }
      for index in items.indices where values.indices.contains(index) {
        loop(&items[index], loops.dropFirst(), values[index], assign)
      }
      found = .array(items)
    }
  }

  /// Calls `body` with the value at a path, if there is one.
  private static func change(
    _ value: inout JSONValue, at steps: ArraySlice<PathStep>, _ body: (inout JSONValue) -> Void
  ) {
    guard let step = steps.first else { return body(&value) }
    switch (step, value) {
    case (.name(let name), .object(var object)):
      guard var member = object[name.string] else { return }
      change(&member, at: steps.dropFirst(), body)
      object[name.string] = member
      value = .object(object)
    case (.index(let index), .array(var items)):
      let place = index < 0 ? items.count + index : index
      guard items.indices.contains(place) else { return }
      change(&items[place], at: steps.dropFirst(), body)
      value = .array(items)
    default: return
    }
  }

  private static func set(_ value: inout JSONValue, _ steps: ArraySlice<PathStep>, _ new: JSONValue?) {
    guard let last = steps.last else { return }
    Self.change(&value, at: steps.dropLast()) { parent in
      switch (last, parent) {
      case (.name(let name), .object(var object)):
        object[name.string] = new
        parent = .object(object)
      case (.index(let index), .array(var items)):
        let place = index < 0 ? items.count + index : index
        guard items.indices.contains(place) else { return }
        if let new { items[place] = new } else { items.remove(at: place) }
        parent = .array(items)
      default: return
      }
    }
  }
}
