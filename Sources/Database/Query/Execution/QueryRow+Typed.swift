import Documents
import Fleece

// The typed accessors of rows and their values: those of the properties of documents, with the same answers.

extension QueryRow: KeyedProperties, IndexedProperties {
  /// The value of the column with this name. Nil when there is no such column, or its value is missing.
  public func member(_ name: String) -> QueryResultValue? { self[name].ifExists }

  /// The names of the columns that aren't missing in this row, in order.
  public var keys: [String] { zip(columnNames, 0...).filter { self[$0.1].exists }.map(\.0) }

  /// The value of the column at this index. Nil when there is no such column, or its value is missing.
  public func item(_ index: Int) -> QueryResultValue? { self[index].ifExists }
}

extension QueryResultValue: TypedValue, KeyedProperties, IndexedProperties {
  fileprivate var ifExists: QueryResultValue? { exists ? self : nil }

  /// The items of an array. Nil for other types.
  public var array: QueryResultArray? { value.type == .array ? QueryResultArray(self) : nil }

  /// The members of an object. Nil for other types.
  public var object: QueryResultObject? { value.type == .object ? QueryResultObject(self) : nil }

  /// The binary data. Nil for other types.
  public var data: [UInt8]? {
    guard case .data(let bytes) = value else { return nil }
    return withExtendedLifetime(storage) { Array(bytes.utf8) }
  }

  /// The blob that an object refers to (`"@type": "blob"`, or an attachment of 1.x). Nil for other values.
  public var blob: Blob? {
    guard value.type == .object else { return nil }
    return (try? jsonValue()).flatMap { Blob($0) }
  }

  /// The names of an object's members, in the order of their bytes. Empty for other types.
  public var keys: [String] {
    guard case .computedObject(let object) = value else { return [] }
    return withExtendedLifetime(storage) { (0..<object.count).map { object.members[$0].name.string } }
  }

  /// Returns the member with this name. Nil when there is none, or this isn't an object.
  public func member(_ name: String) -> QueryResultValue? { self[name].ifExists }

  /// Returns the item at this index. Nil when the index is out of bounds, or this isn't an array.
  public func item(_ index: Int) -> QueryResultValue? { index < 0 ? nil : self[index].ifExists }
}

/// An array in a row of a query's results. It keeps the memory of the results alive.
public struct QueryResultArray: Sendable, RandomAccessCollection, IndexedProperties {
  private let result: QueryResultValue
  /// The number of items.
  public let count: Int

  fileprivate init(_ value: QueryResultValue) {
    result = value
    count = value.count
  }

  /// The first index, 0.
  public var startIndex: Int { 0 }
  /// The number of items.
  public var endIndex: Int { count }
  /// The item at this index. It is missing when the index is out of bounds.
  public subscript(index: Int) -> QueryResultValue { result[index < 0 ? count : index] }
  /// Returns the item at this index, nil if the index is out of bounds.
  public func item(_ index: Int) -> QueryResultValue? { result.item(index) }

  /// Returns a copy of the items that can be changed.
  public func values() throws -> [JSONValue] { try result.jsonValue()?.array ?? [] }
}

/// An object in a row of a query's results. It keeps the memory of the results alive.
public struct QueryResultObject: Sendable, Sequence, KeyedProperties {
  private let result: QueryResultValue

  fileprivate init(_ value: QueryResultValue) { result = value }

  /// The number of members.
  public var count: Int { result.count }
  /// The names, in the order of their bytes.
  public var keys: [String] { result.keys }
  /// The member with this name. A missing member returns nil for every type.
  public subscript(name: String) -> QueryResultValue { result[name] }
  /// Returns the member with this name, nil if there is none.
  public func member(_ name: String) -> QueryResultValue? { result.member(name) }

  /// Iterates over the members, in the order of their names' bytes.
  public func makeIterator() -> AnyIterator<(key: String, value: QueryResultValue)> {
    var names = keys.makeIterator()
    return AnyIterator { [result] in names.next().map { ($0, result[$0]) } }
  }

  /// Returns a copy of the object that can be changed.
  public func value() throws -> JSONObject { try result.jsonValue()?.object ?? JSONObject() }
}
