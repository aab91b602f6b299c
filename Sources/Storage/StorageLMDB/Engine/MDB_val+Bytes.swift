import CLMDB

// Conversions between bytes and LMDB's values.

extension MDB_val {
  @inlinable @inline(__always)
  package init(_ bytes: UnsafeRawBufferPointer) {
    self.init(mv_size: bytes.count, mv_data: UnsafeMutableRawPointer(mutating: bytes.baseAddress))
  }
}

extension UnsafeRawBufferPointer {
  @inlinable @inline(__always)
  package init(_ value: MDB_val) { self.init(start: value.mv_data, count: value.mv_size) }

  /// The bytes of a value that LMDB has found, whose pointer is never null.
  @inlinable @inline(__always)
  package init(found value: MDB_val) {
    self.init(start: value.mv_data.unsafelyUnwrapped, count: value.mv_size)
  }
}

extension String {
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    var copy = self
    return try copy.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
  }
}
