import CZlib
import Views

/// Decodes a gzip stream (RFC 1952) that arrives in pieces. Used on one thread at a time.
final class GzipDecoder {
  /// The bytes aren't gzip, or the stream ends early.
  struct Malformed: Error {}

  private let stream: UnsafeMutablePointer<z_stream>
  private let output = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 << 10, alignment: 16)
  /// Whether the stream has ended.
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

  /// Calls `body` with what the next bytes decode to, in pieces of up to 64 KiB. Throws `Malformed`.
  func decode(_ bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) throws -> Void) throws {
    guard !bytes.isEmpty else { return }
    guard !isAtEnd else { throw Malformed() }
    stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.bindMemory(to: UInt8.self).baseAddress)
    stream.pointee.avail_in = UInt32(bytes.count)
    defer { stream.pointee.next_in = nil }
    repeat {
      stream.pointee.next_out = output.bindMemory(to: UInt8.self).baseAddress
      stream.pointee.avail_out = UInt32(output.count)
      let status = inflate(stream, Z_NO_FLUSH)
      guard status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR else { throw Malformed() }
      let count = output.count - Int(stream.pointee.avail_out)
      if count > 0 { try body(UnsafeRawBufferPointer(rebasing: output[..<count])) }
      if status == Z_STREAM_END {
        isAtEnd = true
        guard stream.pointee.avail_in == 0 else { throw Malformed() }
        return
      }
    } while stream.pointee.avail_out == 0
  }
}
