import CZlib
import Views

/// Decodes a gzip stream (RFC 1952) that arrives in pieces. Used on one thread at a time.
final class GzipDecoder {
  /// The bytes aren't gzip, or something else follows.
  struct Malformed: Error {}

  private let stream: UnsafeMutablePointer<z_stream>
  private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  /// Whether a member of the stream has ended. Others may follow (RFC 1952, 2.2), as where files were put together.
  private(set) var isAtEnd = false

  init() throws {
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    // 15 bits of window; 16 more mean gzip.
    guard inflateInit2_(stream, 15 + 16, zlibVersion(), Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw CouchDBError(500, "internal_server_error", "there isn't enough memory to decode gzip")
    }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
    output.deallocate()
  }

  /// Decodes what begins at `consumed`, which it moves. Returns up to 64 KiB, which are valid until the next call; none if more
  /// bytes are needed. Throws `Malformed`.
  func step(_ bytes: UnsafeRawBufferPointer, _ consumed: inout Int) throws(Malformed)
    -> UnsafeRawBufferPointer
  {
    while consumed < bytes.count {
      if isAtEnd {
        guard inflateReset(stream) == Z_OK else { throw Malformed() }
        isAtEnd = false
      }
      let rest = UnsafeRawBufferPointer(rebasing: bytes[consumed...])
      // zlib's limit is that of 32 bits.
      let count = UInt32(clamping: rest.count)
      stream.pointee.next_in = UnsafeMutablePointer(mutating: rest.bindMemory(to: UInt8.self).baseAddress)
      stream.pointee.avail_in = count
      stream.pointee.next_out = output.bindMemory(to: UInt8.self).baseAddress
      stream.pointee.avail_out = UInt32(output.count)
      let status = inflate(stream, Z_NO_FLUSH)
      stream.pointee.next_in = nil
      let taken = Int(count - stream.pointee.avail_in)
      consumed += taken
      guard status == Z_OK || status == Z_STREAM_END else { throw Malformed() }
      isAtEnd = status == Z_STREAM_END
      let produced = output.count - Int(stream.pointee.avail_out)
      if produced > 0 { return UnsafeRawBufferPointer(rebasing: output[..<produced]) }
    }
    return UnsafeRawBufferPointer(start: nil, count: 0)
  }

  /// Calls `body` with what the next bytes decode to, in pieces of up to 64 KiB. Throws `Malformed`.
  func decode(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    var consumed = 0
    while case let piece = try step(bytes, &consumed), !piece.isEmpty { try body(piece) }
  }
}
