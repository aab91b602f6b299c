import Transport

#if canImport(Glibc)
  import Glibc
#endif

/// A connected socket without TLS.
package final class SocketStream: ByteStream {
  package let descriptor: CInt
  private let onClose: @Sendable (CInt) -> Void

  /// Takes a connected stream socket. `onClose` gets it when the stream ends, and has to see to its end; without, it is
  /// closed.
  ///
  /// What is written is sent at once (TCP_NODELAY). The socket needn't be nonblocking.
  package init(_ descriptor: CInt, onClose: @escaping @Sendable (CInt) -> Void = { Glibc.close($0) }) {
    self.descriptor = descriptor
    self.onClose = onClose
    // Children of this process don't get it.
    _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    var isOn: CInt = 1
    // Sockets of other families refuse it, and have no delay.
    setsockopt(
      descriptor, CInt(IPPROTO_TCP), TCP_NODELAY, &isOn, socklen_t(MemoryLayout<CInt>.size))
  }

  package func read(into target: UnsafeMutableRawBufferPointer) -> ByteStreamResult {
    while true {
      let count = recv(descriptor, target.baseAddress, target.count, CInt(MSG_DONTWAIT))
      if count > 0 { return .bytes(count) }
      if count == 0 { return .end }
      if errno == EAGAIN || errno == EWOULDBLOCK { return .wouldBlock }
      if errno != EINTR { return .failed(.posix(errno, "reading from the socket")) }
    }
  }

  package func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult {
    while true {
      let flags = CInt(MSG_DONTWAIT | MSG_NOSIGNAL)
      let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, flags)
      if count >= 0 { return .bytes(count) }
      if errno == EAGAIN || errno == EWOULDBLOCK { return .wouldBlock }
      if errno != EINTR { return .failed(.posix(errno, "writing to the socket")) }
    }
  }

  package func endWriting() { shutdown(descriptor, CInt(SHUT_WR)) }

  package func close() { onClose(descriptor) }
}
