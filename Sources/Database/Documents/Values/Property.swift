import Fleece

/// A property of a stored document, or a nested value. It keeps the document's bytes alive.
public struct Property: @unchecked Sendable {
  private let record: StoredBytes
  private let sharedKeys: SharedKeys
  // Points into `record`, which never changes.
  private let value: UnsafeValue?

  init(_ key: Key, root: UnsafeValue?, of record: StoredBytes, _ sharedKeys: SharedKeys) {
    self.init(withExtendedLifetime(record) { root?[key] }, of: record, sharedKeys)
  }

  init(_ value: UnsafeValue?, of record: StoredBytes, _ sharedKeys: SharedKeys) {
    self.record = record
    self.sharedKeys = sharedKeys
    self.value = value
  }

  /// Whether the property exists. A property with the value null exists.
  public var exists: Bool { value != nil }
  /// The type of the value, nil if the property is missing.
  public var type: ValueType? { withExtendedLifetime(record) { value?.type } }
  /// The boolean, nil for any other value.
  public var bool: Bool? { withExtendedLifetime(record) { value?.bool } }
  /// The integer. Nil for any other value, including doubles and integers above `Int64.max`.
  public var int: Int64? { withExtendedLifetime(record) { value?.int } }
  /// The integer if it isn't negative, also above `Int64.max`. Nil for any other value, including doubles.
  public var uint: UInt64? { withExtendedLifetime(record) { value?.uint } }
  /// The number as a double. Nil for any other value.
  public var double: Double? { withExtendedLifetime(record) { value?.double } }
  /// The string, nil for any other value.
  public var string: String? { withExtendedLifetime(record) { value?.string } }
  /// The number of items of an array or of members of an object. 0 for any other value.
  public var count: Int { withExtendedLifetime(record) { value?.count ?? 0 } }

  /// The items of an array, nil for any other value.
  public var array: PropertyArray? { type == .array ? PropertyArray(self) : nil }
  /// The members of an object, nil for any other value.
  public var object: PropertyDictionary? { type == .dict ? PropertyDictionary(self) : nil }

  /// The names of an object's members, in the order of the body. Empty for any other value.
  public var keys: [String] {
    withExtendedLifetime(record) {
      guard let value, value.type == .dict else { return [] }
      return value.entries.compactMap { $0.name(in: sharedKeys) }
    }
  }

  /// The member with this name. It is missing if this isn't an object or has no such member.
  public subscript(name: String) -> Property {
    Property(withExtendedLifetime(record) { value?[Key(name, in: sharedKeys)] }, of: record, sharedKeys)
  }

  /// The item at this index. It is missing if this isn't an array or has fewer items.
  public subscript(index: Int) -> Property {
    Property(withExtendedLifetime(record) { value?[index] }, of: record, sharedKeys)
  }

  /// Returns the value as a `JSONValue`, nil if it is missing. Throws `damaged` when it can't be read.
  public func jsonValue() throws -> JSONValue? {
    guard let value else { return nil }
    return try withExtendedLifetime(record) {
      let copy = try undamaged { () throws(FleeceError) in try value.jsonValue(sharedKeys: sharedKeys) }
      return copy.withContent(from: record)
    }
  }

  /// Returns the canonical JSON of the value, nil if it is missing.
  func json() throws -> String? {
    guard let value else { return nil }
    return try withExtendedLifetime(record) {
      try undamaged { () throws(FleeceError) in try value.json(sharedKeys: sharedKeys) }
    }
  }
}
