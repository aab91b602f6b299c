// A varint is an unsigned integer in base 128, its lowest digit first. The high bit of a byte means that more
// follow. Ten bytes hold 64 bits. Zeros at the end are accepted (80 00 is 0) and never written.

/// Writes and reads varints.
@usableFromInline
package enum Varint {
  /// The number of bytes that the greatest number takes.
  @inlinable @inline(__always)
  package static var maximumBytes: Int { 10 }

  /// Writes a varint and returns its length. `target` has room for `maximumBytes`.
  @inlinable @inline(__always)
  package static func write(_ value: UInt64, to target: UnsafeMutablePointer<UInt8>) -> Int {
    var rest = value
    var length = 0
    while rest >= 0x80 {
      target[length] = UInt8(truncatingIfNeeded: rest) | 0x80
      length &+= 1
      rest >>= 7
    }
    target[length] = UInt8(truncatingIfNeeded: rest)
    return length &+ 1
  }

  /// Reads the varint at `start`, which ends before `end` and is at most `longest` bytes long. Nil if there is
  /// none, or if it has more than 64 bits. The bytes have to live until the call returns.
  @inlinable
  package static func read(
    _ start: UnsafePointer<UInt8>, before end: UnsafePointer<UInt8>, atMost longest: Int = 10
  ) -> (value: UInt64, length: Int)? {
    var value: UInt64 = 0
    var index = 0
    let limit = min(longest, end - start)
    while index < limit {
      let byte = start[index]
      if index == 9, byte > 1 { return nil }
      value |= UInt64(byte & 0x7F) &<< UInt64(truncatingIfNeeded: 7 &* index)
      index &+= 1
      if byte < 0x80 { return (value, index) }
    }
    return nil
  }
}

extension UnsafeRawBufferPointer {
  /// Reads a varint and moves `offset` (0...`count`) behind it. If there is none, the result is nil and `offset`
  /// stays.
  package func varint(at offset: inout Int) -> UInt64? {
    guard let start = baseAddress?.assumingMemoryBound(to: UInt8.self), offset >= 0, offset < count,
      let (value, length) = Varint.read(start + offset, before: start + count)
    else { return nil }
    offset += length
    return value
  }

  /// Removes a varint from the front and returns it. If there is none, the result is nil and nothing is removed.
  package mutating func takeVarint() -> UInt64? {
    var offset = 0
    guard let value = varint(at: &offset) else { return nil }
    self = UnsafeRawBufferPointer(rebasing: self[offset...])
    return value
  }
}

extension [UInt8] {
  /// Appends a varint.
  package mutating func append(varint value: UInt64) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: Varint.maximumBytes) { buffer in
      guard let start = buffer.baseAddress else { return }
      append(contentsOf: UnsafeBufferPointer(start: start, count: Varint.write(value, to: start)))
    }
  }

  /// Reads a varint and moves `offset` (0...`count`) behind it. If there is none, the result is nil and `offset`
  /// stays.
  package func varint(at offset: inout Int) -> UInt64? { withUnsafeBytes { $0.varint(at: &offset) } }
}
