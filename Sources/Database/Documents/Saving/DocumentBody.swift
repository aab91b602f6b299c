import Fleece

/// The source of a document's body.
public enum DocumentBody: Sendable, ExpressibleByDictionaryLiteral {
  /// A JSON object in UTF-8.
  case json([UInt8])
  /// A value, which must be an object.
  case value(JSONValue)

  /// Creates a body from the text of a JSON object.
  public init(json: String) { self = .json(Array(json.utf8)) }

  /// Creates a body from an object literal: `["type": "hotel"]`.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    self = .value(.object(JSONObject(elements)))
  }
}
