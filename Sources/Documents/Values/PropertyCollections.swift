import Fleece

/// An array of a stored document: its items are looked at where they lie.
public struct PropertyArray: Sendable, RandomAccessCollection, IndexedProperties {
  private let property: Property
  /// The number of items.
  public let count: Int

  init(_ property: Property) {
    self.property = property
    count = property.count
  }

  /// 0.
  public var startIndex: Int { 0 }
  /// The number of items.
  public var endIndex: Int { count }
  /// The item at that index; one out of bounds is missing.
  public subscript(index: Int) -> Property { property[index] }
  /// The item at that index, nil when there are fewer.
  public func item(_ index: Int) -> Property? { index >= 0 && index < count ? property[index] : nil }

  /// The items as values of their own, to change. Throws `damaged` when they can't be read.
  public func values() throws -> [JSONValue] { try property.jsonValue()?.array ?? [] }
}

/// An object of a stored document: its members are looked at where they lie.
public struct PropertyDictionary: Sendable, Sequence, KeyedProperties {
  private let property: Property

  init(_ property: Property) { self.property = property }

  /// The number of members.
  public var count: Int { property.count }
  /// The names, in the order of the body.
  public var keys: [String] { property.keys }
  /// The member of that name; a missing one answers nil to everything.
  public subscript(name: String) -> Property { property[name] }

  /// The member of that name, nil when there is none.
  public func member(_ name: String) -> Property? {
    let member = property[name]
    return member.exists ? member : nil
  }

  /// Goes through the members in the order of the body.
  public func makeIterator() -> AnyIterator<(key: String, value: Property)> {
    var names = keys.makeIterator()
    return AnyIterator { [property] in names.next().map { ($0, property[$0]) } }
  }

  /// The object as a value of its own, to change. Throws `damaged` when it can't be read.
  public func value() throws -> JSONObject { try property.jsonValue()?.object ?? JSONObject() }
}
