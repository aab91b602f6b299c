import Fleece

// Changing what is nested in a document: values are changed where they lie, without a copy of the whole.
//
//   hotel["geo"]["lat"] = 51.5
//   hotel["likes"].append("Alice")

extension JSONValue {
  /// Sets a member; anything but an object becomes one first.
  public mutating func set(_ value: some JSONConvertible, forKey key: String) { self[key] = value.jsonValue }

  /// Adds an item at the end; anything but an array becomes one first.
  public mutating func append(_ value: some JSONConvertible) { changeItems { $0.append(value.jsonValue) } }

  /// Adds an item before the one at `index`, or at the end when that is the count; does nothing out of bounds.
  /// Anything but an array becomes one first.
  public mutating func insert(_ value: some JSONConvertible, at index: Int) {
    changeItems { items in
      guard index >= 0, index <= items.count else { return }
      items.insert(value.jsonValue, at: index)
    }
  }

  /// Takes the item at an index out of an array and returns it, or nil when there is none.
  @discardableResult
  public mutating func remove(at index: Int) -> JSONValue? {
    guard case .array(let items) = self, items.indices.contains(index) else { return nil }
    var removed: JSONValue?
    changeItems { removed = $0.remove(at: index) }
    return removed
  }

  private mutating func changeItems(_ change: (inout [JSONValue]) -> Void) {
    var items: [JSONValue] = []
    if case .array(let existing) = self { items = existing }
    // They leave `self` while they change, so that they are not copied.
    self = .null
    change(&items)
    self = .array(items)
  }
}
