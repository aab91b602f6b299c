import Glibc
import HTTP

extension HTTPAnswer {
  /// All of an answer of bytes, for a connection that the library doesn't serve and that is closed behind it.
  func whole(reason: String) -> [UInt8] {
    guard case .bytes(let body) = body else { return [] }
    var head = "HTTP/1.1 \(status) \(reason)\r\nConnection: close\r\nContent-Length: \(body.count)\r\n"
    for header in headers where !header.value.utf8.contains(where: { $0 < 0x20 }) {
      head += "\(header.name): \(header.value)\r\n"
    }
    return Array(head.utf8) + Array("\r\n".utf8) + body
  }

  /// Sends an answer of bytes through a socket that the library won't use any more. Doesn't wait: what the kernel has no room for is left
  /// out. Returns the number of bytes.
  func sendWhole(to descriptor: Int32, reason: String) -> Int {
    let bytes = whole(reason: reason)
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        send(descriptor, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      sent += count
    }
    return sent
  }
}
