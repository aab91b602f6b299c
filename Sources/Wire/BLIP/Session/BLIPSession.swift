/// Counts of messages.
package struct BLIPMessageCounts: Sendable, Hashable {
  package var sent: UInt64 = 0
  package var received: UInt64 = 0

  package init() {}
}

/// One end of a BLIP connection without the connection: takes received frames and gives events, takes messages and gives
/// frames to send.
///
/// It has no thread, no lock and no clock. One thread at a time calls it. After it has thrown an error it is over: the
/// transport has to be closed, because the state of the checksums and of the compression is lost.
package final class BLIPSession {
  /// What a received frame brought.
  package enum Event {
    /// A whole message. A request stays open until a reply to it was sent, or until `release`; both say how many bytes
    /// were counted for it. A reply comes with its request.
    case message(BLIPMessage, countedBytes: Int, request: OutgoingMessage?)
    /// The properties of a message that isn't whole. Call `stream` now to get its body piece by piece. Otherwise it is
    /// collected.
    case began(IncomingMessage)
    /// A piece of a message that is streamed. `consume` says when it takes no memory any more. `isComplete` of the
    /// message says whether it is the last one.
    case chunk(IncomingMessage, ArraySlice<UInt8>, wireBytes: Int)
  }

  let limits: BLIPLimits
  /// The messages of both directions that have begun, without ACKs.
  package internal(set) var messages = BLIPMessageCounts()

  // Received.
  var reader: FrameReader
  var lastRequest: UInt64 = 0
  /// Requests and replies of which more frames come.
  var requests: [UInt64: IncomingMessage] = [:]
  var replies: [UInt64: IncomingMessage] = [:]
  /// Requests of the peer that have begun and whose reply isn't sent to its end.
  package internal(set) var openRequests = 0
  /// What `BLIPLimits.bufferedBytes` limits.
  package internal(set) var bufferedBytes = 0

  // Sent.
  let writer = FrameWriter()
  var queue = MessageQueue()
  var lastSentRequest: UInt64 = 0
  /// ACKs that wait, in order; and the number in each.
  var acks: [AckKey] = []
  var acknowledged: [AckKey: Int] = [:]
  /// Messages of which more frames will be sent.
  var sendingRequests: [UInt64: OutgoingMessage] = [:]
  var sendingReplies: [UInt64: OutgoingMessage] = [:]
  /// Requests that have begun and wait for a reply, or for more of it.
  var awaiting: [UInt64: OutgoingMessage] = [:]
  /// Requests that wait until fewer are in flight; `firstHeld` is the next one.
  var held: [OutgoingMessage] = []
  var firstHeld = 0
  /// Requests with a reply that are in the queue or in `awaiting`.
  var requestsInFlight = 0
  var starved: [ObjectIdentifier: OutgoingMessage] = [:]
  /// What `BLIPLimits.queuedReplyBytes` limits.
  package internal(set) var queuedReplyBytes = 0
  /// The bytes in memory of requests that aren't sent to their end.
  package internal(set) var queuedRequestBytes = 0
  /// What a request of the peer takes beside its bytes until it is answered.
  static let requestBytes = 1 << 10

  /// What the peer makes this side keep, in bytes.
  var heldBytes: Int { bufferedBytes + openRequests * Self.requestBytes }

  /// Requests whose outcome is known without a reply: sent and no reply wanted (nil), or the source failed.
  var outcomes: [(OutgoingMessage, (any Error)?)] = []

  /// Called when a source has more bytes; on any thread. The connection then calls `resume` from its own.
  var sourceIsReady: @Sendable (OutgoingMessage) -> Void = { _ in }

  struct AckKey: Hashable {
    let number: UInt64
    let type: FrameType
  }

  /// Makes a session at its beginning.
  package init(limits: BLIPLimits = BLIPLimits()) {
    self.limits = limits
    reader = FrameReader(limits: limits)
  }

  /// Ends the session. Returns the requests that get no reply, in no order, and messages whose streams end early.
  func end() -> (requests: [OutgoingMessage], streams: [IncomingMessage]) {
    var found: [OutgoingMessage] = []
    found += queue.all.filter { !$0.isReply && !$0.hasBegun }
    found += held[firstHeld...]
    found += starved.values.filter { !$0.isReply && !$0.hasBegun }
    found += awaiting.values
    // No-reply requests that aren't sent to their end.
    found += sendingRequests.values.filter { !$0.wantsReply }
    let streams = (Array(requests.values) + replies.values).filter(\.isStreamed)
    for message in found + sendingRequests.values + sendingReplies.values + queue.all + starved.values {
      message.discard()
    }
    queue = MessageQueue()
    held = []
    firstHeld = 0
    (acks, acknowledged) = ([], [:])
    (sendingRequests, sendingReplies, awaiting, starved) = ([:], [:], [:], [:])
    (requests, replies) = ([:], [:])
    bufferedBytes = 0
    openRequests = 0
    queuedReplyBytes = 0
    queuedRequestBytes = 0
    return (found, streams)
  }
}
