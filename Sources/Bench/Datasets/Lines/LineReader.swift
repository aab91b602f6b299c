#if canImport(Glibc)
  import Glibc
#endif

/// Reads the lines of a file or stream, gzip or plain.
///
/// Lines end with LF or CRLF, which isn't part of the line. The last line may lack it. Lines of only spaces
/// and tabs are skipped, and so is a byte order mark at the start. The buffer grows only to hold the longest
/// line, not with the file.
///
/// Not `Sendable`: use it from one thread at a time.
package final class LineReader {
  /// The default limit of a line's length. Documents can't be longer than the engines' largest value.
  package static let defaultMaximumLineBytes = 1_000_000_000

  /// The number of the line that `next()` last returned, from 1. Blank lines count.
  package private(set) var lineNumber = 0

  private let input: ByteInput
  private let path: String?
  private let maximumLineBytes: Int
  private var buffer: UnsafeMutableRawBufferPointer
  /// The bytes `buffer[start..<end]` haven't been returned yet.
  private var start = 0
  private var end = 0
  private var isAtEnd = false

  /// Opens the file at `path`, or standard input if it is `-`.
  package convenience init(path: String, maximumLineBytes: Int = defaultMaximumLineBytes) throws {
    self.init(
      input: try ByteInput(path: path), path: path == "-" ? "standard input" : path,
      maximumLineBytes: maximumLineBytes, bufferBytes: 256 << 10)
  }

  /// Reads an open descriptor. The caller still owns it.
  package convenience init(
    descriptor: Int32, name: String? = nil, maximumLineBytes: Int = defaultMaximumLineBytes
  ) {
    self.init(
      input: ByteInput(descriptor: descriptor, closesDescriptor: false, path: name), path: name,
      maximumLineBytes: maximumLineBytes, bufferBytes: 256 << 10)
  }

  init(input: ByteInput, path: String?, maximumLineBytes: Int, bufferBytes: Int) {
    self.input = input
    self.path = path
    self.maximumLineBytes = maximumLineBytes
    buffer = .allocate(byteCount: bufferBytes, alignment: 16)
  }

  deinit { buffer.deallocate() }

  /// Returns the next line, or nil after the last one. The caller may read and change its bytes until the
  /// next call. Throws `DatasetError` with the number of the line that couldn't be read.
  package func next() throws -> UnsafeMutableRawBufferPointer? {
    while let line = try nextWithBlanks() {
      if !LineReader.isBlank(line) { return line }
    }
    return nil
  }

  private func nextWithBlanks() throws -> UnsafeMutableRawBufferPointer? {
    var searched = start
    while true {
      if searched < end, let base = buffer.baseAddress,
        let found = memchr(base + searched, 0x0A, end - searched)
      {
        let lineEnd = UnsafeMutableRawPointer(found) - base
        let line = try take(start..<lineEnd)
        start = lineEnd + 1
        return line
      }
      searched = end
      if isAtEnd {
        guard start < end else { return nil }
        let line = try take(start..<end)
        start = end
        return line
      }
      if end == buffer.count { searched -= try makeRoom() }
      do {
        let count = try input.read(into: UnsafeMutableRawBufferPointer(rebasing: buffer[end...]))
        isAtEnd = count == 0
        end += count
      } catch let error as DatasetError {
        throw DatasetError(error.code, error.message, path: error.path ?? path, line: lineNumber + 1)
      }
    }
  }

  /// Moves the remaining bytes to the front, or enlarges a buffer that is more than half full. Returns the
  /// distance that they moved.
  private func makeRoom() throws -> Int {
    let count = end - start
    if count > maximumLineBytes { throw tooLong() }
    let moved = start
    if count <= buffer.count / 2, let base = buffer.baseAddress {
      memmove(base, base + start, count)
    } else {
      let larger = UnsafeMutableRawBufferPointer.allocate(byteCount: buffer.count * 2, alignment: 16)
      larger.copyMemory(from: UnsafeRawBufferPointer(rebasing: buffer[start..<end]))
      buffer.deallocate()
      buffer = larger
    }
    start = 0
    end = count
    return moved
  }

  private func tooLong() -> DatasetError {
    DatasetError(
      .lineTooLong, "the line is longer than \(maximumLineBytes) bytes", path: path, line: lineNumber + 1)
  }

  private func take(_ range: Range<Int>) throws -> UnsafeMutableRawBufferPointer {
    if range.count > maximumLineBytes { throw tooLong() }
    lineNumber += 1
    var range = range
    if lineNumber == 1, range.count >= 3, buffer[range.lowerBound] == 0xEF,
      buffer[range.lowerBound + 1] == 0xBB, buffer[range.lowerBound + 2] == 0xBF
    {
      range = range.lowerBound + 3..<range.upperBound
    }
    if let last = range.last, buffer[last] == 0x0D { range = range.lowerBound..<last }
    return UnsafeMutableRawBufferPointer(rebasing: buffer[range])
  }

  private static func isBlank(_ line: UnsafeMutableRawBufferPointer) -> Bool {
    line.allSatisfy { $0 == 0x20 || $0 == 0x09 }
  }
}
