/// What a peer may ask of one session. Each limit is checked before memory is taken.
///
/// Exceeding a limit ends the connection. Peers that follow the protocol stay far below the defaults.
package struct BLIPLimits: Sendable, Hashable {
  /// The longest frame that is accepted. Couchbase Lite and Sync Gateway send at most 16 KiB.
  package var frameBytes = 64 << 10
  /// The most bytes that one frame may inflate to. Deflate's best ratio is 1,032 to 1, so a frame of 16 KiB that
  /// holds only zeros has 16.1 MiB.
  package var framePlainBytes = 20 << 20
  /// The longest message that is collected in memory. What is streamed has no limit.
  package var messageBytes = 64 << 20
  /// The longest request whose body is dropped because it has more than `messageBytes`, so that its handler can refuse it.
  package var cutMessageBytes = 1 << 30
  /// Bytes of a message that nobody wants any more, as they were sent, that are still acknowledged. A peer stops sending a longer one.
  package var droppedBytes = 1 << 20
  /// The longest properties of a message, in both directions. The protocol says 100 KiB.
  package var propertiesBytes = 100 << 10
  /// Requests of the peer that have begun and aren't fully answered. Couchbase Lite was seen to send 322 at once.
  /// Each takes less than 1 KiB beside its bytes, so 10,000 take 10 MiB at most.
  package var openRequests = 10_000
  /// Bytes of requests and replies that are being collected, of requests that aren't answered, and of chunks that
  /// weren't consumed. A peer that obeys the flow control sends 128,000 bytes of a stream ahead, which may inflate to
  /// 126 MiB.
  package var bufferedBytes = 256 << 20
  /// Bytes of replies in memory that wait to be sent. Streamed replies count as nothing.
  package var queuedReplyBytes = 32 << 20
  /// Requests of this side that the peer hasn't answered. More wait until one is answered, so that this side stays
  /// below the limit `openRequests` of a peer of the same kind.
  package var requestsInFlight = 5_000

  /// Makes the default limits.
  package init() {}
}
