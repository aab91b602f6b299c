/// A string that is compared by its bytes.
///
/// Two `ByteString`s are equal when their bytes are equal. Swift's `String` compares by canonical
/// equivalence: `"\u{E9}"` and `"e\u{301}"` are equal strings. Document IDs, property names, paths and names
/// of indexes are different when their bytes are different. Dictionaries and sets of them therefore use
/// `ByteString` as the key:
///
///     var observers: [ByteString: [Observer]] = [:]
///     observers[ByteString(documentID)]
///
/// `ByteString`s sort in byte order, which is also the order of keys in a keyspace.
public struct ByteString: Hashable, Sendable {
  /// The bytes. They are UTF-8 when they come from a `String`; other sources may give any bytes.
  public let bytes: [UInt8]

  /// The UTF-8 of `string`.
  @inlinable
  public init(_ string: String) {
    bytes = Array(string.utf8)
  }

  /// A copy of `bytes`.
  @inlinable
  public init(_ bytes: some Sequence<UInt8>) {
    self.bytes = Array(bytes)
  }

  /// The text. Bytes that aren't UTF-8 become U+FFFD, so only valid UTF-8 survives the conversion.
  @inlinable
  public var string: String {
    String(decoding: bytes, as: UTF8.self)
  }

  /// Hashes the bytes.
  @inlinable
  public func hash(into hasher: inout Hasher) {
    bytes.withUnsafeBytes { hasher.combine(bytes: $0) }
  }
}

extension ByteString: Comparable {
  /// Compares by unsigned bytes. A string comes before every longer string that begins with it.
  @inlinable
  public static func < (left: ByteString, right: ByteString) -> Bool {
    left.bytes.lexicographicallyPrecedes(right.bytes)
  }
}

extension ByteString: ExpressibleByStringLiteral {
  /// The UTF-8 of the literal.
  @inlinable
  public init(stringLiteral value: String) {
    self.init(value)
  }
}

extension ByteString: CustomStringConvertible {
  /// The same text as `string`.
  @inlinable
  public var description: String { string }
}

extension StringProtocol {
  /// Returns whether both strings have the same bytes. `==` compares by canonical equivalence instead.
  @inlinable
  package func hasSameBytes(as other: some StringProtocol) -> Bool {
    utf8.elementsEqual(other.utf8)
  }

  /// Returns whether this string comes before `other` in byte order. `<` compares by canonical equivalence
  /// instead.
  @inlinable
  package func precedesInBytes(_ other: some StringProtocol) -> Bool {
    utf8.lexicographicallyPrecedes(other.utf8)
  }
}

extension Sequence<String> {
  /// Returns the strings sorted in byte order.
  @inlinable
  package func sortedByBytes() -> [String] {
    sorted { $0.precedesInBytes($1) }
  }
}
