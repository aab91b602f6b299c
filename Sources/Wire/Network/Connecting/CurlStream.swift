import CCurl
import Transport
import WebSocket

#if canImport(Glibc)
  import Glibc
#endif

/// The bytes of a connection that libcurl has made and goes on to encrypt.
final class CurlStream: ByteStream, @unchecked Sendable {
  /// What is encrypted at a time: a record of TLS.
  private static let recordBytes = 16 << 10

  let descriptor: CInt
  private var connection: CurlConnection?
  /// What is being written. OpenSSL, told to wait, has to get the same bytes at the same address again.
  private let record = UnsafeMutableRawBufferPointer.allocate(byteCount: recordBytes, alignment: 16)
  private var recordCount = 0

  init(_ connection: CurlConnection) {
    descriptor = connection.descriptor
    self.connection = connection
  }

  deinit { record.deallocate() }

  func read(into target: UnsafeMutableRawBufferPointer) -> ByteStreamResult {
    guard let connection else { return .end }
    let (code, count) = connection.read(into: target)
    switch code {
    case CURLE_OK: return count > 0 ? .bytes(count) : .end
    case CURLE_AGAIN: return .wouldBlock
    // TLS that ends without saying so is an end: the Close frame of WebSocket says what is complete.
    default: return connection.lost(code).map { .failed($0) } ?? .end
    }
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult {
    guard let connection else { return .failed(.posix(EPIPE, "writing")) }
    if recordCount == 0 {
      recordCount = min(bytes.count, Self.recordBytes)
      record.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<recordCount]))
    }
    let (code, count) = connection.write(UnsafeRawBufferPointer(rebasing: record[..<recordCount]))
    if code == CURLE_AGAIN || code == CURLE_OK && count == 0 { return .wouldBlock }
    recordCount = 0
    guard code == CURLE_OK else { return .failed(connection.lost(code) ?? .posix(EPIPE, "writing")) }
    return .bytes(count)
  }

  func endWriting() { shutdown(descriptor, CInt(SHUT_WR)) }

  func close() { connection = nil }
}
