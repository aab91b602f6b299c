import Fleece
import FoundationEssentials

/// Encodes `Encodable` types as JSON values: dates as ISO 8601 strings, `Data` as binary data, URLs as strings, and
/// `Decimal` as a number.
///
/// Throws `EncodingError` when a double isn't finite, a `Decimal` has more digits than a stored number can hold (about
/// 16), the year of a date doesn't have four digits, or a type encodes nothing.
public struct DocumentEncoder: Sendable {
  /// Creates an encoder.
  public init() {}

  /// Returns the JSON form of `value`.
  public func encode(_ value: some Encodable) throws -> JSONValue {
    let place = Place()
    try ValueEncoder(place, []).encodeAny(value)
    guard let result = place.value else {
      throw EncodingError.invalidValue(
        value, EncodingError.Context(codingPath: [], debugDescription: "\(type(of: value)) encoded no value"))
    }
    return result
  }
}

/// The destination of an encoded value. Containers write to it as they grow.
private final class Place {
  private enum Content {
    case nothing
    case value(JSONValue)
    case items([Place])
    case members([(String, Place)])
  }
  private var content = Content.nothing
  /// The indices of members by the bytes of their names.
  private var indices: [[UInt8]: Int] = [:]

  var value: JSONValue? {
    switch content {
    case .nothing: nil
    case .value(let value): value
    // A nested value that encoded nothing is an empty object, as in Foundation's encoders.
    case .items(let items): .array(items.map { $0.value ?? [:] })
    case .members(let members): .object(JSONObject(members.map { ($0.0, $0.1.value ?? [:]) }))
    }
  }

  func set(_ value: JSONValue) { content = .value(value) }

  func becomeArray() {
    if case .items = content { return }
    content = .items([])
  }

  func becomeObject() {
    if case .members = content { return }
    indices = [:]
    content = .members([])
  }

  var count: Int { if case .items(let items) = content { items.count } else { 0 } }

  func appendItem() -> Place {
    let place = Place()
    guard case .items(var items) = content else { return place }
    content = .nothing
    items.append(place)
    content = .items(items)
    return place
  }

  func member(_ name: String) -> Place {
    guard case .members(var members) = content else { return Place() }
    // Of several members with one name the last wins. Two nested containers with one name share the member.
    if let index = indices[Array(name.utf8)] { return members[index].1 }
    content = .nothing
    let place = Place()
    indices[Array(name.utf8)] = members.count
    members.append((name, place))
    content = .members(members)
    return place
  }
}

private struct ValueEncoder: Encoder, SingleValueEncodingContainer {
  let place: Place
  let codingPath: [any CodingKey]
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ place: Place, _ codingPath: [any CodingKey]) {
    self.place = place
    self.codingPath = codingPath
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    place.becomeObject()
    return KeyedEncodingContainer(MembersEncoder<Key>(place: place, codingPath: codingPath))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    place.becomeArray()
    return ItemsEncoder(place: place, codingPath: codingPath)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  /// Types with a special form come first. Other types encode themselves.
  func encodeAny(_ value: some Encodable) throws {
    switch value {
    case let value as JSONValue: place.set(value)
    case let value as Date:
      guard let text = ISO8601.text(value) else {
        // Not the date itself: printing a date that isn't a number ends the process.
        let seconds = value.timeIntervalSince1970
        throw EncodingError.invalidValue(
          seconds,
          EncodingError.Context(
            codingPath: codingPath,
            debugDescription: "the year of a date must have four digits; this one is \(seconds) s after 1970")
        )
      }
      place.set(.string(text))
    case let value as Data: place.set(.data(Array(value)))
    case let value as URL: place.set(.string(value.absoluteString))
    case let value as Decimal:
      guard let number = DecimalNumber.value(of: value) else {
        throw EncodingError.invalidValue(
          value,
          EncodingError.Context(
            codingPath: codingPath,
            debugDescription:
              "a number in a document can't hold the decimal \(value) exactly; store it as a string"))
      }
      place.set(number)
    default: try value.encode(to: self)
    }
  }

  func encodeNil() { place.set(.null) }
  func encode(_ value: Bool) { place.set(.bool(value)) }
  func encode(_ value: String) { place.set(.string(value)) }
  func encode(_ value: Float) throws { try encode(Double(value)) }
  func encode(_ value: Int) { place.set(JSONValue(value)) }
  func encode(_ value: Int8) { place.set(JSONValue(value)) }
  func encode(_ value: Int16) { place.set(JSONValue(value)) }
  func encode(_ value: Int32) { place.set(JSONValue(value)) }
  func encode(_ value: Int64) { place.set(JSONValue(value)) }
  func encode(_ value: UInt) { place.set(JSONValue(value)) }
  func encode(_ value: UInt8) { place.set(JSONValue(value)) }
  func encode(_ value: UInt16) { place.set(JSONValue(value)) }
  func encode(_ value: UInt32) { place.set(JSONValue(value)) }
  func encode(_ value: UInt64) { place.set(JSONValue(value)) }
  func encode<T: Encodable>(_ value: T) throws { try encodeAny(value) }

  func encode(_ value: Double) throws {
    guard value.isFinite else {
      throw EncodingError.invalidValue(
        value,
        EncodingError.Context(codingPath: codingPath, debugDescription: "JSON can't represent \(value)"))
    }
    place.set(.double(value))
  }
}

private struct MembersEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let place: Place
  let codingPath: [any CodingKey]

  private func member(_ key: any CodingKey) -> ValueEncoder {
    ValueEncoder(place.member(key.stringValue), codingPath + [key])
  }

  func encodeNil(forKey key: Key) { member(key).encodeNil() }
  func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    // The database keeps the revision of a model, whatever its coding key is.
    if value is ModelRevision { return }
    try member(key).encodeAny(value)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> { member(key).container(keyedBy: type) }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    member(key).unkeyedContainer()
  }
  func superEncoder() -> any Encoder { ValueEncoder(place.member("super"), codingPath) }
  func superEncoder(forKey key: Key) -> any Encoder { member(key) }
}

private struct ItemsEncoder: UnkeyedEncodingContainer {
  let place: Place
  let codingPath: [any CodingKey]
  var count: Int { place.count }

  private func item() -> ValueEncoder { ValueEncoder(place.appendItem(), codingPath) }

  func encodeNil() { item().encodeNil() }
  func encode<T: Encodable>(_ value: T) throws { try item().encodeAny(value) }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    item().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { item().unkeyedContainer() }
  func superEncoder() -> any Encoder { item() }
}
