import Fleece

/// A property of a document, or a part of one. It keeps the document's bytes alive.
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

  /// Whether there is such a property: null is there.
  public var exists: Bool { value != nil }
  /// What kind of value it is, nil when it is missing.
  public var type: ValueType? { withExtendedLifetime(record) { value?.type } }
  /// True or false, nil when it is anything else.
  public var bool: Bool? { withExtendedLifetime(record) { value?.bool } }
  /// An integer, nil when it is anything else, a double too, or above `Int64.max`.
  public var int: Int64? { withExtendedLifetime(record) { value?.int } }
  /// A number, an integer converted; nil when it is anything else.
  public var double: Double? { withExtendedLifetime(record) { value?.double } }
  /// A string, nil when it is anything else.
  public var string: String? { withExtendedLifetime(record) { value?.string } }
  /// The number of items of an array or of members of an object; 0 of anything else.
  public var count: Int { withExtendedLifetime(record) { value?.count ?? 0 } }

  /// The items of an array, nil when it is anything else.
  public var array: PropertyArray? { type == .array ? PropertyArray(self) : nil }
  /// The members of an object, nil when it is anything else.
  public var object: PropertyDictionary? { type == .dict ? PropertyDictionary(self) : nil }

  /// The names of an object's members, in the order of the body; none of anything else.
  public var keys: [String] {
    withExtendedLifetime(record) {
      guard let value, value.type == .dict else { return [] }
      return value.entries.compactMap { $0.name(in: sharedKeys) }
    }
  }

  /// The member of that name, missing when this isn't an object.
  public subscript(name: String) -> Property {
    Property(withExtendedLifetime(record) { value?[Key(name, in: sharedKeys)] }, of: record, sharedKeys)
  }

  /// The item of that index, missing when this isn't an array or has fewer.
  public subscript(index: Int) -> Property {
    Property(withExtendedLifetime(record) { value?[index] }, of: record, sharedKeys)
  }

  /// The whole as a value of its own; nil when it is missing. Throws `damaged` when it can't be read.
  public func jsonValue() throws -> JSONValue? {
    guard let value else { return nil }
    return try withExtendedLifetime(record) {
      try undamaged { () throws(FleeceError) in try value.jsonValue(sharedKeys: sharedKeys) }
    }
  }
}
