import CZlib

/// Short texts as gzip.
enum Gzip {
  struct Failure: Error {}

  static func encoded(_ bytes: [UInt8]) throws -> [UInt8] {
    var stream = z_stream()
    guard
      deflateInit2_(&stream, 6, Z_DEFLATED, 15 + 16, 8, 0, zlibVersion(), Int32(MemoryLayout<z_stream>.size))
        == Z_OK
    else { throw Failure() }
    defer { deflateEnd(&stream) }
    return try run(&stream, bytes, limit: bytes.count + 100) { deflate($0, Z_FINISH) }
  }

  static func decoded(_ bytes: [UInt8]) throws -> [UInt8] {
    var stream = z_stream()
    guard inflateInit2_(&stream, 15 + 16, zlibVersion(), Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw Failure()
    }
    defer { inflateEnd(&stream) }
    return try run(&stream, bytes, limit: 1 << 20) { inflate($0, Z_FINISH) }
  }

  private static func run(
    _ stream: inout z_stream, _ bytes: [UInt8], limit: Int, _ step: (UnsafeMutablePointer<z_stream>) -> Int32
  ) throws -> [UInt8] {
    var (input, output) = (bytes, [UInt8](repeating: 0, count: limit))
    let status = input.withUnsafeMutableBufferPointer { input in
      output.withUnsafeMutableBufferPointer { output in
        stream.next_in = input.baseAddress
        stream.avail_in = UInt32(input.count)
        stream.next_out = output.baseAddress
        stream.avail_out = UInt32(output.count)
        return step(&stream)
      }
    }
    guard status == Z_STREAM_END else { throw Failure() }
    return Array(output.prefix(Int(stream.total_out)))
  }
}
