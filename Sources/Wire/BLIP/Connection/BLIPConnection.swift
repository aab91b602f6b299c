import System
import Transport

/// A BLIP connection over a transport: sends requests and gets their replies, and answers the peer's requests.
///
/// All calls may come from any thread and never wait. Handlers, completions, sources and sinks are called one after
/// another on a thread of the connection's workers, and never on Swift's cooperative pool. Code that takes long in them
/// delays the other messages of this connection, and nothing else.
///
/// ```swift
/// let connection = BLIPConnection(transport)
/// connection.onRequest("rev") { request in save(request.message) { request.reply() } }
/// connection.start()
/// let reply = try await connection.send(BLIPRequest("getCheckpoint", ["client": id]))
/// if let error = reply.error { … }
/// ```
///
/// A connection that isn't referenced any more closes with WebSocket code 1001. Its handlers are kept until it has closed, so
/// a handler that holds the connection keeps it open.
package final class BLIPConnection: Sendable {
  /// Answers requests of the peer, now or later.
  package typealias Handler = @Sendable (BLIPIncomingRequest) -> Void
  /// Chooses where the body of a request goes: to a sink, or into memory (nil). It gets the request without its body.
  package typealias SinkChoice = @Sendable (BLIPMessage) -> (any BLIPSink)?

  private let link: BLIPLink
  private let memory: BLIPMemory?

  /// Makes a connection that doesn't read yet. `name` is for the log.
  ///
  /// Connections may share workers. Without, each has a thread of its own while it has work. Connections with peers that nobody knows
  /// share a memory, so that all of them together have a limit.
  package init(
    _ transport: any MessageTransport, limits: BLIPLimits = BLIPLimits(), name: String? = nil,
    workers: Workers = Workers(), memory: BLIPMemory? = nil
  ) {
    self.memory = memory
    link = BLIPLink(transport, limits: limits, name: name, workers: workers, memory: memory)
  }

  deinit { link.post(.close(.webSocket(1001, "the connection isn't used any more"), isAtOnce: true)) }

  // MARK: The peer's requests

  /// Sets who answers the requests of a profile. Without a handler the peer gets the error BLIP 404.
  ///
  /// With `sink`, the body of a request may be streamed. The handler is then called after the last piece was given to the
  /// sink, and the message that it gets has no body. With `takesCut`, the handler also gets requests that are longer than
  /// `BLIPLimits.messageBytes`, without their bodies (`BLIPMessage.isCut`). Such a request ends the connection otherwise.
  ///
  /// Requests come to their handlers when they have come whole: a short one before a long one that was sent before. With `inOrder`,
  /// those of this profile come in the order in which they were sent.
  package func onRequest(
    _ profile: String, sink: SinkChoice? = nil, takesCut: Bool = false, inOrder: Bool = false,
    _ handler: @escaping Handler
  ) {
    link.post(
      .handler(
        profile,
        BLIPLink.HandlerEntry(sink: sink, takesCut: takesCut, isInOrder: inOrder, handle: handler)))
  }

  /// Sets what is called when the connection has ended; at once, if it has.
  package func onClose(_ handler: @escaping @Sendable (BLIPError) -> Void) { link.onClose(handler) }

  /// Begins to read. Handlers that were set before miss no request.
  package func start() { link.post(.start) }

  // MARK: Requests

  /// Sends a request and waits for its reply, which may be an error: see `BLIPMessage.error`.
  ///
  /// A request that wants no reply is done when its last byte was handed to the transport; the result is an empty
  /// message. With a `sink`, the body of the reply is streamed, but not that of an error.
  ///
  /// Throws `BLIPError` if the connection ends before, and `CancellationError` if the task is cancelled. A reply that
  /// comes after that is dropped.
  package func send(_ request: BLIPRequest, sink: (any BLIPSink)? = nil) async throws -> BLIPMessage {
    let message = try OutgoingMessage(request, sink: sink)
    let link = link
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        message.completion = { continuation.resume(with: $0) }
        link.post(.send(message))
      }
    } onCancel: {
      link.post(.cancel(message))
    }
  }

  /// Sends a request. `completion` is called once, as `send` without it returns or throws. Returns what `cancel` takes;
  /// nil if the request can't be sent, and then `completion` was called.
  @discardableResult
  package func send(
    _ request: BLIPRequest, sink: (any BLIPSink)? = nil,
    _ completion: @escaping @Sendable (Result<BLIPMessage, any Error>) -> Void
  ) -> OutgoingMessage? {
    do {
      let message = try OutgoingMessage(request, sink: sink, completion: completion)
      link.post(.send(message))
      return message
    } catch {
      completion(.failure(error))
      return nil
    }
  }

  /// Stops waiting for a reply. The completion gets `CancellationError`, unless it was called before.
  package func cancel(_ message: OutgoingMessage) { link.post(.cancel(message)) }

  // MARK: Memory

  /// Says how many bytes this side keeps for what the peer has asked for, beside the messages themselves. The last number counts.
  package func keep(_ bytes: Int) { link.post(.keep(bytes)) }

  /// Whether there is memory for so many bytes more, which a request makes this side keep.
  package func hasMemory(for bytes: Int) -> Bool { memory?.hasRoom(for: bytes) ?? true }

  /// Whether it had better send less at a time, because much waits to be sent on all connections of its memory.
  package var isMemoryShort: Bool { memory?.isShort ?? false }

  // MARK: The end

  /// Ends the connection. Requests that wait get the error `closed`.
  ///
  /// Replies that were given before are still sent, up to the first that has to wait for an ACK, and up to 256 KiB. If the
  /// transport is busy, the end comes when it isn't. A second call doesn't wait for that.
  package func close(_ close: TransportClose = .normal) { link.post(.close(close, isAtOnce: false)) }

  /// The bytes that the transport has sent and received.
  package var traffic: TransportTraffic { link.traffic }

  /// The messages that have begun to be sent and received, without ACKs.
  package var messages: BLIPMessageCounts { link.messages }

  /// Why the connection has ended; nil if it hasn't. The code is `closed` when an end was asked for, by either side, and
  /// otherwise what was wrong.
  package var closed: BLIPError? { link.closed }

  /// Waits until the connection has ended.
  package func waitUntilClosed() async -> BLIPError {
    await withCheckedContinuation { continuation in onClose { continuation.resume(returning: $0) } }
  }
}
