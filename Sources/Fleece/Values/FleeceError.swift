// Everything that can go wrong with a body or a JSON text.

/// Why JSON, Fleece or a shared key table was refused.
public enum FleeceError: Error, Equatable, Sendable {
  /// The text is not JSON; `offset` is the byte at which it stops being so, when that is known.
  case invalidJSON(reason: String, offset: Int?)
  /// The bytes are not valid Fleece; `offset` is that of the value or slot at fault.
  case invalidFleece(reason: String, offset: Int)
  /// Arrays and objects are nested deeper than `limit`.
  case tooDeep(limit: Int)
  /// NaN or an infinity, which JSON can't express.
  case notFinite
  /// A body, text or JSON output larger than the format or the given bound holds.
  case tooLarge(limit: Int)
  /// A body uses a shared key number that the table (of `count` names) doesn't have.
  case unknownSharedKey(number: Int, count: Int)
  /// The names can't be a shared key table.
  case invalidSharedKeys(reason: String)
  /// A property path could not be read; `offset` counts UTF-8 bytes.
  case invalidPath(path: String, reason: String, offset: Int)
  /// No memory could be had for the JSON parser.
  case outOfMemory
}

extension FleeceError: CustomStringConvertible {
  /// One line for a person.
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
