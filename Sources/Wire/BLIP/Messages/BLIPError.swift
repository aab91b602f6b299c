import Logs
import Transport

/// Why a BLIP session, or a message of it, failed.
package struct BLIPError: Error, Sendable, Hashable, CustomStringConvertible {
  /// The kinds of failure.
  package enum Code: String, Sendable, CaseIterable {
    // The peer broke the protocol.

    /// A frame has no bytes.
    case emptyFrame
    /// A frame is longer than `BLIPLimits.frameBytes`.
    case frameTooLong
    /// A number in a frame isn't a varint.
    case badVarint
    /// The checksum of a frame is missing or wrong.
    case badChecksum
    /// The payload of a compressed frame can't be inflated.
    case badCompression
    /// A frame inflates to more than `BLIPLimits.framePlainBytes`.
    case tooMuchOutput
    /// The properties of a message end early, or aren't pairs of texts that end with NUL.
    case badProperties
    /// The properties of a message are longer than `BLIPLimits.propertiesBytes`.
    case propertiesTooLong
    /// A request has a number that is neither the next one nor that of an unfinished request.
    case badRequestNumber
    /// A reply has the number of a request that doesn't wait for one.
    case unexpectedReply

    // The peer asks for more than it may have.

    /// A message that isn't streamed is longer than `BLIPLimits.messageBytes`, or one that is dropped than `cutMessageBytes`.
    case messageTooLong
    /// The peer goes on with a message that isn't acknowledged any more, because nobody wants it.
    case ignoresFlowControl
    /// More than `BLIPLimits.openRequests` requests of the peer are open.
    case tooManyRequests
    /// What waits in memory takes more than `BLIPLimits.bufferedBytes`.
    case tooManyBytes
    /// Replies that the peer doesn't take make up more than `BLIPLimits.queuedReplyBytes`.
    case tooManyReplyBytes

    // This side.

    /// A property of a message to send has NUL in it, or the properties are too long.
    case invalidMessage
    /// The source of a body failed after a part of it was sent.
    case sourceFailed
    /// zlib has no memory.
    case outOfMemory
    /// A reply was longer than its sink takes.
    case refused
    /// The connection ended.
    case closed
  }

  /// The kind of failure.
  package let code: Code
  /// What was found, in words. It has nothing of the contents of messages.
  package let message: String
  /// How the connection ended; nil if the error didn't end it.
  package var close: TransportClose?

  /// Makes an error.
  package init(_ code: Code, _ message: String, close: TransportClose? = nil) {
    self.code = code
    self.message = message
    self.close = close
  }

  /// The failure in words, for people.
  package var description: String { "\(message) (\(code.rawValue))" }
}

extension BLIPError: LoggedError {
  package var logText: String { description }
}
