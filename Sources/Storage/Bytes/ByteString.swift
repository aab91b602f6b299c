/// A string whose identity is its bytes.
///
/// Two `ByteString`s are equal when their bytes are equal. Swift's `String` compares by canonical equivalence: it takes
/// `"\u{E9}"` and `"e\u{301}"` for one string. Document IDs, property names, paths and the names of indexes are
/// different when their bytes are. So each dictionary and each set of those has `ByteString` as its key:
///
///     var observers: [ByteString: [Observer]] = [:]
///     observers[ByteString(documentID)]
///
/// The order is that of the bytes, which is also the order of keys in a keyspace.
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

  /// The text. Bytes that are no UTF-8 are shown as U+FFFD, so only valid UTF-8 comes back from it unchanged.
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
  /// The order of unsigned bytes. A string comes before each longer string that begins with it.
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
  /// The same as `string`.
  @inlinable
  public var description: String { string }
}

extension StringProtocol {
  /// Whether both strings have the same bytes. `==` doesn't tell: it compares by canonical equivalence.
  @inlinable
  public func hasSameBytes(as other: some StringProtocol) -> Bool {
    utf8.elementsEqual(other.utf8)
  }

  /// Whether the bytes of this string come before those of `other`. `<` compares by canonical equivalence.
  @inlinable
  public func precedesInBytes(_ other: some StringProtocol) -> Bool {
    utf8.lexicographicallyPrecedes(other.utf8)
  }
}

extension Sequence<String> {
  /// The strings in the order of their bytes.
  @inlinable
  public func sortedByBytes() -> [String] {
    sorted { $0.precedesInBytes($1) }
  }
}
