import Fleece

// Operators are here because the import of a single type from another module doesn't bring its operators along.

extension JSONValue {
  /// Returns whether the value is null, for `value["name"] == nil`. A missing member or item also reads as
  /// null.
  public static func == (left: JSONValue, right: _OptionalNilComparisonType) -> Bool { left.isNull }

  /// Returns whether the value isn't null, for `value["name"] != nil`.
  public static func != (left: JSONValue, right: _OptionalNilComparisonType) -> Bool { !left.isNull }
}
