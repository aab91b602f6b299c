import CCrypto
import CSSL
import Glibc

/// Both directions of an open connection. Each call moves one piece, and returns whether it may do more at once.
extension TLSConnection {
  private static let flags = Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL)

  // MARK: From the client to the library

  func receive() -> Bool {
    guard phase == .open, !libraryHasClosed, !hasHandedOnEnd else { return false }
    if !received.isEmpty {
      guard mayFill else { return false }
      received.offer { fill($0) }
      guard received.isEmpty else { return false }
    }
    if clientHasEnded {
      shutdown(pair, Int32(SHUT_WR))
      hasHandedOnEnd = true
      return false
    }
    guard mayRead else { return false }
    let count = decrypt(into: lane.buffer)
    if count > 0, phase == .open {
      let piece = UnsafeRawBufferPointer(rebasing: lane.buffer[..<count])
      let filled = fill(piece)
      if filled < count, !libraryHasClosed {
        received.keep(UnsafeRawBufferPointer(rebasing: piece[filled...]))
      }
    }
    return received.isEmpty && (mayRead || clientHasEnded)
  }

  /// Reads from the client until it blocks, ends, or the buffer is full.
  private func decrypt(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    var count = 0
    while count < buffer.count {
      ERR_clear_error()
      let part = UnsafeMutableRawBufferPointer(rebasing: buffer[count...])
      let result = SSL_read(session, part.baseAddress, Int32(part.count))
      if result > 0 {
        count += Int(result)
        guard socket.isReadBlocked, SSL_has_pending(session) == 0 else { continue }
        mayRead = false
        return count
      }
      switch SSL_get_error(session, result) {
      case SSL_ERROR_WANT_READ: mayRead = !socket.isReadBlocked
      case SSL_ERROR_WANT_WRITE: mayRead = !socket.isWriteBlocked
      case SSL_ERROR_ZERO_RETURN:
        clientHasEnded = true
        mayRead = false
      default:
        ERR_clear_error()
        end()
      }
      return count
    }
    return count
  }

  /// Gives the library some bytes. Returns how many it took.
  private func fill(_ bytes: UnsafeRawBufferPointer) -> Int {
    while true {
      let count = Glibc.send(pair, bytes.baseAddress, bytes.count, Self.flags)
      if count == bytes.count { return count }
      if count < 0, errno == EINTR { continue }
      mayFill = false
      if count < 0, errno != EAGAIN {
        libraryHasClosed = true
        return bytes.count
      }
      return max(0, count)
    }
  }

  // MARK: From the library to the client

  func send() -> Bool {
    guard phase == .open, mayWrite, !hasSaidGoodbye else { return false }
    if !sent.isEmpty {
      sent.offer { encrypt($0) }
      guard sent.isEmpty, phase == .open else { return false }
    }
    if libraryHasEnded {
      sayGoodbye()
      return false
    }
    guard mayDrain else { return false }
    let count = drain(into: lane.buffer)
    if count > 0 {
      let piece = UnsafeRawBufferPointer(rebasing: lane.buffer[..<count])
      let written = encrypt(piece)
      if written < count, phase == .open { sent.keep(UnsafeRawBufferPointer(rebasing: piece[written...])) }
    }
    return sent.isEmpty && (mayDrain || libraryHasEnded)
  }

  /// Takes what the library has for the client.
  private func drain(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    while true {
      let count = recv(pair, buffer.baseAddress, buffer.count, Int32(MSG_DONTWAIT))
      if count > 0 {
        // Less than there was room for is all there was.
        if count < buffer.count, !libraryIsEnding { mayDrain = false }
        return count
      }
      if count < 0, errno == EINTR { continue }
      mayDrain = false
      // An error says that the library has closed its end with something unread. What it had sent came before.
      if count == 0 || errno != EAGAIN { libraryHasEnded = true }
      return 0
    }
  }

  /// Sends bytes to the client. Returns how many TLS took. What it didn't take, it wants to be offered again.
  private func encrypt(_ bytes: UnsafeRawBufferPointer) -> Int {
    var count = 0
    while count < bytes.count {
      ERR_clear_error()
      let part = UnsafeRawBufferPointer(rebasing: bytes[count...])
      let result = SSL_write(session, part.baseAddress, Int32(part.count))
      if result > 0 {
        count += Int(result)
        connection.encryptedBytes.wrappingAdd(UInt64(result), ordering: .relaxed)
        continue
      }
      switch SSL_get_error(session, result) {
      case SSL_ERROR_WANT_WRITE, SSL_ERROR_WANT_READ: mayWrite = false
      default:
        ERR_clear_error()
        end()
      }
      break
    }
    return count
  }

  /// Tells the client that nothing more comes.
  private func sayGoodbye() {
    ERR_clear_error()
    let result = SSL_shutdown(session)
    if result < 0, SSL_get_error(session, result) == SSL_ERROR_WANT_WRITE {
      mayWrite = false
      return
    }
    ERR_clear_error()
    shutdown(socket.descriptor, Int32(SHUT_WR))
    hasSaidGoodbye = true
  }
}
