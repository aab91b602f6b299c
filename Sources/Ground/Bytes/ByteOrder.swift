// The order of keys: by unsigned bytes, and a key before every longer key that begins with it. Also copies of
// lent bytes.

#if canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Darwin)
  import Darwin
#endif

/// Compares by unsigned bytes. Returns a negative number, zero or a positive number if `left` sorts before, equal
/// to or after `right`. If one begins with the other, the shorter one comes first. The bytes have to live until
/// the call returns.
@inlinable @inline(__always)
package func compareBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Int {
  let shared = min(left.count, right.count)
  if shared > 0, let first = left.baseAddress, let second = right.baseAddress {
    let order = Int(memcmp(first, second, shared))
    if order != 0 { return order }
  }
  return left.count - right.count
}

/// Returns whether both have the same bytes. The bytes have to live until the call returns.
@inlinable @inline(__always)
package func equalBytes(_ left: UnsafeRawBufferPointer, _ right: UnsafeRawBufferPointer) -> Bool {
  guard left.count == right.count else { return false }
  guard let first = left.baseAddress, let second = right.baseAddress else { return true }
  return memcmp(first, second, left.count) == 0
}

extension RawSpan {
  /// Compares by unsigned bytes. Returns a negative number, zero or a positive number if these bytes sort
  /// before, equal to or after `other`. If one begins with the other, the shorter one comes first.
  @inlinable
  package func compare(_ other: RawSpan) -> Int {
    withUnsafeBytes { left in other.withUnsafeBytes { compareBytes(left, $0) } }
  }

  /// Returns whether both have the same bytes.
  @inlinable
  package func isEqual(to other: RawSpan) -> Bool { byteCount == other.byteCount && compare(other) == 0 }
}

extension [UInt8] {
  /// A copy of lent bytes.
  @inlinable
  package init(copying bytes: RawSpan) { self = bytes.withUnsafeBytes { [UInt8]($0) } }
}

extension String {
  /// A copy of lent UTF-8. Bytes that aren't UTF-8 are replaced, as in `String(decoding:as:)`.
  @inlinable
  package init(copying utf8: RawSpan) { self = utf8.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}
