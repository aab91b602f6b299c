import Blobs

/// Immutable bytes in one allocation, with the blobs of the database that they come from.
struct StoredBytes: @unchecked Sendable {
  private struct Header {
    var count: Int
    var blobs: BlobSource?
  }

  /// A concrete class: creating an instance needs no lookup of a generic type.
  private final class Buffer: ManagedBuffer<Header, UInt8> {}
  private let buffer: ManagedBuffer<Header, UInt8>

  init(copying bytes: RawSpan, blobs: BlobSource? = nil) {
    self = bytes.withUnsafeBytes { StoredBytes(copying: $0, blobs: blobs) }
  }

  init(copying bytes: UnsafeRawBufferPointer, blobs: BlobSource? = nil) {
    buffer = Buffer.create(minimumCapacity: bytes.count) { _ in Header(count: bytes.count, blobs: blobs) }
    buffer.withUnsafeMutablePointerToElements { elements in
      if let source = bytes.baseAddress, bytes.count > 0 {
        UnsafeMutableRawPointer(elements).copyMemory(from: source, byteCount: bytes.count)
      }
    }
  }

  @inline(__always)
  func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
    try buffer.withUnsafeMutablePointers { header, elements in
      try body(UnsafeRawBufferPointer(start: elements, count: header.pointee.count))
    }
  }

  /// The blobs of the database that the bytes come from.
  var blobs: BlobSource? { buffer.header.blobs }
}
