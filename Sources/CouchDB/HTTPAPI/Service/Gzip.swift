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

/// The body of a request that comes compressed with gzip, decompressed as it is read. Bytes that aren't gzip end it with `malformed`;
/// the reader's limit bounds what a small body may grow to.
final class GunzippedBody: HTTPBodySource, @unchecked Sendable {
  private let source: any HTTPBodySource
  // Only the one who reads uses these.
  private let decoder: GzipDecoder
  private var input: [UInt8] = []
  private var consumed = 0

  var length: Int? { nil }

  /// Throws 500 if there is no memory for it.
  init(_ source: any HTTPBodySource) throws {
    self.source = source
    decoder = try GzipDecoder()
  }

  func read() throws(HTTPBodyError) -> [UInt8]? {
    while true {
      let piece = try step()
      if !piece.isEmpty { return piece }
      guard let next = try source.read() else { return try end() }
      take(next)
    }
  }

  func receive(_ completion: @escaping @Sendable (Result<[UInt8]?, HTTPBodyError>) -> Void) {
    do throws(HTTPBodyError) {
      let piece = try step()
      if !piece.isEmpty { return completion(.success(piece)) }
    } catch { return completion(.failure(error)) }
    source.receive { [self] result in
      switch result {
      case .failure(let error): completion(.failure(error))
      case .success(nil): completion(Result { () throws(HTTPBodyError) in try end() })
      case .success(let next?):
        take(next)
        receive(completion)
      }
    }
  }

  private func take(_ next: [UInt8]) { (input, consumed) = (next, 0) }

  private func end() throws(HTTPBodyError) -> [UInt8]? {
    guard decoder.isAtEnd else { throw .malformed }
    return nil
  }

  /// Some decompressed bytes; none if more input is needed.
  private func step() throws(HTTPBodyError) -> [UInt8] {
    do { return try input.withUnsafeBytes { [UInt8](try decoder.step($0, &consumed)) } } catch {
      throw .malformed
    }
  }
}
