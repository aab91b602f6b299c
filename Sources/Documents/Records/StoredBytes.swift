/// Immutable bytes in one allocation.
struct StoredBytes: @unchecked Sendable {
  /// A concrete class: creating an instance needs no lookup of a generic type.
  private final class Buffer: ManagedBuffer<Int, UInt8> {}
  private let buffer: ManagedBuffer<Int, UInt8>

  init(copying bytes: RawSpan) { self = bytes.withUnsafeBytes { StoredBytes(copying: $0) } }

  init(copying bytes: UnsafeRawBufferPointer) {
    buffer = Buffer.create(minimumCapacity: bytes.count) { _ in bytes.count }
    buffer.withUnsafeMutablePointerToElements { elements in
      if let source = bytes.baseAddress, bytes.count > 0 {
        UnsafeMutableRawPointer(elements).copyMemory(from: source, byteCount: bytes.count)
      }
    }
  }

  @inline(__always)
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try buffer.withUnsafeMutablePointers { count, elements in
      try body(UnsafeRawBufferPointer(start: elements, count: count.pointee))
    }
  }
}
