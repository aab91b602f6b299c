import Fleece

/// What a document's body is made from.
public enum DocumentBody: Sendable, ExpressibleByDictionaryLiteral {
  /// UTF-8 of a JSON object.
  case json([UInt8])
  /// A value, which has to be an object.
  case value(JSONValue)

  /// The text of a JSON object.
  public init(json: String) { self = .json(Array(json.utf8)) }

  /// An object written out: `["type": "hotel"]`.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .value(.object(JSONObject(elements)))
  }
}
