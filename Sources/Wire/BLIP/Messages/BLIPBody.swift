/// The body of a message to send.
package enum BLIPBody: Sendable {
  /// Bytes in memory.
  case bytes([UInt8])
  /// Bytes that are asked for when there is room to send them.
  case source(any BLIPSource)
}

/// Gives the body of a message piece by piece, so that a large one never is in memory.
///
/// The session asks for a piece when the peer can take it. All calls come one after another from the connection's
/// executor, which may be blocked for a read of a file.
package protocol BLIPSource: AnyObject, Sendable {
  /// Called once, before the first read. A source that has returned `later` calls `ready` when there is more.
  func begin(_ ready: @escaping @Sendable () -> Void)
  /// Appends at most `count` of the next bytes to `bytes`, and says what follows. Appending nothing and returning `more`
  /// ends the body.
  ///
  /// If it throws before anything of a reply was sent, the peer gets an error reply. Later the connection is closed,
  /// since the protocol can't end a message early, and the peer would take it for a whole one.
  func read(_ count: Int, into bytes: inout [UInt8]) throws -> BLIPSourceState
}

extension BLIPSource {
  package func begin(_ ready: @escaping @Sendable () -> Void) {}
}

/// What follows the bytes that a source has given.
package enum BLIPSourceState: Sendable {
  /// More can be read at once.
  case more
  /// More comes later. The source says when.
  case later
  /// Nothing. These were the last bytes.
  case end
}

/// Takes the body of a received message piece by piece.
///
/// All calls come one after another from the connection's executor. The peer stops sending this message when about
/// 128,000 bytes of it aren't consumed; so a slow sink slows its message, and no other. When a request is cancelled, the
/// sink of its reply gets nothing more.
package protocol BLIPSink: AnyObject, Sendable {
  /// Called first, with the properties and without the body.
  func begin(_ head: BLIPMessage)
  /// Takes the next bytes. Call `consumed` once, on any thread, when they take no memory any more. The next bytes may
  /// come before that.
  func write(_ bytes: ArraySlice<UInt8>, _ consumed: @escaping @Sendable () -> Void)
  /// Called instead of further bytes, if the connection ended before the message did.
  func abandon(_ error: BLIPError)
  /// Whether it takes no more. The rest of the message is dropped then, and a request whose reply it takes ends with the error
  /// `refused`. Asked before each piece.
  var isFull: Bool { get }
}

extension BLIPSink {
  package func begin(_ head: BLIPMessage) {}
  package func abandon(_ error: BLIPError) {}
  package var isFull: Bool { false }
}
