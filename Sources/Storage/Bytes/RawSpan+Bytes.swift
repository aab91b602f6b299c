#if canImport(Glibc)
  import Glibc
#endif

extension [UInt8] {
  /// A copy of lent bytes.
  @inlinable
  public init(copying bytes: RawSpan) { self = bytes.withUnsafeBytes { [UInt8]($0) } }
}

extension RawSpan {
  /// Negative, zero or positive, as these bytes sort before, equal to or after `other`: by unsigned bytes, and the
  /// shorter first where one begins with the other.
  @inlinable
  public func compare(_ other: RawSpan) -> Int {
    withUnsafeBytes { left in
      other.withUnsafeBytes { right in
        let count = Swift.min(left.count, right.count)
        if count > 0, let first = left.baseAddress, let second = right.baseAddress {
          let order = Int(memcmp(first, second, count))
          if order != 0 { return order }
        }
        return left.count - right.count
      }
    }
  }

  /// Whether both hold the same bytes.
  @inlinable
  public func isEqual(to other: RawSpan) -> Bool { byteCount == other.byteCount && compare(other) == 0 }
}

extension String {
  /// A copy of lent UTF-8. What isn't UTF-8 is replaced as `String(decoding:as:)` does.
  @inlinable
  public init(copying utf8: RawSpan) { self = utf8.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}
