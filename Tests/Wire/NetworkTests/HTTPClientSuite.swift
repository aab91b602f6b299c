import Foundation
import Testing
import Transport
import WebSocket

@testable import Network

/// What the suites of the HTTP client share.
protocol HTTPClientSuite {}

extension HTTPClientSuite {
  /// Serves each connection until it ends: each request is read with its body, and answered with what the closure writes.
  func server(_ answer: @escaping @Sendable (RawConnection, String, [UInt8]) -> Bool) throws
    -> RawServer
  {
    try RawServer { connection, _ in
      while true {
        let head = connection.readHead()
        guard head.hasSuffix("\r\n\r\n") else { return }
        let lines = head.lowercased().components(separatedBy: "\r\n")
        let length = lines.first { $0.hasPrefix("content-length:") }
          .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) }
        let body = connection.readBody(length ?? 0)
        guard answer(connection, head, body) else { return }
      }
    }
  }

  func reply(_ status: String, _ body: String = "", _ headers: [String] = []) -> [UInt8] {
    let lines = ["HTTP/1.1 \(status)", "Content-Length: \(body.utf8.count)"] + headers + ["", body]
    return Array(lines.joined(separator: "\r\n").utf8)
  }

  func client(_ change: (inout HTTPClientSettings) -> Void = { _ in }) throws -> HTTPClient {
    var settings = HTTPClientSettings()
    settings.proxy = .none
    change(&settings)
    return try HTTPClient(settings)
  }

  func url(_ server: RawServer, _ path: String = "/db/doc") throws -> WebSocketURL {
    try #require(WebSocketURL("http://127.0.0.1:\(server.port)\(path)"))
  }

  func get(
    _ client: HTTPClient, _ request: HTTPClientRequest, limit: Int = 1 << 20
  ) async -> Result<HTTPClientAnswer, TransportClose> {
    await withCheckedContinuation { continuation in
      client.collect(request, limit: limit) { continuation.resume(returning: $0) }
    }
  }

  func text(_ result: Result<HTTPClientAnswer, TransportClose>) throws -> String {
    let answer = try result.get()
    return "\(answer.status) \(String(decoding: answer.body, as: UTF8.self))"
  }
}

extension Result where Success == HTTPClientAnswer, Failure == TransportClose {
  var failure: TransportClose? { if case .failure(let error) = self { error } else { nil } }
}

extension RawConnection {
  /// Reads so many bytes; fewer if the client ends before.
  func readBody(_ count: Int) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var offset = 0
    while offset < count {
      let read = bytes.withUnsafeMutableBytes {
        recv(descriptor, $0.baseAddress.map { $0 + offset }, count - offset, 0)
      }
      guard read > 0 else { break }
      offset += read
    }
    return Array(bytes[..<offset])
  }
}

/// Gives bytes in pieces.
final class TestSource: HTTPRequestSource, @unchecked Sendable {
  private let bytes: [UInt8]
  private var offset = 0
  let length: UInt64?

  init(_ bytes: [UInt8], knowsLength: Bool) {
    self.bytes = bytes
    length = knowsLength ? UInt64(bytes.count) : nil
  }

  func read(into buffer: UnsafeMutableRawBufferPointer) throws -> Int {
    let count = min(buffer.count, bytes.count - offset, 10_000)
    bytes[offset..<offset + count].withUnsafeBytes { buffer.copyMemory(from: $0) }
    offset += count
    return count
  }

  func rewind() throws { offset = 0 }
}
