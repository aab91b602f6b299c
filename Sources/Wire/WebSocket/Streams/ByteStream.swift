import Transport

/// A connection that carries bytes both ways: a socket, TLS over one, or what a server hands over after an upgrade.
///
/// Calls never wait, and never overlap: whoever uses a stream sees to that. A stream may hold bytes that have come although
/// its descriptor isn't readable, as TLS does. So it is read until it would block, and only then is its descriptor waited
/// for.
package protocol ByteStream: AnyObject, Sendable {
  /// What to wait for, with epoll. It stays the same and open until `close`.
  var descriptor: CInt { get }

  /// Reads some bytes; `target` has room for 1 at least.
  func read(into target: UnsafeMutableRawBufferPointer) -> ByteStreamResult

  /// Writes some of the bytes, of which there is 1 at least.
  func write(_ bytes: UnsafeRawBufferPointer) -> ByteStreamResult

  /// Tells the peer that nothing more will be written, if the stream can; reading goes on. It is called once at most.
  func endWriting()

  /// Ends both directions at once. It is called once, and is the last call.
  func close()
}

/// What a call of a `ByteStream` did.
package enum ByteStreamResult: Sendable {
  /// So many bytes were read or written, 1 or more.
  case bytes(Int)
  /// Nothing can be done now. When that has changed, the descriptor becomes ready.
  case wouldBlock
  /// The peer sends no more. Only for reading.
  case end
  /// The connection is broken.
  case failed(TransportClose)
}
