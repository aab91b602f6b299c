import Fleece

/// An array of a stored document. Its items are read in place.
public struct PropertyArray: Sendable, RandomAccessCollection, IndexedProperties {
  let property: Property
  /// The number of items.
  public let count: Int

  init(_ property: Property) {
    self.property = property
    count = property.count
  }

  /// The first index, 0.
  public var startIndex: Int { 0 }
  /// The number of items.
  public var endIndex: Int { count }
  /// The item at this index. It is missing if the index is out of bounds.
  public subscript(index: Int) -> Property { property[index] }
  /// Returns the item at this index, nil if the index is out of bounds.
  public func item(_ index: Int) -> Property? { index >= 0 && index < count ? property[index] : nil }

  /// Returns a copy of the items that can be changed. Throws `damaged` when they can't be read.
  public func values() throws -> [JSONValue] { try property.jsonValue()?.array ?? [] }
}

/// An object of a stored document. Its members are read in place.
public struct PropertyDictionary: Sendable, Sequence, KeyedProperties {
  let property: Property

  init(_ property: Property) { self.property = property }

  /// The number of members.
  public var count: Int { property.count }
  /// The names, in the order of the body.
  public var keys: [String] { property.keys }
  /// The member with this name. A missing member returns nil for every type.
  public subscript(name: String) -> Property { property[name] }

  /// Returns the member with this name, nil if there is none.
  public func member(_ name: String) -> Property? {
    let member = property[name]
    return member.exists ? member : nil
  }

  /// Iterates over the members in the order of the body.
  public func makeIterator() -> AnyIterator<(key: String, value: Property)> {
    var names = keys.makeIterator()
    return AnyIterator { [property] in names.next().map { ($0, property[$0]) } }
  }

  /// Returns a copy of the object that can be changed. Throws `damaged` when it can't be read.
  public func value() throws -> JSONObject { try property.jsonValue()?.object ?? JSONObject() }
}
