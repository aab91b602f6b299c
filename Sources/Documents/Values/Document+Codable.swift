import Fleece

extension Document {
  /// The document's properties as a type of yours (`DocumentDecoder`).
  ///
  /// Throws `DecodingError` for what doesn't fit, and `damaged` when the body can't be read.
  public func decode<Type: Decodable>(_ type: Type.Type = Type.self) throws -> Type {
    try DocumentDecoder().decode(type, from: value())
  }
}

extension Property {
  /// The property as a type of yours (`DocumentDecoder`); nil when it is missing.
  public func decode<Type: Decodable>(_ type: Type.Type = Type.self) throws -> Type? {
    try jsonValue().map { try DocumentDecoder().decode(type, from: $0) }
  }
}

extension MutableDocument {
  /// A new document with the properties of a value of yours (`DocumentEncoder`).
  ///
  /// What encodes itself as anything but an object is refused when it is saved.
  public init(id: String? = nil, encoding value: some Encodable) throws {
    self.init(id: id, try DocumentEncoder().encode(value))
  }

  /// Sets all properties to those of a value of yours; what else the document had is gone.
  public mutating func encode(_ value: some Encodable) throws { body = try DocumentEncoder().encode(value) }

  /// Sets one property to a value of yours.
  public mutating func encode(_ value: some Encodable, forKey key: String) throws {
    body[key] = try DocumentEncoder().encode(value)
  }

  /// The document's properties as a type of yours (`DocumentDecoder`).
  public func decode<Type: Decodable>(_ type: Type.Type = Type.self) throws -> Type {
    try DocumentDecoder().decode(type, from: body)
  }
}

extension JSONValue: Codable {
  /// A value that another encoder or decoder than this module's meets, such as JSONDecoder.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if container.decodeNil() {
      self = .null
    } else if let bool = try? container.decode(Bool.self) {
      self = .bool(bool)
    } else if let int = try? container.decode(Int64.self) {
      self = .int(int)
    } else if let uint = try? container.decode(UInt64.self) {
      self = .uint(uint)
    } else if let double = try? container.decode(Double.self) {
      self = .double(double)
    } else if let string = try? container.decode(String.self) {
      self = .string(string)
    } else if let items = try? container.decode([JSONValue].self) {
      self = .array(items)
    } else {
      self = .object(JSONObject(try container.decode([String: JSONValue].self)))
    }
  }

  /// Data become base64 strings.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let value): try container.encode(value)
    case .int(let value): try container.encode(value)
    case .uint(let value): try container.encode(value)
    case .double(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .data: try container.encode(try canonicalText)
    case .array(let items): try container.encode(items)
    case .object(let members): try container.encode(Dictionary(members.map { ($0, $1) }) { $1 })
    }
  }

  /// A string's text without the quotes.
  private var canonicalText: String { get throws { String(try canonicalJSON().dropFirst().dropLast()) } }
}
