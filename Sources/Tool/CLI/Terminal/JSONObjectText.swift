import Fleece

/// A value that has JSON text.
protocol JSONTextConvertible {
  var jsonText: String { get }
}

extension String: JSONTextConvertible {}

extension JSONTextConvertible where Self: CustomStringConvertible {
  var jsonText: String { description }
}

extension Bool: JSONTextConvertible {}
extension Int: JSONTextConvertible {}
extension UInt64: JSONTextConvertible {}
extension Double: JSONTextConvertible {}

extension Array: JSONTextConvertible where Element: JSONTextConvertible {
  var jsonText: String { "[" + map(\.jsonText).joined(separator: ",") + "]" }
}

/// A value that is already JSON text.
struct JSONLiteral: JSONTextConvertible {
  let jsonText: String
}

/// The text of a JSON object. Its members keep the order in which they were added. A member that is nil is left
/// out.
struct JSONObjectText: JSONTextConvertible, ExpressibleByDictionaryLiteral {
  private var members = ""

  init(dictionaryLiteral members: (String, (any JSONTextConvertible)?)...) {
    for (name, value) in members { add(name, value) }
  }

  mutating func add(_ name: String, _ value: (any JSONTextConvertible)?) {
    guard let value else { return }
    if !members.isEmpty { members += "," }
    members += name.jsonText + ":" + value.jsonText
  }

  /// The object on one line, without spaces.
  var jsonText: String { "{" + members + "}" }
}
