/// What varies between runs of a workload, by name.
public typealias Parameters = [String: ParameterValue]

/// A parameter's value, as it stands in a results file: a string, a whole number or a boolean.
public enum ParameterValue: Hashable, Sendable, Codable, CustomStringConvertible,
  ExpressibleByStringLiteral, ExpressibleByIntegerLiteral, ExpressibleByBooleanLiteral
{
  case string(String)
  case integer(Int)
  case boolean(Bool)

  /// A string.
  public init(stringLiteral value: String) { self = .string(value) }

  /// A whole number.
  public init(integerLiteral value: Int) { self = .integer(value) }

  /// A boolean.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }

  /// Reads a string, a whole number or a boolean; throws for anything else.
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

  /// Writes the bare value.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .string(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .boolean(let value): try container.encode(value)
    }
  }

  /// The value as people read it.
  public var description: String {
    switch self {
    case .string(let value): value
    case .integer(let value): String(value)
    case .boolean(let value): String(value)
    }
  }
}

extension Parameters {
  /// `name=value` by name, with commas between; the same for the same parameters.
  public var text: String {
    sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }.joined(separator: ", ")
  }
}
