import Fleece
import FoundationEssentials

/// A value with the conversions and default values of typed accessors.
///
/// The strict properties (`int`, `string`, …) are nil for values of another type. The other properties
/// convert. For missing values and values that can't be converted they return the defaults of Couchbase Lite
/// 2.x.
public protocol TypedValue {
  /// The collection type of an array's items.
  associatedtype Items
  /// The collection type of an object's members.
  associatedtype Members
  /// The boolean, nil for any other value.
  var bool: Bool? { get }
  /// The integer, nil for any other value.
  var int: Int64? { get }
  /// The integer, nil if it is negative and for any other value. Integers above `Int64.max` are included.
  var uint: UInt64? { get }
  /// The number as a double, nil for any other value.
  var double: Double? { get }
  /// The string, nil for any other value.
  var string: String? { get }
  /// The items of an array, nil for any other value.
  var array: Items? { get }
  /// The members of an object, nil for any other value.
  var object: Members? { get }
  /// The blob that an object refers to, nil for any other value.
  var blob: Blob? { get }
}

extension TypedValue {
  /// The value as an integer: an integer, a double without its fraction, 1 for true, otherwise 0. Doubles
  /// outside the range of `Int64` become its nearest bound. An integer above `Int64.max` can't be converted,
  /// so it gives 0. Read it as `uint`.
  public var intValue: Int64 {
    if let int { return int }
    if uint != nil { return 0 }
    if let double {
      // 2^63 itself is out of range.
      guard double < 0x1p63 else { return .max }
      return double > -0x1p63 ? Int64(double) : .min
    }
    return bool == true ? 1 : 0
  }

  /// The value as an unsigned integer: an integer that isn't negative, a double without its fraction, 1 for
  /// true, otherwise 0. Doubles above `UInt64.max` become `UInt64.max`, and negative ones 0.
  public var uintValue: UInt64 {
    if let uint { return uint }
    if int != nil { return 0 }
    if let double {
      // 2^64 itself is out of range.
      guard double < 0x1p64 else { return .max }
      return double > 0 ? UInt64(double) : 0
    }
    return bool == true ? 1 : 0
  }

  /// The value as a double: the number, 1.0 for true, otherwise 0.0.
  public var doubleValue: Double { double ?? (bool == true ? 1 : 0) }

  /// The value as a boolean: true for true and for any number except 0, otherwise false.
  public var boolValue: Bool { bool ?? double.map { $0 != 0 } ?? false }

  /// The date of an ISO 8601 string, nil for any other value. Without a zone it is in UTC.
  public var date: Date? {
    string.flatMap(ISO8601.milliseconds).map { Date(timeIntervalSince1970: $0 / 1000) }
  }
}

extension JSONValue: TypedValue {
  /// Creates the ISO 8601 string of a date, with milliseconds in UTC: `2018-05-12T09:30:00.000Z`. Null if the
  /// year doesn't have four digits.
  public init(_ date: Date) { self = ISO8601.text(date).map { .string($0) } ?? .null }
}

extension Property: TypedValue {}

/// Properties by name: those of a document or of a nested object.
public protocol KeyedProperties {
  /// The type of the values.
  associatedtype Member: TypedValue
  /// Returns the value with this name, nil if there is none. A null value exists.
  func member(_ name: String) -> Member?
  /// The names, in no particular order unless the conforming type defines one.
  var keys: [String] { get }
}

extension KeyedProperties {
  /// Returns whether there is a property with this name. A property with the value null exists.
  public func contains(key: String) -> Bool { member(key) != nil }
  /// Returns the value with this name, nil if there is none.
  public func value(forKey key: String) -> Member? { member(key) }
  /// Returns the string with this name. Nil if there is none or the value isn't a string.
  public func string(forKey key: String) -> String? { member(key)?.string }
  /// Returns the integer with this name (`intValue`), 0 if there is none.
  public func int(forKey key: String) -> Int64 { member(key)?.intValue ?? 0 }
  /// Returns the unsigned integer with this name (`uintValue`), 0 if there is none.
  public func uint(forKey key: String) -> UInt64 { member(key)?.uintValue ?? 0 }
  /// Returns the number with this name (`doubleValue`), 0.0 if there is none.
  public func double(forKey key: String) -> Double { member(key)?.doubleValue ?? 0 }
  /// Returns whether the value with this name is true or a number except 0 (`boolValue`). False if there is
  /// none.
  public func boolean(forKey key: String) -> Bool { member(key)?.boolValue ?? false }
  /// Returns the date with this name, an ISO 8601 string. Nil if there is none or the value isn't a date.
  public func date(forKey key: String) -> Date? { member(key)?.date }
  /// Returns the array with this name. Nil if there is none or the value isn't an array.
  public func array(forKey key: String) -> Member.Items? { member(key)?.array }
  /// Returns the object with this name. Nil if there is none or the value isn't an object.
  public func dictionary(forKey key: String) -> Member.Members? { member(key)?.object }
  /// Returns the blob with this name. Nil if there is none or the value isn't a blob.
  public func blob(forKey key: String) -> Blob? { member(key)?.blob }
}

/// Values by index: the items of an array in a document.
public protocol IndexedProperties {
  /// The type of the values.
  associatedtype Item: TypedValue
  /// Returns the value at this index, nil if the index is out of bounds.
  func item(_ index: Int) -> Item?
}

extension IndexedProperties {
  /// Returns the string at this index. Nil if there is none or the value isn't a string.
  public func string(at index: Int) -> String? { item(index)?.string }
  /// Returns the integer at this index (`intValue`), 0 if there is none.
  public func int(at index: Int) -> Int64 { item(index)?.intValue ?? 0 }
  /// Returns the unsigned integer at this index (`uintValue`), 0 if there is none.
  public func uint(at index: Int) -> UInt64 { item(index)?.uintValue ?? 0 }
  /// Returns the number at this index (`doubleValue`), 0.0 if there is none.
  public func double(at index: Int) -> Double { item(index)?.doubleValue ?? 0 }
  /// Returns whether the value at this index is true or a number except 0 (`boolValue`). False if there is
  /// none.
  public func boolean(at index: Int) -> Bool { item(index)?.boolValue ?? false }
  /// Returns the date at this index, an ISO 8601 string. Nil if there is none or the value isn't a date.
  public func date(at index: Int) -> Date? { item(index)?.date }
  /// Returns the array at this index. Nil if there is none or the value isn't an array.
  public func array(at index: Int) -> Item.Items? { item(index)?.array }
  /// Returns the object at this index. Nil if there is none or the value isn't an object.
  public func dictionary(at index: Int) -> Item.Members? { item(index)?.object }
  /// Returns the blob at this index. Nil if there is none or the value isn't a blob.
  public func blob(at index: Int) -> Blob? { item(index)?.blob }
}

extension JSONObject: KeyedProperties {
  /// Returns the value with this name, nil if there is none.
  public func member(_ name: String) -> JSONValue? { self[name] }
}

extension Array: IndexedProperties where Element == JSONValue {
  /// Returns the value at this index, nil if the index is out of bounds.
  public func item(_ index: Int) -> JSONValue? { indices.contains(index) ? self[index] : nil }
}

extension JSONValue: KeyedProperties, IndexedProperties {
  /// Returns the member with this name. Nil if there is none or this isn't an object.
  public func member(_ name: String) -> JSONValue? { object?[name] }
  /// The names of an object's members, in no particular order. Empty for any other value.
  public var keys: [String] { object?.keys ?? [] }
  /// Returns the item at this index. Nil if there is none or this isn't an array.
  public func item(_ index: Int) -> JSONValue? { array?.item(index) }
}

extension Property: KeyedProperties, IndexedProperties {
  /// Returns the member with this name. Nil if there is none or this isn't an object.
  public func member(_ name: String) -> Property? {
    let member = self[name]
    return member.exists ? member : nil
  }

  /// Returns the item at this index. Nil if there is none or this isn't an array.
  public func item(_ index: Int) -> Property? {
    let item = self[index]
    return item.exists ? item : nil
  }
}
