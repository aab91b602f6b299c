import Synchronization

/// A request of the peer, which its handler answers: now or later, on any thread, once.
///
/// A copy of it has to be kept until then. When the last copy is gone and there was no answer, the peer gets the error
/// BLIP 501.
package struct BLIPIncomingRequest: Sendable {
  /// The request.
  package let message: BLIPMessage
  private let responder: Responder

  /// The same request for its answer alone: the message takes no memory any more.
  package var withoutMessage: BLIPIncomingRequest {
    BLIPIncomingRequest(
      BLIPMessage(kind: .request, number: message.number, flags: message.flags, properties: [:]), responder)
  }

  private init(_ message: BLIPMessage, _ responder: Responder) {
    self.message = message
    self.responder = responder
  }

  init(_ message: BLIPMessage, countedBytes: Int, _ link: BLIPLink) {
    self.message = message
    responder = Responder(message, countedBytes: countedBytes, link)
  }

  /// Answers. Returns false, and does nothing, if there was an answer before. An answer to a request that wants none
  /// isn't sent.
  @discardableResult
  package func reply(_ reply: BLIPReply = BLIPReply()) -> Bool { responder.reply(reply) }

  /// Answers with an error.
  @discardableResult
  package func reply(_ error: BLIPErrorReply) -> Bool { responder.reply(BLIPReply(error)) }
}

/// Sees to it that a request gets one answer.
private final class Responder: Sendable {
  private let link: BLIPLink
  private let number: UInt64
  private let isUrgent: Bool
  private let isNoReply: Bool
  private let countedBytes: Int
  private let isAnswered = Atomic(false)

  init(_ message: BLIPMessage, countedBytes: Int, _ link: BLIPLink) {
    self.link = link
    number = message.number
    isUrgent = message.flags.contains(.urgent)
    isNoReply = message.isNoReply
    self.countedBytes = countedBytes
  }

  deinit { reply(BLIPReply(.handlerFailed)) }

  @discardableResult
  func reply(_ reply: BLIPReply) -> Bool {
    guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else { return false }
    if isNoReply {
      link.post(.release(countedBytes))
    } else {
      link.post(.reply(message(reply)))
    }
    return true
  }

  private func message(_ reply: BLIPReply) -> OutgoingMessage? {
    func make(_ reply: BLIPReply) throws -> OutgoingMessage {
      try OutgoingMessage(reply, to: number, isUrgent: isUrgent, requestBytes: countedBytes)
    }
    // Properties that can't be sent are an error of the handler.
    return (try? make(reply)) ?? (try? make(BLIPReply(.handlerFailed)))
  }
}
