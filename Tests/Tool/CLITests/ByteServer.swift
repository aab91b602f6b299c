import Foundation
import Storage

/// A server of a test that answers each request with some bytes, and then ends the connection.
final class ByteServer: Sendable {
  let port: Int
  private let listener: CInt
  private let workers = Workers(maximum: 16)

  /// `answer` gets the first line of the request, and how many requests came before.
  init(_ answer: @escaping @Sendable (_ line: String, _ number: Int) -> String) throws {
    let descriptor = socket(AF_INET, CInt(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let code = withUnsafeMutablePointer(to: &address) { address in
      address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(descriptor, $0, length) | listen(descriptor, 64) | getsockname(descriptor, $0, &length)
      }
    }
    guard descriptor >= 0, code == 0 else { throw POSIXError(.init(rawValue: errno) ?? .EIO) }
    listener = descriptor
    port = Int(UInt16(bigEndian: address.sin_port))
    let number = Lock(0)
    workers.enqueue { [workers] in
      while case let connection = accept(descriptor, nil, nil), connection >= 0 {
        workers.enqueue {
          defer { close(connection) }
          guard let line = Self.read(connection) else { return }
          let before = number.withLock { number in
            number += 1
            return number - 1
          }
          let bytes = Array(answer(line, before).utf8)
          _ = send(connection, bytes, bytes.count, CInt(MSG_NOSIGNAL))
          shutdown(connection, CInt(SHUT_WR))
          // The client ends it, so that nothing is lost.
          var rest = [UInt8](repeating: 0, count: 1024)
          while recv(connection, &rest, rest.count, 0) > 0 {}
        }
      }
      close(descriptor)
    }
  }

  deinit { shutdown(listener, CInt(SHUT_RDWR)) }

  /// Reads a request with its body, and returns its first line.
  private static func read(_ connection: CInt) -> String? {
    var bytes: [UInt8] = []
    var byte: UInt8 = 0
    func take() -> Bool {
      guard recv(connection, &byte, 1, 0) == 1 else { return false }
      bytes.append(byte)
      return true
    }
    while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) { guard take() else { return nil } }
    let lines = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
    let length = lines.first { $0.lowercased().hasPrefix("content-length:") }
      .flatMap { Int($0.dropFirst(15).trimmingCharacters(in: .whitespaces)) }
    for _ in 0..<(length ?? 0) { guard take() else { return nil } }
    return lines[0]
  }

  /// An answer with JSON, after which the connection ends.
  static func json(_ status: Int, _ body: String) -> String {
    "HTTP/1.1 \(status) X\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
  }
}
