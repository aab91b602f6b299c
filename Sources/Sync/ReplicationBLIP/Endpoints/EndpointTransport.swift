import Bytes
import Replication
import ReplicationNetwork
import Storage
import Transport
import WebSocket

/// A transport of the app's own, as BLIP uses it.
final class EndpointTransport: MessageTransport {
  private struct State {
    var received: [[UInt8]] = []
    var receivedBytes = 0
    /// Called when everything that waits was taken.
    var taken: [@Sendable () -> Void] = []
    var receiver: (@Sendable (Result<[[UInt8]], TransportClose>) -> Void)?
    /// What waits to be given to the app's connection.
    var sending: [[UInt8]] = []
    var isSending = false
    var sender: (@Sendable (TransportClose?) -> Void)?
    /// The end, as `receive` and `send` report it.
    var end: TransportClose?
    /// Whether the app's connection is to be closed, or was.
    var isClosing = false
    var hasClosed = false
    var traffic = TransportTraffic()
    /// Frames of a byte stream.
    var framing: WebSocketSession?
  }

  /// Codes of WebSocket for what the app says of its transport, as Couchbase Lite has them.
  private static let recoverable = 4001
  private static let permanent = 4002

  private let connection: any MessageEndpointConnection
  private let state: Lock<State>
  /// Calls the app's connection.
  private let calls = Workers()

  init(_ connection: any MessageEndpointConnection, _ type: MessageProtocol, isActive: Bool) {
    self.connection = connection
    var state = State()
    if type == .byteStream { state.framing = WebSocketSession(isActive ? .client : .server) }
    self.state = Lock(state)
  }

  /// Opens the app's connection.
  func open(_ done: @escaping @Sendable (TransportClose?) -> Void) {
    let isDone = Lock(false)
    calls.enqueue { [self] in
      connection.open(ReplicatorConnection(self)) { [self] error in
        let isFirst = isDone.withLock { isDone in
          defer { isDone = true }
          return !isDone
        }
        guard isFirst else { return }
        if let error { ended(error) }
        done(error.map(Self.close))
      }
    }
  }

  private static func close(_ error: MessagingError) -> TransportClose {
    TransportClose(
      domain: .webSocket, code: error.isRecoverable ? recoverable : permanent, reason: error.description,
      isTransient: error.isRecoverable)
  }

  var traffic: TransportTraffic { state.withLock { $0.traffic } }

  // MARK: Receiving

  func receive(_ completion: @escaping @Sendable (Result<[[UInt8]], TransportClose>) -> Void) {
    let result = state.withLock { state -> (Result<[[UInt8]], TransportClose>, [@Sendable () -> Void])? in
      if !state.received.isEmpty {
        defer {
          state.received = []
          state.receivedBytes = 0
          state.taken = []
        }
        return (.success(state.received), state.taken)
      }
      if let end = state.end { return (.failure(end), []) }
      precondition(state.receiver == nil, "two calls of receive wait at a time")
      state.receiver = completion
      return nil
    }
    guard let (result, taken) = result else { return }
    completion(result)
    for call in taken { call() }
  }

  /// Takes what the app got from the peer.
  func received(_ bytes: [UInt8], _ taken: (@Sendable () -> Void)?) {
    var violation: TransportClose?
    let delivery = state.withLock { state -> (() -> Void)? in
      guard state.end == nil else { return taken }
      state.traffic.receivedBytes += UInt64(bytes.count)
      if let framing = state.framing {
        violation = Self.unframe(bytes, framing, &state)
      } else {
        state.received.append(bytes)
        state.receivedBytes += bytes.count
      }
      if state.receivedBytes > ReplicatorConnection.maximumWaitingBytes {
        violation = .webSocket(1009, "more than \(ReplicatorConnection.maximumWaitingBytes) bytes wait")
      }
      guard !state.received.isEmpty, let receiver = state.receiver.take() else {
        if state.received.isEmpty { return taken }
        if let taken { state.taken.append(taken) }
        return nil
      }
      let (messages, calls) = (state.received, state.taken)
      state.received = []
      state.receivedBytes = 0
      state.taken = []
      return {
        receiver(.success(messages))
        for call in calls { call() }
        taken?()
      }
    }
    delivery?()
    if let violation { finish(violation) }
  }

  /// Takes messages out of a byte stream. Returns the end, if it is there.
  private static func unframe(_ bytes: [UInt8], _ framing: WebSocketSession, _ state: inout State)
    -> TransportClose?
  {
    var end: TransportClose?
    do throws(WebSocketViolation) {
      try bytes.span.bytes.withUnsafeBytes { (bytes) throws(WebSocketViolation) in
        try framing.receive(bytes) { event in
          switch event {
          case .message(let message):
            state.received.append(message)
            state.receivedBytes += message.count
          case .ping(let payload):
            var pong = ByteBuffer(capacity: 128)
            framing.write(pong: payload, to: &pong)
            // A peer that only pings doesn't fill the memory.
            if state.sending.count < 1_000 { state.sending.append([UInt8](pong.bytes)) }
          case .pong: break
          case .close(let code, let reason): end = .webSocket(code, reason)
          }
        }
      }
    } catch { end = .webSocket(error.closeCode, error.reason) }
    return end
  }

  // MARK: Sending

  func send(_ messages: [[UInt8]], _ completion: @escaping @Sendable (TransportClose?) -> Void) {
    let end = state.withLock { state -> TransportClose? in
      if let end = state.end { return end }
      precondition(state.sender == nil, "two calls of send wait at a time")
      if let framing = state.framing {
        var bytes = ByteBuffer(capacity: messages.reduce(64) { $0 + $1.count + 16 })
        for message in messages { framing.write(message: message, to: &bytes) }
        state.sending.append([UInt8](bytes.bytes))
      } else {
        state.sending += messages
      }
      state.sender = completion
      return nil
    }
    if let end { completion(end) } else { sendNext() }
  }

  /// Gives the app's connection the next piece; after the last one the sender goes on, or the connection is closed.
  private func sendNext() {
    enum Next {
      case send([UInt8])
      case done(@Sendable (TransportClose?) -> Void)
      case close(TransportClose?)
      case nothing
    }
    let next = state.withLock { state -> Next in
      if state.isSending { return .nothing }
      if !state.sending.isEmpty {
        state.isSending = true
        let piece = state.sending.removeFirst()
        state.traffic.sentBytes += UInt64(piece.count)
        return .send(piece)
      }
      if let sender = state.sender.take() { return .done(sender) }
      if state.isClosing, !state.hasClosed {
        state.hasClosed = true
        return .close(state.end)
      }
      return .nothing
    }
    switch next {
    case .nothing: break
    case .done(let sender):
      sender(nil)
      sendNext()
    case .send(let piece):
      calls.enqueue { [self] in
        connection.send(piece) { [self] error in
          let wasSending = state.withLock { state in
            defer { state.isSending = false }
            return state.isSending
          }
          guard wasSending else { return }
          if let error { ended(error) } else { sendNext() }
        }
      }
    case .close(let end):
      let error: (any Error)? = end.flatMap {
        $0.domain == .webSocket && $0.code == 1000 ? nil : ReplicationError(end: $0)
      }
      calls.enqueue { [self] in connection.close(error) {} }
    }
  }

  // MARK: The end

  func close(_ close: TransportClose) { finish(close, tellsPeer: true) }

  /// The app says that its connection has ended.
  func ended(_ error: MessagingError?) {
    finish(error.map(Self.close) ?? .webSocket(1001, "the peer has closed"), dropsQueue: true)
  }

  private func finish(_ close: TransportClose, tellsPeer: Bool = false, dropsQueue: Bool = false) {
    let waiting = state.withLock { state -> [() -> Void] in
      guard state.end == nil else {
        if dropsQueue { state.sending = [] }
        return []
      }
      state.end = close
      state.isClosing = true
      if dropsQueue {
        state.sending = []
        state.isSending = false
      } else if let framing = state.framing {
        // A peer that has closed or broken the rules gets a Close frame too.
        var bytes = ByteBuffer(capacity: 128)
        framing.write(close: close.domain == .webSocket ? close.code : 1011, close.reason, to: &bytes)
        state.sending.append([UInt8](bytes.bytes))
      }
      var calls: [() -> Void] = []
      if tellsPeer {
        state.received = []
        state.receivedBytes = 0
      }
      let taken = state.taken
      state.taken = []
      calls.append { for call in taken { call() } }
      if let receiver = state.receiver.take() { calls.append { receiver(.failure(close)) } }
      if let sender = state.sender.take() { calls.append { sender(close) } }
      return calls
    }
    for call in waiting { call() }
    sendNext()
  }
}
