import Fleece
import FoundationEssentials

/// A value with the conversions that typed accessors make, and the defaults they fall back to.
///
/// The strict properties (`int`, `string`, …) are nil for another kind of value; those here convert, and have the
/// defaults of Couchbase Lite 2.x for what can't be converted and for what is missing.
public protocol TypedValue {
  /// What holds the items of an array.
  associatedtype Items
  /// What holds the members of an object.
  associatedtype Members
  /// True or false, nil when it is anything else.
  var bool: Bool? { get }
  /// An integer, nil when it is anything else.
  var int: Int64? { get }
  /// A number, an integer converted; nil when it is anything else.
  var double: Double? { get }
  /// A string, nil when it is anything else.
  var string: String? { get }
  /// The items of an array, nil when it is anything else.
  var array: Items? { get }
  /// The members of an object, nil when it is anything else.
  var object: Members? { get }
  /// The blob that an object stands for, nil when it is anything else.
  var blob: Blob? { get }
}

extension TypedValue {
  /// The integer; a double without its fraction, 1 for true, and 0 for anything else. What is beyond `Int64`
  /// is its nearest end.
  public var intValue: Int64 {
    if let int { return int }
    if let double {
      // 2^63 itself is beyond.
      guard double < 0x1p63 else { return .max }
      return double > -0x1p63 ? Int64(double) : .min
    }
    return bool == true ? 1 : 0
  }

  /// The number as a double; 1.0 for true, and 0.0 for anything else.
  public var doubleValue: Double { double ?? (bool == true ? 1 : 0) }

  /// True for true and for any number but 0; false for anything else.
  public var boolValue: Bool { bool ?? double.map { $0 != 0 } ?? false }

  /// The date that a string stands for by ISO-8601, nil for anything else. Without a zone it is UTC.
  public var date: Date? {
    string.flatMap(ISO8601.milliseconds).map { Date(timeIntervalSince1970: $0 / 1000) }
  }
}

extension JSONValue: TypedValue {
  /// A date as a string by ISO-8601, with milliseconds in UTC: `2018-05-12T09:30:00.000Z`. Null for a year that
  /// hasn't four digits.
  public init(_ date: Date) { self = ISO8601.text(date).map { .string($0) } ?? .null }
}

extension Property: TypedValue {}

/// Properties by name: of a document, or of an object in it.
public protocol KeyedProperties {
  /// What is under a name.
  associatedtype Member: TypedValue
  /// The value of that name, nil when there is none: null is there.
  func member(_ name: String) -> Member?
  /// The names, in no particular order.
  var keys: [String] { get }
}

extension KeyedProperties {
  /// Whether there is a property of that name: null is there.
  public func contains(key: String) -> Bool { member(key) != nil }
  /// The value of that name, nil when there is none.
  public func value(forKey key: String) -> Member? { member(key) }
  /// The string of that name, nil when there is none or it is something else.
  public func string(forKey key: String) -> String? { member(key)?.string }
  /// The integer of that name (`intValue`), 0 when there is none.
  public func int(forKey key: String) -> Int64 { member(key)?.intValue ?? 0 }
  /// The number of that name (`doubleValue`), 0.0 when there is none.
  public func double(forKey key: String) -> Double { member(key)?.doubleValue ?? 0 }
  /// Whether the value of that name is true or a number but 0 (`boolValue`), false when there is none.
  public func boolean(forKey key: String) -> Bool { member(key)?.boolValue ?? false }
  /// The date of that name, a string by ISO-8601; nil when there is none or it is something else.
  public func date(forKey key: String) -> Date? { member(key)?.date }
  /// The array of that name, nil when there is none or it is something else.
  public func array(forKey key: String) -> Member.Items? { member(key)?.array }
  /// The object of that name, nil when there is none or it is something else.
  public func dictionary(forKey key: String) -> Member.Members? { member(key)?.object }
  /// The blob of that name, nil when there is none or it is something else.
  public func blob(forKey key: String) -> Blob? { member(key)?.blob }
}

/// Values in order: an array in a document.
public protocol IndexedProperties {
  /// What is at an index.
  associatedtype Item: TypedValue
  /// The value at that index, nil when there are fewer.
  func item(_ index: Int) -> Item?
}

extension IndexedProperties {
  /// The string at that index, nil when there is none or it is something else.
  public func string(at index: Int) -> String? { item(index)?.string }
  /// The integer at that index (`intValue`), 0 when there is none.
  public func int(at index: Int) -> Int64 { item(index)?.intValue ?? 0 }
  /// The number at that index (`doubleValue`), 0.0 when there is none.
  public func double(at index: Int) -> Double { item(index)?.doubleValue ?? 0 }
  /// Whether the value at that index is true or a number but 0 (`boolValue`), false when there is none.
  public func boolean(at index: Int) -> Bool { item(index)?.boolValue ?? false }
  /// The date at that index, a string by ISO-8601; nil when there is none or it is something else.
  public func date(at index: Int) -> Date? { item(index)?.date }
  /// The array at that index, nil when there is none or it is something else.
  public func array(at index: Int) -> Item.Items? { item(index)?.array }
  /// The object at that index, nil when there is none or it is something else.
  public func dictionary(at index: Int) -> Item.Members? { item(index)?.object }
  /// The blob at that index, nil when there is none or it is something else.
  public func blob(at index: Int) -> Blob? { item(index)?.blob }
}

extension JSONObject: KeyedProperties {
  /// The value of that name, nil when there is none.
  public func member(_ name: String) -> JSONValue? { self[name] }
}

extension Array: IndexedProperties where Element == JSONValue {
  /// The value at that index, nil when there are fewer.
  public func item(_ index: Int) -> JSONValue? { indices.contains(index) ? self[index] : nil }
}

extension JSONValue: KeyedProperties, IndexedProperties {
  /// The member of that name, nil when there is none or this is no object.
  public func member(_ name: String) -> JSONValue? { object?[name] }
  /// The names of an object's members, in no particular order; none of anything else.
  public var keys: [String] { object?.keys ?? [] }
  /// The item at that index, nil when there are fewer or this is no array.
  public func item(_ index: Int) -> JSONValue? { array?.item(index) }
}

extension Property: KeyedProperties, IndexedProperties {
  /// The member of that name, nil when there is none or this is no object.
  public func member(_ name: String) -> Property? {
    let member = self[name]
    return member.exists ? member : nil
  }

  /// The item at that index, nil when there are fewer or this is no array.
  public func item(_ index: Int) -> Property? {
    let item = self[index]
    return item.exists ? item : nil
  }
}
