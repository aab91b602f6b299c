import Glibc

extension HTTPAnswer {
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
