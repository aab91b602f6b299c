/// Why a value can't be a key of a view.
package enum ViewKeyError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The text isn't JSON.
  case invalidJSON(reason: String, offset: Int)
  /// Arrays and objects are nested deeper than this many levels.
  case tooDeep(limit: Int)
  /// The encoded key would have more than this many bytes.
  case tooLong(limit: Int)
  /// A number is infinite or not a number.
  case notFinite
  /// A stored value can't be read.
  case damaged
  /// ICU can't collate.
  case collator(reason: String)

  /// The reason in words, for people.
  package var description: String {
    switch self {
    case .invalidJSON(let reason, let offset): "a key isn't JSON: \(reason) at byte \(offset)"
    case .tooDeep(let limit): "a key is nested deeper than \(limit) levels"
    case .tooLong(let limit): "an encoded key has more than \(limit) bytes"
    case .notFinite: "a number in a key is infinite or not a number"
    case .damaged: "a key can't be read"
    case .collator(let reason): "a key can't be collated: \(reason)"
    }
  }
}
