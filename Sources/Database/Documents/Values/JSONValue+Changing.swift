import Fleece

// Changes of nested values of a document, in place and without copying the whole.
//
//   hotel["geo"]["lat"] = 51.5
//   hotel["likes"].append("Alice")

extension JSONValue {
  /// Sets a member, or removes it if `value` is nil. A value that isn't an object becomes one first.
  public mutating func set(_ value: (some JSONConvertible)?, forKey key: String) {
    self[key] = value?.jsonValue
  }

  /// Sets a member, or removes it if `value` is nil; `.null` stores null.
  public mutating func set(_ value: JSONValue?, forKey key: String) { self[key] = value }

  /// Appends an item. A value that isn't an array becomes one first.
  public mutating func append(_ value: some JSONConvertible) { changeItems { $0.append(value.jsonValue) } }

  /// Inserts an item before the item at `index`, or at the end if `index` is the count. Does nothing if
  /// `index` is out of bounds. A value that isn't an array becomes one first.
  public mutating func insert(_ value: some JSONConvertible, at index: Int) {
    changeItems { items in
      guard index >= 0, index <= items.count else { return }
      items.insert(value.jsonValue, at: index)
    }
  }

  /// Removes and returns the item at an index of an array. Nil if there is none.
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
    // Take the items out of `self` during the change, so that they aren't copied.
    self = .null
    change(&items)
    self = .array(items)
  }
}
