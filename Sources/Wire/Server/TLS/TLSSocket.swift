import CCrypto
import CSSL
import Glibc

/// The client's socket, as libssl reads and writes it. Only one thread at a time uses it.
///
/// libssl's own access to sockets would send SIGPIPE, and doesn't tell when a socket has nothing more.
final class TLSSocket {
  let descriptor: Int32
  /// Whether nothing can be read until the socket's next event.
  var isReadBlocked = false
  /// Whether nothing can be written until the socket's next event.
  var isWriteBlocked = false
  /// Whether the client has ended its side. Then all has to be read up to the end.
  var isEnding = false
  private var isAtEnd = false

  init(_ descriptor: Int32) { self.descriptor = descriptor }

  /// Lets a session read and write the socket, which must stay as long as the session.
  func attach(to session: OpaquePointer) -> Bool {
    guard let method = Self.method, let bio = BIO_new(method) else { return false }
    BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
    BIO_set_init(bio, 1)
    // The session takes over both references, which are one.
    SSL_set_bio(session, bio, bio)
    return true
  }

  private func read(into target: UnsafeMutableRawPointer, _ count: Int) -> Int {
    while true {
      let received = recv(descriptor, target, count, Int32(MSG_DONTWAIT))
      if received > 0 {
        // Less than there was room for is all there was.
        if received < count, !isEnding { isReadBlocked = true }
        return received
      }
      if received == 0 {
        isAtEnd = true
        return 0
      }
      if errno == EAGAIN { isReadBlocked = true }
      if errno != EINTR { return -1 }
    }
  }

  private func write(_ source: UnsafeRawPointer, _ count: Int) -> Int {
    while true {
      let sent = send(descriptor, source, count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
      if sent >= 0 { return sent }
      if errno == EAGAIN { isWriteBlocked = true }
      if errno != EINTR { return -1 }
    }
  }

  // MARK: What libssl calls

  private static func socket(_ bio: OpaquePointer?) -> TLSSocket? {
    BIO_get_data(bio).map { Unmanaged<TLSSocket>.fromOpaque($0).takeUnretainedValue() }
  }

  /// Made once, and never changed.
  private nonisolated(unsafe) static let method: OpaquePointer? = {
    guard let method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket") else { return nil }
    BIO_meth_set_read(method) { bio, target, count in
      BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
      guard let target, count > 0, let socket = TLSSocket.socket(bio) else { return -1 }
      let received = socket.read(into: target, Int(count))
      if received < 0, errno == EAGAIN { BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY) }
      return Int32(received)
    }
    BIO_meth_set_write(method) { bio, source, count in
      BIO_clear_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY)
      guard let source, count > 0, let socket = TLSSocket.socket(bio) else { return -1 }
      let sent = socket.write(source, Int(count))
      if sent < 0, errno == EAGAIN { BIO_set_flags(bio, BIO_FLAGS_WRITE | BIO_FLAGS_SHOULD_RETRY) }
      return Int32(sent)
    }
    BIO_meth_set_ctrl(method) { bio, command, _, _ in
      switch command {
      case BIO_CTRL_FLUSH: 1
      case BIO_CTRL_EOF: TLSSocket.socket(bio)?.isAtEnd == true ? 1 : 0
      default: 0
      }
    }
    return method
  }()
}
