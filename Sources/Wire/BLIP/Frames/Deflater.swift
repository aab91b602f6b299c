import Bytes
import CZlib

/// The raw deflate stream of one direction.
///
/// All compressed frames of a direction are one stream, so a frame refers to text of the frames before it. Each ends
/// with a sync flush, whose last four bytes, 00 00 FF FF, are left out.
final class Deflater {
  private let stream: UnsafeMutablePointer<z_stream>
  private static let windowBits: Int32 = -15
  /// Lazy matching as at level 4, with longer searches. On small documents this takes two thirds of the time of level 6, for 4 %
  /// more bytes.
  private static let level: Int32 = 4
  private static let search: (good: Int32, lazy: Int32, nice: Int32, chain: Int32) = (4, 16, 64, 24)

  /// The most bytes by which compressed bytes are more than what they hold. Incompressible bytes are stored, which takes
  /// 5 bytes for each 16 KiB and a byte to end the last block; the flush adds 1 byte when 4 are left out.
  static let mostExtraBytes = 32

  init() throws(BLIPError) {
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    let code = deflateInit2_(
      stream, Self.level, Z_DEFLATED, Self.windowBits, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    guard code == Z_OK else { throw BLIPError(.outOfMemory, "zlib can't begin to compress: code \(code)") }
    deflateTune(stream, Self.search.good, Self.search.lazy, Self.search.nice, Self.search.chain)
  }

  deinit {
    // After a failed init the stream has no state, and this does nothing.
    deflateEnd(stream)
    stream.deallocate()
  }

  /// Compresses bytes, appends what comes out, and ends the frame. `bytes` isn't empty.
  func compress(_ bytes: UnsafeRawBufferPointer, into output: inout ByteBuffer) throws(BLIPError) {
    let input = bytes.bindMemory(to: UInt8.self)
    stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
    stream.pointee.avail_in = UInt32(clamping: input.count)
    defer { stream.pointee.next_in = nil }
    repeat {
      let room = bytes.count + 64
      output.reserve(room)
      stream.pointee.next_out = output.base + output.count
      stream.pointee.avail_out = UInt32(clamping: room)
      let code = deflate(stream, Z_SYNC_FLUSH)
      output.count += room - Int(stream.pointee.avail_out)
      guard code == Z_OK || code == Z_BUF_ERROR else {
        throw BLIPError(.outOfMemory, "zlib can't compress: code \(code)")
      }
    } while stream.pointee.avail_out == 0
    guard output.count >= 4,
      output.bytes.loadUnaligned(fromByteOffset: output.count - 4, as: UInt32.self)
        == 0xFFFF_0000.littleEndian
    else { throw BLIPError(.outOfMemory, "zlib didn't flush") }
    output.truncate(to: output.count - 4)
  }
}
