import Bytes
import CZlib

/// Reads the raw deflate stream of one direction.
final class Inflater {
  private let stream: UnsafeMutablePointer<z_stream>
  private var output = ByteBuffer(capacity: 16 << 10)
  /// What the sender left out of each frame.
  private static let tail: [UInt8] = [0x00, 0x00, 0xFF, 0xFF]
  /// The buffer is kept between frames up to this size.
  private static let keptBytes = 256 << 10

  init() throws(BLIPError) {
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    let code = inflateInit2_(stream, -15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
    guard code == Z_OK else { throw BLIPError(.outOfMemory, "zlib can't begin to inflate: code \(code)") }
  }

  deinit {
    inflateEnd(stream)
    stream.deallocate()
  }

  /// Inflates the payload of a frame. Throws `tooMuchOutput` before there are more than `limit` bytes in memory.
  func inflate(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(BLIPError) -> [UInt8] {
    output.removeAll(keepingAtMost: Self.keptBytes)
    try add(bytes, limit: limit)
    // The array outlives the call, because it is static.
    try Self.tail.span.bytes.withUnsafeBytes { (tail) throws(BLIPError) in try add(tail, limit: limit) }
    return [UInt8](output.bytes)
  }

  private func add(_ bytes: UnsafeRawBufferPointer, limit: Int) throws(BLIPError) {
    let input = bytes.bindMemory(to: UInt8.self)
    stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
    stream.pointee.avail_in = UInt32(clamping: input.count)
    defer { stream.pointee.next_in = nil }
    while true {
      let room = min(max(4 * bytes.count, 512), limit - output.count + 1)
      output.reserve(room)
      stream.pointee.next_out = output.base + output.count
      stream.pointee.avail_out = UInt32(clamping: room)
      let code = CZlib.inflate(stream, Z_SYNC_FLUSH)
      let written = room - Int(stream.pointee.avail_out)
      output.count += written
      // Z_BUF_ERROR says that there was nothing to do, which isn't an error here.
      guard code == Z_OK || (code == Z_BUF_ERROR && stream.pointee.avail_in == 0) else {
        if code == Z_MEM_ERROR { throw BLIPError(.outOfMemory, "zlib has no memory to inflate") }
        throw BLIPError(
          .badCompression,
          code == Z_STREAM_END ? "the compressed data of a direction ended" : "a payload isn't deflated data")
      }
      guard output.count <= limit else {
        throw BLIPError(
          .tooMuchOutput, "a frame of \(bytes.count) bytes inflates to more than \(limit) bytes")
      }
      if stream.pointee.avail_in == 0, stream.pointee.avail_out > 0 { return }
    }
  }
}
