/// The text of a JSON object whose members stay in the order in which they were added.
struct JSONObject {
  private var members = ""

  mutating func add(_ name: String, _ value: String) { add(name, json: Self.quoted(value)) }
  mutating func add(_ name: String, _ value: some BinaryInteger) { add(name, json: String(value)) }
  mutating func add(_ name: String, _ value: Bool) { add(name, json: value ? "true" : "false") }
  mutating func add(_ name: String, _ value: JSONObject) { add(name, json: value.text) }
  mutating func add(_ name: String, _ values: [JSONObject]) {
    add(name, json: "[" + values.map(\.text).joined(separator: ",") + "]")
  }

  /// Adds a value that is JSON text already.
  mutating func add(_ name: String, json: String) {
    if !members.isEmpty { members += "," }
    members += Self.quoted(name) + ":" + json
  }

  /// On one line, without blanks.
  var text: String { "{" + members + "}" }

  /// A JSON string.
  static func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": result += "\\\""
      case "\\": result += "\\\\"
      case "\n": result += "\\n"
      case "\r": result += "\\r"
      case "\t": result += "\\t"
      case "\u{0}"..<" ", "\u{7F}":
        let digits = String(scalar.value, radix: 16)
        result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
      default: result.unicodeScalars.append(scalar)
      }
    }
    return result + "\""
  }
}
