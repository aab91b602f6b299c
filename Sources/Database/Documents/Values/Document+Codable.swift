import Fleece

extension Document {
  /// Decodes the document's properties as a `Decodable` type (see `DocumentDecoder`).
  ///
  /// Throws `DecodingError` when a value doesn't fit, and `damaged` when the body can't be read.
  public func decode<Type: Decodable>(_ type: Type.Type = Type.self) throws -> Type {
    try DocumentDecoder().decode(type, from: value())
  }
}

extension Property {
  /// Decodes the property as a `Decodable` type (see `DocumentDecoder`). Nil if the property is missing.
  public func decode<Type: Decodable>(_ type: Type.Type = Type.self) throws -> Type? {
    try jsonValue().map { try DocumentDecoder().decode(type, from: $0) }
  }
}

extension MutableDocument {
  /// Creates a document with the properties of an `Encodable` value (see `DocumentEncoder`). Of a
  /// `DocumentModel` that are those which a save of the model stores, and its ID is the default of `id`.
  ///
  /// If the value doesn't encode as an object, saving the document fails.
  public init(id: String? = nil, encoding value: some Encodable) throws {
    self.init(id: id ?? (value as? any DocumentModel)?.id, try Self.body(of: value))
  }

  private static func body(of value: some Encodable) throws -> JSONValue {
    try (value as? any DocumentModel)?.body() ?? DocumentEncoder().encode(value)
  }

  /// Replaces all properties by those of an `Encodable` value.
  public mutating func encode(_ value: some Encodable) throws { body = try Self.body(of: value) }

  /// Sets one property to an `Encodable` value.
  public mutating func encode(_ value: some Encodable, forKey key: String) throws {
    body[key] = try DocumentEncoder().encode(value)
  }

  /// Decodes the document's properties as a `Decodable` type (see `DocumentDecoder`).
  public func decode<Type: Decodable>(_ type: Type.Type = Type.self) throws -> Type {
    try DocumentDecoder().decode(type, from: body)
  }
}

extension JSONValue: Codable {
  /// Decodes a value with a decoder of another module, such as JSONDecoder.
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

  /// Encodes the value. Binary data becomes a base64 string.
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

  /// The canonical JSON text of a string without its quotes.
  private var canonicalText: String { get throws { String(try canonicalJSON().dropFirst().dropLast()) } }
}
