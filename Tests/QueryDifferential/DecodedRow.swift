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
    let container = try decoder.container(keyedBy: Name.self)
    for key in container.allKeys {
      columns[key.stringValue] = try container.decode(AnyValue.self, forKey: key).value
    }
  }

  /// Any value, asked for type by type.
  private struct AnyValue: Decodable {
    var value: JSONValue

    init(from decoder: any Decoder) throws {
      if let container = try? decoder.singleValueContainer() {
        if container.decodeNil() {
          value = .null
          return
        }
        if let bool = try? container.decode(Bool.self) {
          value = .bool(bool)
          return
        }
        if let integer = try? container.decode(Int64.self) {
          value = .int(integer)
          return
        }
        if let integer = try? container.decode(UInt64.self) {
          value = .uint(integer)
          return
        }
        if let double = try? container.decode(Double.self) {
          value = .double(double)
          return
        }
        if let text = try? container.decode(String.self) {
          value = .string(text)
          return
        }
      }
      if var items = try? decoder.unkeyedContainer() {
        var values: [JSONValue] = []
        while !items.isAtEnd { values.append(try items.decode(AnyValue.self).value) }
        value = .array(values)
        return
      }
      let members = try decoder.container(keyedBy: Name.self)
      var object = JSONObject()
      for key in members.allKeys {
        object[key.stringValue] = try members.decode(AnyValue.self, forKey: key).value
      }
      value = .object(object)
    }
  }
}
