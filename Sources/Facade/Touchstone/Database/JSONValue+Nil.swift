import Documents
import Fleece
import Query

// Operators are here because the import of a single type from another module doesn't bring its operators along.

extension JSONValue {
  /// Returns whether the value is null, for `value["name"] == nil`. A missing member or item also reads as
  /// null.
  public static func == (left: JSONValue, right: _OptionalNilComparisonType) -> Bool { left.isNull }

  /// Returns whether the value isn't null, for `value["name"] != nil`.
  public static func != (left: JSONValue, right: _OptionalNilComparisonType) -> Bool { !left.isNull }
}

extension Property {
  /// Returns whether the property is missing or null, for `document["name"] == nil`. `exists` tells them apart.
  public static func == (left: Property, right: _OptionalNilComparisonType) -> Bool {
    left.type.isMissingOrNull
  }

  /// Returns whether the property exists and isn't null, for `document["name"] != nil`.
  public static func != (left: Property, right: _OptionalNilComparisonType) -> Bool {
    !left.type.isMissingOrNull
  }
}

extension ValueType? {
  fileprivate var isMissingOrNull: Bool { self == nil || self == .null }
}

extension QueryResultValue {
  /// Returns whether the value is missing or null, for `row["name"] == nil`. `exists` and `isNull` tell them apart.
  public static func == (left: QueryResultValue, right: _OptionalNilComparisonType) -> Bool {
    !left.exists || left.isNull
  }

  /// Returns whether there is a value that isn't null, for `row["name"] != nil`.
  public static func != (left: QueryResultValue, right: _OptionalNilComparisonType) -> Bool {
    left.exists && !left.isNull
  }
}
