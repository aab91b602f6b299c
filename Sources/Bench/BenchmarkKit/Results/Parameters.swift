/// The parameters of a workload, by name.
public typealias Parameters = [String: ParameterValue]

/// The value of a parameter in a results file: a string, an integer or a boolean.
public enum ParameterValue: Hashable, Sendable, Codable, CustomStringConvertible,
  ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
  case string(String)
  case integer(Int)
  case boolean(Bool)

  /// Makes a string.
  public init(stringLiteral value: String) { self = .string(value) }

  /// Makes an integer.
  public init(integerLiteral value: Int) { self = .integer(value) }

  /// Makes a boolean.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }

  /// Reads a string, an integer or a boolean. Throws for anything else.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let value = try? container.decode(Bool.self) {
      self = .boolean(value)
    } else if let value = try? container.decode(Int.self) {
      self = .integer(value)
    } else {
      self = .string(try container.decode(String.self))
    }
  }

  /// Writes the value as plain JSON.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .string(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .boolean(let value): try container.encode(value)
    }
  }

  /// The value as text.
  public var description: String {
    switch self {
    case .string(let value): value
    case .integer(let value): String(value)
    case .boolean(let value): String(value)
    }
  }
}

extension Parameters {
  /// `name=value` pairs in the order of names, separated by commas. Equal parameters have equal text.
  public var text: String {
    sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ", ")
  }
}
