import Fleece

/// The text of a JSON object. Its members keep the order in which they were added.
struct JSONObjectText {
  private var members = ""

  mutating func add(_ name: String, _ value: String) { add(name, json: Self.quoted(value)) }
  mutating func add(_ name: String, _ value: some BinaryInteger) { add(name, json: String(value)) }
  mutating func add(_ name: String, _ value: Bool) { add(name, json: value ? "true" : "false") }
  mutating func add(_ name: String, _ value: JSONObjectText) { add(name, json: value.text) }
  mutating func add(_ name: String, _ values: [JSONObjectText]) {
    add(name, json: "[" + values.map(\.text).joined(separator: ",") + "]")
  }

  /// Adds a value that is already JSON text.
  mutating func add(_ name: String, json: String) {
    if !members.isEmpty { members += "," }
    members += Self.quoted(name) + ":" + json
  }

  /// The object on one line, without spaces.
  var text: String { "{" + members + "}" }

  /// A JSON string, escaped as in documents.
  static func quoted(_ text: String) -> String { text.jsonText }
}
