import CZlib

#if canImport(Glibc)
  import Glibc
#endif

/// Writes bytes to a file or descriptor through a fixed buffer, plain or compressed as one gzip member (RFC
/// 1952).
///
/// The gzip header has no name and no time, so equal bytes give equal files. Not `Sendable`.
package final class ByteWriter {
  /// How bytes are compressed.
  package enum Compression: Sendable {
    case none
    /// The level of zlib, 1 (fast) to 9 (small).
    case gzip(level: Int32 = 6)
  }

  private static let bufferBytes = 256 << 10

  /// The number of bytes passed to `write` so far.
  package private(set) var byteCount = 0

  private let descriptor: Int32
  private let path: String
  private let closesDescriptor: Bool
  private let buffer: UnsafeMutablePointer<UInt8>
  private var used = 0
  private var stream: UnsafeMutablePointer<z_stream>?
  private var isOpen = true

  /// Creates or truncates the file at `path`; `-` is standard output. If `compression` is nil, paths that end
  /// with `.gz` are compressed with gzip.
  package convenience init(path: String, compression: Compression? = nil) throws {
    let compression = compression ?? (path.hasSuffix(".gz") ? .gzip() : .none)
    if path == "-" {
      try self.init(
        descriptor: STDOUT_FILENO, closesDescriptor: false, path: "standard output", compression)
      return
    }
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else {
      throw DatasetError(.ioError, "can't be written: \(String(cString: strerror(errno)))", path: path)
    }
    try self.init(descriptor: descriptor, closesDescriptor: true, path: path, compression)
  }

  /// Writes to an open descriptor. The caller still owns it.
  package convenience init(descriptor: Int32, name: String, compression: Compression = .none) throws {
    try self.init(descriptor: descriptor, closesDescriptor: false, path: name, compression)
  }

  private init(
    descriptor: Int32, closesDescriptor: Bool, path: String, _ compression: Compression
  ) throws {
    self.descriptor = descriptor
    self.closesDescriptor = closesDescriptor
    self.path = path
    buffer = .allocate(capacity: ByteWriter.bufferBytes)
    guard case .gzip(let level) = compression else { return }
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    // 16 selects the gzip format, 15 is the largest window, and 8 is the default memory level.
    let status = deflateInit2_(
      stream, level, Z_DEFLATED, 16 + 15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
      Int32(MemoryLayout<z_stream>.size))
    guard status == Z_OK else {
      stream.deallocate()
      throw DatasetError(.invalidArgument, "zlib can't be initialized for gzip at level \(level)", path: path)
    }
    self.stream = stream
  }

  deinit {
    if let stream {
      deflateEnd(stream)
      stream.deallocate()
    }
    buffer.deallocate()
    if closesDescriptor, isOpen { close(descriptor) }
  }

  /// Writes `bytes`. They may still be in the buffer when this returns.
  package func write(_ bytes: UnsafeRawBufferPointer) throws {
    byteCount += bytes.count
    if stream != nil { return try deflateAll(bytes, Z_NO_FLUSH) }
    if bytes.count > ByteWriter.bufferBytes - used { try flushBuffer() }
    if bytes.count > ByteWriter.bufferBytes { return try writeOut(bytes) }
    UnsafeMutableRawPointer(buffer + used).copyMemory(
      from: bytes.baseAddress ?? UnsafeRawPointer(buffer), byteCount: bytes.count)
    used += bytes.count
  }

  /// Writes a line: `bytes` and a newline.
  package func writeLine(_ bytes: UnsafeRawBufferPointer) throws {
    try write(bytes)
    try withUnsafeBytes(of: 0x0A as UInt8) { try write($0) }
  }

  /// Ends the gzip member, writes the buffer, and closes the file if this writer opened it. Without this call
  /// the output is incomplete. A second call does nothing.
  package func finish() throws {
    guard isOpen else { return }
    if stream != nil { try deflateAll(UnsafeRawBufferPointer(start: nil, count: 0), Z_FINISH) }
    try flushBuffer()
    isOpen = false
    if closesDescriptor, close(descriptor) != 0 {
      throw DatasetError(.ioError, "can't be written: \(String(cString: strerror(errno)))", path: path)
    }
  }

  private func deflateAll(_ bytes: UnsafeRawBufferPointer, _ flush: Int32) throws {
    guard let stream else { return }
    var rest = bytes
    repeat {
      let piece = min(rest.count, 1 << 30)
      let isLast = piece == rest.count
      stream.pointee.next_in = UnsafeMutablePointer(
        mutating: rest.baseAddress?.assumingMemoryBound(to: UInt8.self))
      stream.pointee.avail_in = UInt32(piece)
      while true {
        stream.pointee.next_out = buffer + used
        stream.pointee.avail_out = UInt32(ByteWriter.bufferBytes - used)
        let status = deflate(stream, isLast ? flush : Z_NO_FLUSH)
        used = ByteWriter.bufferBytes - Int(stream.pointee.avail_out)
        if used == ByteWriter.bufferBytes { try flushBuffer() }
        if status == Z_STREAM_END { break }
        if flush == Z_NO_FLUSH || !isLast, stream.pointee.avail_in == 0 { break }
      }
      rest = UnsafeRawBufferPointer(rebasing: rest[piece...])
    } while !rest.isEmpty
  }

  private func flushBuffer() throws {
    try writeOut(UnsafeRawBufferPointer(start: buffer, count: used))
    used = 0
  }

  private func writeOut(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = bytes
    while !rest.isEmpty {
      let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
      if count >= 0 {
        rest = UnsafeRawBufferPointer(rebasing: rest[count...])
      } else if errno != EINTR {
        throw DatasetError(.ioError, "can't be written: \(String(cString: strerror(errno)))", path: path)
      }
    }
  }
}
