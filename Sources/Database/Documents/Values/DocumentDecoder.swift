import Fleece
import FoundationEssentials

/// Decodes `Decodable` types from JSON values: those of `DocumentEncoder`, or JSON from another source.
///
/// Dates are decoded from ISO 8601 strings, `Data` from binary data or base64 strings, URLs from strings, and `Decimal`
/// from numbers: 9.99 becomes exactly 9.99.
/// A number is decoded as any integer type that can hold it exactly, or as a floating-point type: 2.0 as an
/// integer, 2 as a double.
public struct DocumentDecoder: Sendable {
  /// Creates a decoder.
  public init() {}

  /// Decodes a `Type` from `value`. Throws `DecodingError` when it doesn't fit.
  public func decode<Type: Decodable>(_ type: Type.Type, from value: JSONValue) throws -> Type {
    try ValueDecoder(value, []).decodeAny(type)
  }

  /// A decoder of one value, for decoders of larger things. `path` is the place of the value in them.
  package static func decoder(of value: JSONValue, at path: [any CodingKey] = []) -> any Decoder {
    ValueDecoder(value, path)
  }
}

private struct IndexKey: CodingKey {
  let index: Int
  var intValue: Int? { index }
  var stringValue: String { "Index \(index)" }

  init(_ index: Int) { self.index = index }
  init?(intValue: Int) { index = intValue }
  init?(stringValue: String) { nil }
}

private struct ValueDecoder: Decoder, SingleValueDecodingContainer {
  let value: JSONValue
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ value: JSONValue, _ codingPath: [any CodingKey]) {
    self.value = value
    self.codingPath = codingPath
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard let members = value.object else { throw mismatch([String: JSONValue].self) }
    return KeyedDecodingContainer(MembersDecoder<Key>(members: members, codingPath: codingPath))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard let items = value.array else { throw mismatch([JSONValue].self) }
    return ItemsDecoder(items: items, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }

  func decodeAny<Type: Decodable>(_ type: Type.Type) throws -> Type {
    let special: Any?
    switch type {
    case is JSONValue.Type: special = value
    case is Date.Type: special = try found(value.date, type)
    case is Data.Type:
      special = try found(
        value.data.map { Data($0) } ?? value.string.flatMap { Data(base64Encoded: $0) }, type)
    case is URL.Type: special = try found(value.string.flatMap { URL(string: $0) }, type)
    // Earlier releases stored the members by which Foundation encodes it, which it decodes itself.
    case is Decimal.Type where value.object == nil:
      special = try found(DecimalNumber.decimal(of: value), type)
    default: special = nil
    }
    // If `Type` is optional, a nil result would be taken for a value here.
    if let special, let result = special as? Type { return result }
    return try Type(from: self)
  }

  func decodeNil() -> Bool { value.isNull }
  func decode(_ type: Bool.Type) throws -> Bool { try found(value.bool, type) }
  func decode(_ type: String.Type) throws -> String { try found(value.string, type) }
  func decode(_ type: Double.Type) throws -> Double { try found(value.double, type) }
  func decode(_ type: Float.Type) throws -> Float {
    // A number that is too large would become infinity, which can't be stored again.
    try found(value.double.map { Float($0) }.flatMap { $0.isFinite ? $0 : nil }, type)
  }
  func decode(_ type: Int.Type) throws -> Int { try integer(type) }
  func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
  func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
  func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
  func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
  func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }
  func decode<Type: Decodable>(_ type: Type.Type) throws -> Type { try decodeAny(type) }

  private func integer<Integer: FixedWidthInteger>(_ type: Integer.Type) throws -> Integer {
    switch value {
    case .int(let int): try found(Integer(exactly: int), type)
    case .uint(let uint): try found(Integer(exactly: uint), type)
    case .double(let double): try found(Integer(exactly: double), type)
    default: throw mismatch(type)
    }
  }

  private func found<Type>(_ result: Type?, _ type: Any.Type) throws -> Type {
    guard let result else { throw mismatch(type) }
    return result
  }

  private func mismatch(_ type: Any.Type) -> DecodingError {
    let context = DecodingError.Context(
      codingPath: codingPath, debugDescription: "expected \(type), found \(value.kind)")
    return value.isNull ? .valueNotFound(type, context) : .typeMismatch(type, context)
  }
}

extension JSONValue {
  fileprivate var kind: String {
    switch self {
    case .null: "null"
    case .bool: "a boolean"
    case .int, .uint: "an integer"
    case .double: "a double"
    case .string(let text): "the string \"\(text.prefix(50))\""
    case .data: "binary data"
    case .array: "an array"
    case .object: "an object"
    }
  }
}

private struct MembersDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let members: JSONObject
  let codingPath: [any CodingKey]
  var allKeys: [Key] { members.keys.compactMap { Key(stringValue: $0) } }

  private func member(_ key: any CodingKey) throws -> ValueDecoder {
    guard let value = members[key.stringValue] else {
      throw DecodingError.keyNotFound(
        key,
        DecodingError.Context(
          codingPath: codingPath, debugDescription: "there is no property \"\(key.stringValue)\""))
    }
    return ValueDecoder(value, codingPath + [key])
  }

  func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }
  func decodeNil(forKey key: Key) throws -> Bool { try member(key).decodeNil() }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    // The body doesn't have it. The database sets it afterwards.
    if type is ModelRevision.Type, let revision = ModelRevision() as? T { return revision }
    return try member(key).decodeAny(type)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> { try member(key).container(keyedBy: type) }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try member(key).unkeyedContainer()
  }

  func superDecoder() -> any Decoder { ValueDecoder(members["super"] ?? .null, codingPath) }
  func superDecoder(forKey key: Key) throws -> any Decoder { try member(key) }
}

private struct ItemsDecoder: UnkeyedDecodingContainer {
  let items: [JSONValue]
  let codingPath: [any CodingKey]
  var currentIndex = 0
  var count: Int? { items.count }
  var isAtEnd: Bool { currentIndex >= items.count }

  init(items: [JSONValue], codingPath: [any CodingKey]) {
    self.items = items
    self.codingPath = codingPath
  }

  /// Decodes the next item. Advances only if that succeeds.
  private mutating func next<Result>(_ body: (ValueDecoder) throws -> Result) throws -> Result {
    guard !isAtEnd else {
      throw DecodingError.valueNotFound(
        Result.self,
        DecodingError.Context(
          codingPath: codingPath + [IndexKey(currentIndex)], debugDescription: "the array ends here"))
    }
    let result = try body(ValueDecoder(items[currentIndex], codingPath + [IndexKey(currentIndex)]))
    currentIndex += 1
    return result
  }

  mutating func decodeNil() throws -> Bool {
    guard !isAtEnd, items[currentIndex].isNull else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T { try next { try $0.decodeAny(type) } }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> { try next { try $0.container(keyedBy: type) } }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next { try $0.unkeyedContainer() }
  }

  mutating func superDecoder() throws -> any Decoder { try next { $0 } }
}
