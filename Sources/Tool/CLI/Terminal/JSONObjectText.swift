import Fleece

/// A value that has JSON text.
protocol JSONConvertible {
  var jsonText: String { get }
}

extension String: JSONConvertible {}

extension JSONConvertible where Self: CustomStringConvertible {
  var jsonText: String { description }
}

extension Bool: JSONConvertible {}
extension Int: JSONConvertible {}
extension UInt64: JSONConvertible {}
extension Double: JSONConvertible {}

extension Array: JSONConvertible where Element: JSONConvertible {
  var jsonText: String { "[" + map(\.jsonText).joined(separator: ",") + "]" }
}

/// A value that is already JSON text.
struct JSONLiteral: JSONConvertible {
  let jsonText: String
}

/// The text of a JSON object. Its members keep the order in which they were added. A member that is nil is left
/// out.
struct JSONObjectText: JSONConvertible, ExpressibleByDictionaryLiteral {
  private var members = ""

  init(dictionaryLiteral members: (String, (any JSONConvertible)?)...) {
    for (name, value) in members { add(name, value) }
  }

  mutating func add(_ name: String, _ value: (any JSONConvertible)?) {
    guard let value else { return }
    if !members.isEmpty { members += "," }
    members += name.jsonText + ":" + value.jsonText
  }

  /// The object on one line, without spaces.
  var jsonText: String { "{" + members + "}" }
}
