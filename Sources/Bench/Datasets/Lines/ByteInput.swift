import CZlib

#if canImport(Glibc)
  import Glibc
#endif

/// Reads bytes from a file descriptor, and decompresses gzip.
///
/// Gzip (RFC 1952) is detected by its first two bytes, `1F 8B`. Several members in a row are one stream, as
/// `cat a.gz b.gz` makes them. Zero bytes after the last member are padding and are skipped. Anything else
/// there is an error. Memory is two fixed buffers, whatever the size of the file.
final class ByteInput {
  /// The number of compressed bytes per read.
  private static let bufferBytes = 128 << 10

  private let descriptor: Int32
  private let closesDescriptor: Bool
  private let path: String?
  private let buffer: UnsafeMutablePointer<UInt8>
  private var available = 0
  private var position = 0
  private var isAtEnd = false
  private var format = Format.unknown
  private let stream: UnsafeMutablePointer<z_stream>

  private enum Format {
    case unknown
    case plain
    /// Inside a member, or before the first one.
    case gzip
    /// After the end of a member.
    case gzipBetweenMembers
  }

  /// Opens `path`, or standard input if it is `-`.
  convenience init(path: String) throws {
    if path == "-" {
      self.init(descriptor: STDIN_FILENO, closesDescriptor: false, path: "standard input")
      return
    }
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw DatasetError(.ioError, "can't be opened: \(String(cString: strerror(errno)))", path: path)
    }
    posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
    self.init(descriptor: descriptor, closesDescriptor: true, path: path)
  }

  init(descriptor: Int32, closesDescriptor: Bool, path: String?) {
    self.descriptor = descriptor
    self.closesDescriptor = closesDescriptor
    self.path = path
    buffer = .allocate(capacity: ByteInput.bufferBytes)
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
  }

  deinit {
    if format == .gzip || format == .gzipBetweenMembers { inflateEnd(stream) }
    stream.deallocate()
    buffer.deallocate()
    if closesDescriptor { close(descriptor) }
  }

  /// Reads into `target`, which may be filled only in part. Returns the number of bytes; 0 at the end of the
  /// data.
  func read(into target: UnsafeMutableRawBufferPointer) throws -> Int {
    while true {
      switch format {
      case .unknown:
        try recogniseFormat()
      case .plain:
        if position == available, try !refill() { return 0 }
        let count = min(target.count, available - position)
        target.copyMemory(from: UnsafeRawBufferPointer(start: buffer + position, count: count))
        position += count
        return count
      case .gzip:
        let count = try inflateSome(into: target)
        if count > 0 { return count }
      case .gzipBetweenMembers:
        if try !beginNextMember() { return 0 }
      }
    }
  }

  /// Fills the empty buffer. Returns false at the end of the file.
  private func refill() throws -> Bool {
    if isAtEnd { return false }
    position = 0
    available = 0
    return try readMore()
  }

  private func readMore() throws -> Bool {
    while true {
      let count = Glibc.read(descriptor, buffer + available, ByteInput.bufferBytes - available)
      if count > 0 {
        available += count
        return true
      }
      if count == 0 {
        isAtEnd = true
        return false
      }
      if errno == EINTR { continue }
      throw DatasetError(.ioError, "can't be read: \(String(cString: strerror(errno)))", path: path)
    }
  }

  private func recogniseFormat() throws {
    while available < 2, try readMore() {}
    guard available >= 2, buffer[0] == 0x1F, buffer[1] == 0x8B else {
      format = .plain
      return
    }
    // 16 selects the gzip format, and 15 the largest window.
    guard inflateInit2_(stream, 16 + 15, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      throw DatasetError(.ioError, "zlib \(String(cString: zlibVersion())) can't be initialized", path: path)
    }
    format = .gzip
  }

  private func inflateSome(into target: UnsafeMutableRawBufferPointer) throws -> Int {
    let stream = stream
    stream.pointee.next_out = target.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_out = UInt32(clamping: target.count)
    let wanted = Int(stream.pointee.avail_out)
    while true {
      if position == available, try !refill() {
        throw DatasetError(.truncated, "the gzip data is cut off", path: path)
      }
      stream.pointee.next_in = buffer + position
      stream.pointee.avail_in = UInt32(available - position)
      let status = inflate(stream, Z_NO_FLUSH)
      position = available - Int(stream.pointee.avail_in)
      let count = wanted - Int(stream.pointee.avail_out)
      switch status {
      case Z_STREAM_END:
        format = .gzipBetweenMembers
        return count
      case Z_OK, Z_BUF_ERROR:
        if count > 0 { return count }
      default:
        let reason = stream.pointee.msg.map { String(cString: $0) } ?? "zlib error \(status)"
        throw DatasetError(.corrupt, "the gzip data is damaged: \(reason)", path: path)
      }
    }
  }

  /// Moves to the next member. Returns false if there is none.
  private func beginNextMember() throws -> Bool {
    while true {
      if position == available, try !refill() { return false }
      if buffer[position] == 0 {
        position += 1
        continue
      }
      guard buffer[position] == 0x1F else {
        throw DatasetError(.corrupt, "unexpected bytes after the end of the gzip data", path: path)
      }
      inflateReset(stream)
      format = .gzip
      return true
    }
  }
}
