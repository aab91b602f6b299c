/// A key and a value. They never change, and their addresses stay the same while the record is referenced.
package final class MemoryRecord: @unchecked Sendable {
  /// What the owner of the records knows of this one. The records themselves don't read it.
  package let mark: UInt8
  // The key, followed by the value. Written only by the initializer.
  private let bytes: UnsafeMutableRawBufferPointer
  private let keyCount: Int

  init(key: RawSpan, value: RawSpan, mark: UInt8 = 0) {
    self.mark = mark
    keyCount = key.byteCount
    bytes = .allocate(byteCount: key.byteCount + value.byteCount, alignment: 1)
    key.withUnsafeBytes { bytes.copyMemory(from: $0) }
    value.withUnsafeBytes { UnsafeMutableRawBufferPointer(rebasing: bytes[keyCount...]).copyMemory(from: $0) }
  }

  deinit { bytes.deallocate() }

  /// The bytes of key and value, valid while `body` runs.
  package func withBytes<Result>(_ body: (_ key: RawSpan, _ value: RawSpan) throws -> Result) rethrows
    -> Result
  {
    try withExtendedLifetime(self) {
      try body(
        UnsafeRawBufferPointer(rebasing: bytes[..<keyCount]).bytes,
        UnsafeRawBufferPointer(rebasing: bytes[keyCount...]).bytes)
    }
  }

  /// The size of key and value, in bytes.
  package var byteCount: Int { bytes.count }

  /// Negative, zero or positive if the record's key is less than, equal to or greater than `key`.
  package func compare(to key: RawSpan) -> Int { withBytes { own, _ in own.compare(key) } }
}
