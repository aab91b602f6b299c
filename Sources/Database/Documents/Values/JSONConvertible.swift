import Fleece
import FoundationEssentials

/// A type that can be set as a property: JSON values, and types with an obvious JSON form.
public protocol JSONConvertible {
  /// The value to store.
  var jsonValue: JSONValue { get }
}

extension JSONValue: JSONConvertible {
  /// The value itself.
  public var jsonValue: JSONValue { self }
}

extension JSONObject: JSONConvertible {
  /// The object.
  public var jsonValue: JSONValue { .object(self) }
}

extension String: JSONConvertible {
  /// The string.
  public var jsonValue: JSONValue { .string(self) }
}

extension Bool: JSONConvertible {
  /// The boolean.
  public var jsonValue: JSONValue { .bool(self) }
}

extension Double: JSONConvertible {
  /// The double.
  public var jsonValue: JSONValue { .double(self) }
}

extension Float: JSONConvertible {
  /// The number as a double.
  public var jsonValue: JSONValue { .double(Double(self)) }
}

extension BinaryInteger where Self: JSONConvertible {
  /// The integer.
  public var jsonValue: JSONValue { JSONValue(self) }
}

extension Int: JSONConvertible {}
extension Int8: JSONConvertible {}
extension Int16: JSONConvertible {}
extension Int32: JSONConvertible {}
extension Int64: JSONConvertible {}
extension UInt: JSONConvertible {}
extension UInt8: JSONConvertible {}
extension UInt16: JSONConvertible {}
extension UInt32: JSONConvertible {}
extension UInt64: JSONConvertible {}

extension Date: JSONConvertible {
  /// An ISO 8601 string with milliseconds in UTC, or null if the year doesn't have four digits.
  public var jsonValue: JSONValue { JSONValue(self) }
}

extension Data: JSONConvertible {
  /// Binary data.
  public var jsonValue: JSONValue { .data(Array(self)) }
}

extension Array: JSONConvertible where Element: JSONConvertible {
  /// The items in order.
  public var jsonValue: JSONValue { .array(map(\.jsonValue)) }
}

extension Dictionary: JSONConvertible where Key == String, Value: JSONConvertible {
  /// The members.
  public var jsonValue: JSONValue { .object(JSONObject(map { ($0.key, $0.value.jsonValue) })) }
}

extension Optional: JSONConvertible where Wrapped: JSONConvertible {
  /// The value, or null.
  public var jsonValue: JSONValue { self?.jsonValue ?? .null }
}

extension Blob: JSONConvertible {}
