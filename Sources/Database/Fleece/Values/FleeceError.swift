// The errors of bodies and JSON texts.

/// The error for JSON, Fleece, a property path or a shared key table that is refused.
public enum FleeceError: Error, Equatable, Sendable {
  /// The text isn't JSON. `offset` is the byte at which the fault begins, if it is known.
  case invalidJSON(reason: String, offset: Int?)
  /// The bytes aren't valid Fleece. `offset` is that of the damaged value or slot.
  case invalidFleece(reason: String, offset: Int)
  /// Arrays and objects are nested deeper than `limit`.
  case tooDeep(limit: Int)
  /// The value is NaN or infinite. JSON has no such numbers.
  case notFinite
  /// A body, a text or JSON output is larger than `limit`, in bytes.
  case tooLarge(limit: Int)
  /// A body uses a shared key number that isn't in the table of `count` names.
  case unknownSharedKey(number: Int, count: Int)
  /// The names can't form a shared key table.
  case invalidSharedKeys(reason: String)
  /// A property path can't be parsed. `offset` counts UTF-8 bytes.
  case invalidPath(path: String, reason: String, offset: Int)
  /// The JSON parser can't allocate memory.
  case outOfMemory
}

extension FleeceError: CustomStringConvertible {
  /// A description in one line.
  public var description: String {
    switch self {
    case .invalidJSON(let reason, let offset?): "invalid JSON at byte \(offset): \(reason)"
    case .invalidJSON(let reason, nil): "invalid JSON: \(reason)"
    case .invalidFleece(let reason, let offset): "invalid Fleece data at byte \(offset): \(reason)"
    case .tooDeep(let limit): "arrays and objects are nested deeper than \(limit) levels"
    case .notFinite: "NaN and infinities can't be stored"
    case .tooLarge(let limit): "the data is larger than \(limit) bytes"
    case .unknownSharedKey(let number, let count):
      "the data uses shared key \(number), but the table has \(count)"
    case .invalidSharedKeys(let reason): "invalid shared key table: \(reason)"
    case .invalidPath(let path, let reason, let offset):
      "invalid property path \"\(path)\" at byte \(offset): \(reason)"
    case .outOfMemory: "out of memory while parsing JSON"
    }
  }
}
