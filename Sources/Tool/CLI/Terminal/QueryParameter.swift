import Touchstone

/// A parameter of a query as it is typed: `name=value`.
struct QueryParameter {
  let name: String
  let value: JSONValue

  static let option = Option<QueryParameter>(
    "param", "NAME=VALUE", "The value of $NAME: JSON, otherwise a string; may be repeated",
    parse: { try QueryParameter($0) })

  /// Parses `name=value`. A value that isn't JSON is a string.
  init(_ text: String) throws {
    guard let sign = text.firstIndex(of: "="), sign != text.startIndex else {
      throw UsageError("'\(text)' doesn't have the form NAME=VALUE")
    }
    let name = text[..<sign]
    self.name = String(name.first == "$" ? name.dropFirst() : name)
    let value = String(text[text.index(after: sign)...])
    self.value = (try? Array(value.utf8).withUnsafeBytes { try JSONValue(json: $0) }) ?? .string(value)
  }

  /// The values of the option, by name. Of several values for one name, the last one counts.
  static func values(_ arguments: Arguments) throws -> [String: JSONValue] {
    Dictionary(
      try arguments.allValues(option).map { ($0.name, $0.value) }, uniquingKeysWith: { _, last in last })
  }
}
