import Logs
import System
import Transport

/// A WebSocket connection, after its handshake.
///
/// Messages are read when they are asked for, and up to `readAheadBytes` before, so a receiver that is slow stops its
/// peer. Many messages make one write, and all that have come make one call.
///
/// A peer that closes ends it with the peer's code, or with 1005 if there was none. A connection that ends without that
/// ends with 1006, or with an error of the operating system. A peer that breaks the rules is closed with 1002, 1007 or
/// 1009. `close` sends a Close frame, and waits for the peer's in the background. A close whose code isn't for the wire,
/// such as 1006, ends the connection at once; one of another domain is sent as 1011.
///
/// Calls come from any thread and don't wait. Completions are called on the caller's thread or on the loop's, and mustn't
/// wait. The connection is kept until it has ended, so whoever has one closes it.
package final class WebSocketTransport: MessageTransport {
  private let core: Lock<WebSocketCore>
  private let loop: SocketLoop
  private let name: String?

  /// Takes a stream whose handshake is done, and begins to read.
  ///
  /// `received` are bytes that came along with the handshake. `name` is for the log. If the loop can't wait for the stream,
  /// the transport has ended with that error.
  package init(
    _ stream: any ByteStream, _ role: WebSocketSession.Role, options: WebSocketOptions = WebSocketOptions(),
    received: [UInt8] = [], loop: SocketLoop, name: String? = nil
  ) {
    self.loop = loop
    self.name = name
    core = Lock(WebSocketCore(stream, role, options, loop))
    run { core in
      core.begin(received) { [self] in ready() }
    }
    // The stream may have had bytes before the loop waited for it.
    loop.post { [self] in ready() }
  }

  // MARK: Calls

  package func receive(_ completion: @escaping @Sendable (Result<[[UInt8]], TransportClose>) -> Void) {
    run { core in
      precondition(core.receiver == nil, "two calls of receive wait at a time")
      core.receiver = completion
      core.readIfWanted()
    }
  }

  package func send(_ messages: [[UInt8]], _ completion: @escaping @Sendable (TransportClose?) -> Void) {
    run { core in
      precondition(core.sender == nil, "two calls of send wait at a time")
      core.sender = completion
      core.send(messages)
    }
  }

  package func close(_ close: TransportClose) {
    run { core in core.close(close) }
  }

  /// The bytes that went over the connection so far, with the framing. Those of the handshake and of TLS aren't counted.
  package var traffic: TransportTraffic {
    core.withLock { TransportTraffic(sentBytes: $0.sentBytes, receivedBytes: $0.receivedBytes) }
  }

  // MARK: What happens

  /// The stream can do something again.
  private func ready() {
    run { core in core.streamIsReady() }
  }

  private func timeHasCome(_ number: UInt64) {
    run { core in core.timeHasCome(number) }
  }

  /// Does something with the core, and then calls who waits for that.
  private func run(_ body: (WebSocketCore) -> Void) {
    var calls = core.withLock { core in
      body(core)
      return takeCalls(core)
    }
    while true {
      if let end = calls.endToLog { Log.write(.verbose, .network, name, "WebSocket: the end: \(end)") }
      if let sender = calls.sender { sender(calls.end) }
      guard let receiver = calls.receiver else { return }
      receiver(calls.messages.isEmpty ? .failure(calls.end ?? .webSocket(1006)) : .success(calls.messages))
      // The completion may have asked again. Its call didn't read, so that calls don't pile up on the stack.
      calls = core.withLock { core in
        core.isDelivering = false
        core.readIfWanted()
        // The loop reads on while nobody asks.
        if core.mayReadAhead { core.needsAnotherRound = true }
        return takeCalls(core)
      }
    }
  }

  private func takeCalls(_ core: WebSocketCore) -> WebSocketCore.Calls {
    if core.needsAnotherRound {
      core.needsAnotherRound = false
      loop.post { [self] in ready() }
    }
    core.armTimer { [self] in timeHasCome($0) }
    return core.takeCalls()
  }
}
