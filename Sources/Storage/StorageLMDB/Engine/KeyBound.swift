import CLMDB
import Glibc
import Storage

/// One end of a range in a form that loops compare quickly: no array, no enum, and one branch if unbounded.
package struct KeyBound {
  /// Nil if unbounded.
  package let bytes: UnsafeRawPointer?
  package let count: Int
  package let isInclusive: Bool

  /// The pointer for an empty array. It is never read.
  @inlinable static var nowhere: UnsafeRawPointer? { UnsafeRawPointer(bitPattern: 8) }

  @inlinable init(_ bytes: UnsafeRawBufferPointer, isInclusive: Bool) {
    self.bytes = bytes.baseAddress ?? Self.nowhere
    self.count = bytes.count
    self.isInclusive = isInclusive
  }

  @inlinable init() {
    bytes = nil
    count = 0
    isInclusive = true
  }

  /// Calls `body` with the bound. The bytes are valid until `body` returns.
  @inlinable @inline(__always)
  package static func with<Result>(_ bound: KeyRange.Bound, _ body: (KeyBound) throws -> Result) rethrows
    -> Result
  {
    switch bound {
    case .unbounded: try body(KeyBound())
    case .inclusive(let key): try key.withUnsafeBytes { try body(KeyBound($0, isInclusive: true)) }
    case .exclusive(let key): try key.withUnsafeBytes { try body(KeyBound($0, isInclusive: false)) }
    }
  }

  /// Returns the bound with its own copy of the bytes, until `deallocate()`.
  package static func copying(_ bound: KeyRange.Bound) -> KeyBound {
    with(bound) { bound in
      guard let bytes = bound.bytes, bound.count > 0 else { return bound }
      let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bound.count, alignment: 8)
      copy.copyMemory(from: UnsafeRawBufferPointer(start: bytes, count: bound.count))
      return KeyBound(UnsafeRawBufferPointer(copy), isInclusive: bound.isInclusive)
    }
  }

  package func deallocate() {
    if count > 0 { bytes?.deallocate() }
  }

  /// Returns whether `key` is above this upper bound.
  @inlinable @inline(__always)
  package func isBelow(_ key: MDB_val) -> Bool {
    guard let bytes else { return false }
    let order = memcmp(key.mv_data.unsafelyUnwrapped, bytes, min(key.mv_size, count))
    if order != 0 { return order > 0 }
    return isInclusive ? key.mv_size > count : key.mv_size >= count
  }

  /// Returns whether `key` is below this lower bound.
  @inlinable @inline(__always)
  package func isAbove(_ key: MDB_val) -> Bool {
    guard let bytes else { return false }
    let order = memcmp(key.mv_data.unsafelyUnwrapped, bytes, min(key.mv_size, count))
    if order != 0 { return order < 0 }
    return isInclusive ? key.mv_size < count : key.mv_size <= count
  }

  /// Returns whether `key` is the bound's own key.
  @inlinable @inline(__always)
  package func isEqual(_ key: MDB_val) -> Bool {
    guard let bytes else { return false }
    return key.mv_size == count && memcmp(key.mv_data.unsafelyUnwrapped, bytes, count) == 0
  }
}

/// Moves of a plain LMDB cursor to the ends of a range. They return LMDB's result and don't check the other
/// end.
enum CursorMove {
  typealias Value = UnsafeMutablePointer<MDB_val>

  static func first(_ cursor: OpaquePointer, from lower: KeyBound, _ key: Value, _ value: Value?) -> Int32 {
    guard let bytes = lower.bytes, lower.count > 0 else {
      return mdb_cursor_get(cursor, key, value, MDB_FIRST)
    }
    key.pointee = MDB_val(UnsafeRawBufferPointer(start: bytes, count: lower.count))
    let result = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE)
    if result == 0, !lower.isInclusive, lower.isEqual(key.pointee) {
      return mdb_cursor_get(cursor, key, value, MDB_NEXT)
    }
    return result
  }

  static func last(_ cursor: OpaquePointer, to upper: KeyBound, _ key: Value, _ value: Value?) -> Int32 {
    guard let bytes = upper.bytes else { return mdb_cursor_get(cursor, key, value, MDB_LAST) }
    guard upper.count > 0 else { return MDB_NOTFOUND }
    key.pointee = MDB_val(UnsafeRawBufferPointer(start: bytes, count: upper.count))
    let result = mdb_cursor_get(cursor, key, value, MDB_SET_RANGE)
    if result == MDB_NOTFOUND { return mdb_cursor_get(cursor, key, value, MDB_LAST) }
    if result == 0, upper.isBelow(key.pointee) { return mdb_cursor_get(cursor, key, value, MDB_PREV) }
    return result
  }
}
