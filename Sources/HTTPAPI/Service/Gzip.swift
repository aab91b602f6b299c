import CZlib
import HTTP
import Storage

/// Compresses a stream of bytes with gzip (RFC 1952).
final class GzipEncoder {
  private var stream = z_stream()
  private var isOpen = false

  /// Nil if there is no memory for it.
  init?() {
    // 15 bits of window; 16 more mean gzip. Level 3: most of the gain for a third of the time.
    isOpen =
      deflateInit2_(
        &stream, 3, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY, zlibVersion(),
        Int32(MemoryLayout<z_stream>.size))
      == Z_OK
    if !isOpen { return nil }
  }

  deinit { if isOpen { deflateEnd(&stream) } }

  /// The compressed bytes that are ready after `bytes` were added. `isLast` ends the stream.
  func encode(_ bytes: [UInt8], isLast: Bool) -> [UInt8] {
    var output: [UInt8] = []
    var bytes = bytes
    var piece = [UInt8](repeating: 0, count: 16 << 10)
    bytes.withUnsafeMutableBufferPointer { input in
      stream.next_in = input.baseAddress
      stream.avail_in = UInt32(input.count)
      var status = Z_OK
      repeat {
        let produced = piece.withUnsafeMutableBufferPointer { target in
          stream.next_out = target.baseAddress
          stream.avail_out = UInt32(target.count)
          status = deflate(&stream, isLast ? Z_FINISH : Z_NO_FLUSH)
          return target.count - Int(stream.avail_out)
        }
        output += piece[..<produced]
      } while status == Z_OK && stream.avail_out == 0 || isLast && status == Z_OK
      stream.next_in = nil
    }
    return output
  }
}

/// The body of a request that comes compressed with gzip, decompressed as it is read. Bytes that aren't gzip end it with `clientGone`;
/// the reader's limit bounds what a small body may grow to.
final class GunzippedBody: HTTPBodySource, @unchecked Sendable {
  /// What comes out of one step, in bytes at most.
  private static let pieceBytes = 64 << 10

  private let source: any HTTPBodySource
  // Only the one who reads uses these.
  private var stream = z_stream()
  private var input: [UInt8] = []
  private var consumed = 0
  private var hasEnded = false

  var length: Int? { nil }

  /// Nil if there is no memory for it.
  init?(_ source: any HTTPBodySource) {
    self.source = source
    guard inflateInit2_(&stream, 15 + 16, zlibVersion(), Int32(MemoryLayout<z_stream>.size)) == Z_OK else {
      return nil
    }
  }

  deinit { inflateEnd(&stream) }

  func read() throws(HTTPBodyError) -> [UInt8]? {
    while true {
      if let piece = try step() { return piece }
      guard let next = try source.read() else {
        if hasEnded { return nil }
        throw .malformed
      }
      input = next
      consumed = 0
    }
  }

  func receive(_ completion: @escaping @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void) {
    do throws(HTTPBodyError) {
      if let piece = try step() { return completion(.success(piece)) }
    } catch { return completion(.failure(error)) }
    source.receive { [self] result in
      switch result {
      case .failure(let error): completion(.failure(error))
      case .success(nil): completion(hasEnded ? .success(nil) : .failure(.malformed))
      case .success(let next?):
        input = next
        consumed = 0
        receive(completion)
      }
    }
  }

  /// Some decompressed bytes; nil if more input is needed.
  private func step() throws(HTTPBodyError) -> [UInt8]? {
    guard consumed < input.count else { return nil }
    guard !hasEnded else { throw .malformed }
    var piece = [UInt8](repeating: 0, count: Self.pieceBytes)
    var status = Z_OK
    let produced = input.withUnsafeMutableBufferPointer { input in
      piece.withUnsafeMutableBufferPointer { target in
        stream.next_in = input.baseAddress.map { $0 + consumed }
        stream.avail_in = UInt32(input.count - consumed)
        stream.next_out = target.baseAddress
        stream.avail_out = UInt32(target.count)
        status = inflate(&stream, Z_NO_FLUSH)
        consumed = input.count - Int(stream.avail_in)
        stream.next_in = nil
        return target.count - Int(stream.avail_out)
      }
    }
    switch status {
    case Z_OK, Z_BUF_ERROR: break
    case Z_STREAM_END: hasEnded = true
    default: throw .malformed
    }
    guard produced > 0 else { return nil }
    piece.removeLast(piece.count - produced)
    return piece
  }
}
