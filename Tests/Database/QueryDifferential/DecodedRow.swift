import Fleece

/// A row that is decoded, whatever its columns are.
struct DecodedRow: Decodable {
  /// By name.
  var columns = JSONObject()

  private struct Name: CodingKey {
    var stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    columns = try Self.members(of: decoder)
  }

  private static func members(of decoder: any Decoder) throws -> JSONObject {
    let container = try decoder.container(keyedBy: Name.self)
    var members = JSONObject()
    for key in container.allKeys {
      members[key.stringValue] = try container.decode(AnyValue.self, forKey: key).value
    }
    return members
  }

  /// Any value, asked for type by type.
  private struct AnyValue: Decodable {
    var value: JSONValue

    init(from decoder: any Decoder) throws {
      if let scalar = Self.scalar(decoder) {
        value = scalar
      } else if var items = try? decoder.unkeyedContainer() {
        var values: [JSONValue] = []
        while !items.isAtEnd { values.append(try items.decode(AnyValue.self).value) }
        value = .array(values)
      } else {
        value = .object(try members(of: decoder))
      }
    }

    private static func scalar(_ decoder: any Decoder) -> JSONValue? {
      guard let container = try? decoder.singleValueContainer() else { return nil }
      if container.decodeNil() { return .null }
      if let bool = try? container.decode(Bool.self) { return .bool(bool) }
      if let integer = try? container.decode(Int64.self) { return .int(integer) }
      if let integer = try? container.decode(UInt64.self) { return .uint(integer) }
      if let double = try? container.decode(Double.self) { return .double(double) }
      return (try? container.decode(String.self)).map { .string($0) }
    }
  }
}
