import Bytes
import Transport

/// What a `WebSocketTransport` does under its lock: reading, writing, and whom to call.
final class WebSocketCore {
  /// Whom to call after the lock.
  struct Calls {
    var receiver: (@Sendable (Result<[[UInt8]], TransportClose>) -> Void)?
    var messages: [[UInt8]] = []
    var sender: (@Sendable (TransportClose?) -> Void)?
    var end: TransportClose?
    /// Set once, when the end has come.
    var endToLog: TransportClose?
  }

  /// How far the end has come.
  enum Phase {
    /// Messages go both ways.
    case open
    /// What the peer sends is read only to find its Close frame. Closing, or after an error.
    case closing
    /// The stream is closed.
    case closed
  }

  /// Bytes that one call reads at most, so that a loop serves its other connections too.
  static let roundBytes = 1 << 20
  static let chunkBytes = 64 << 10
  /// Memory for output that is kept while there is none.
  private static let keptOutputBytes = 64 << 10

  let stream: any ByteStream
  let session: WebSocketSession
  let role: WebSocketSession.Role
  let options: WebSocketOptions
  let loop: SocketLoop
  private var registration: SocketLoop.Registration?

  var phase = Phase.open
  /// Why the connection has ended for its user. It is reported after `messages`.
  var end: TransportClose?
  private var endToLog: TransportClose?

  // Receiving.
  var receiver: (@Sendable (Result<[[UInt8]], TransportClose>) -> Void)?
  private var messages: [[UInt8]] = []
  private var waitingBytes = 0
  private var isReadable = true
  /// Whether a call of a receiver goes on.
  var isDelivering = false
  /// Whether there may be more to read although nobody will say so.
  var needsAnotherRound = false
  var receivedBytes: UInt64 = 0

  // Sending.
  var sender: (@Sendable (TransportClose?) -> Void)?
  private var output = ByteBuffer(capacity: 64)
  private var outputStart = 0
  private var isWritable = true
  var sentBytes: UInt64 = 0
  /// The payload of the last ping that wasn't answered, and where in all output the last pong ends.
  private var pongToSend: [UInt8]?
  private var pongEnd: UInt64 = 0

  // Closing.
  var isCloseSent = false
  var isCloseReceived = false
  var isBrokenOff = false
  var isWritingEnded = false

  // Times: see WebSocketCore+Timers.swift.
  var timer: (number: UInt64, id: UInt64, time: MonotonicTime)?
  var timerNumber: UInt64 = 0
  var lastReceived = MonotonicTime.now
  var lastPing = MonotonicTime.now
  var isPingUnanswered = false
  var isTimerLate = false
  var closeBegan = MonotonicTime(nanoseconds: 0)
  var closeProgress = MonotonicTime(nanoseconds: 0)

  init(
    _ stream: any ByteStream, _ role: WebSocketSession.Role, _ options: WebSocketOptions, _ loop: SocketLoop
  ) {
    self.stream = stream
    self.role = role
    self.options = options
    self.loop = loop
    session = WebSocketSession(role, limits: options.limits)
  }

  func begin(_ received: [UInt8], _ ready: @escaping @Sendable () -> Void) {
    do { registration = try loop.add(stream.descriptor) { _ in ready() } } catch {
      finish(error)
      return
    }
    if !received.isEmpty { received.withUnsafeBytes { take($0) } }
    flush()
  }

  /// Takes whom to call now.
  func takeCalls() -> Calls {
    var calls = Calls(end: end, endToLog: endToLog.take())
    if sender != nil, end != nil || waitingToWrite <= options.writeAheadBytes { calls.sender = sender.take() }
    guard receiver != nil, !isDelivering, !messages.isEmpty || end != nil else { return calls }
    calls.receiver = receiver.take()
    isDelivering = true
    swap(&calls.messages, &messages)
    waitingBytes = 0
    return calls
  }

  func streamIsReady() {
    guard phase != .closed else { return }
    isReadable = true
    isWritable = true
    flush()
    read()
  }

  // MARK: Receiving

  /// Whether so many messages wait to be asked for that no more are read.
  var isReadingPaused: Bool { phase == .open && waitingBytes >= options.readAheadBytes }

  /// Whether there is room again for what nobody has asked for.
  var mayReadAhead: Bool { receiver == nil && isReadable && phase == .open && !isReadingPaused }

  func readIfWanted() {
    if receiver != nil, !isDelivering, messages.isEmpty, end == nil { read() }
  }

  private func read() {
    guard isReadable, phase != .closed, !isReadingPaused else { return }
    withUnsafeTemporaryAllocation(byteCount: Self.chunkBytes, alignment: 16) { chunk in
      var rest = Self.roundBytes
      while isReadable, phase != .closed, !isReadingPaused {
        guard rest > 0 else {
          needsAnotherRound = true
          break
        }
        switch stream.read(into: chunk) {
        case .bytes(let count):
          rest -= count
          take(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(chunk)[..<count]))
        case .wouldBlock: isReadable = false
        case .end: finish(.webSocket(1006, "the peer has gone without closing"))
        case .failed(let close): finish(close)
        }
      }
    }
    if phase != .closed { flush() }
  }

  /// Takes bytes from the peer.
  private func take(_ bytes: UnsafeRawBufferPointer) {
    receivedBytes += UInt64(bytes.count)
    lastReceived = .now
    if isPingUnanswered {
      isPingUnanswered = false
      // The next ping may be due before the end of the time for an answer.
      isTimerLate = true
    }
    do {
      try session.receive(bytes) { event in
        switch event {
        case .message(let message):
          guard phase == .open else { return }
          messages.append(message)
          waitingBytes += message.count + WebSocketOptions.messageOverhead
        case .ping(let payload): pongToSend = payload
        case .pong: break
        case .close(let code, let reason): peerHasClosed(code, reason)
        }
      }
    } catch { breakOff(error) }
  }

  // MARK: Sending

  var waitingToWrite: Int { output.count - outputStart }

  func send(_ messages: [[UInt8]]) {
    guard end == nil, phase == .open, !messages.isEmpty else { return }
    makeRoom()
    for message in messages { session.write(message: message, to: &output) }
    flush()
  }

  /// Appends a control frame, and writes what can be written.
  func sendControl(_ write: (WebSocketSession, inout ByteBuffer) -> Void) {
    makeRoom()
    write(session, &output)
    flush()
  }

  /// Moves output that waits to the front when that costs less than it saves.
  private func makeRoom() {
    guard outputStart > 0, outputStart >= waitingToWrite else { return }
    let rest = waitingToWrite
    output.base.update(from: output.base + outputStart, count: rest)
    output.truncate(to: rest)
    outputStart = 0
  }

  func flush() {
    guard phase != .closed else { return }
    writeOutput()
    // Only the last of several pings is answered, and no more than one answer waits.
    if !isCloseSent, phase != .closed, sentBytes >= pongEnd, let payload = pongToSend.take() {
      makeRoom()
      session.write(pong: payload, to: &output)
      pongEnd = sentBytes + UInt64(waitingToWrite)
      writeOutput()
    }
    if phase == .closing, waitingToWrite == 0 { outputIsWritten() }
  }

  private func writeOutput() {
    while isWritable, phase != .closed, waitingToWrite > 0 {
      switch stream.write(UnsafeRawBufferPointer(rebasing: output.bytes[outputStart...])) {
      case .bytes(let count):
        outputStart += count
        sentBytes += UInt64(count)
        closeProgress = phase == .closing ? .now : closeProgress
      case .wouldBlock, .end: isWritable = false
      case .failed(let close): writingHasFailed(close)
      }
    }
    guard waitingToWrite == 0 else { return }
    output.removeAll(keepingAtMost: Self.keptOutputBytes)
    outputStart = 0
  }

  /// The peer is gone. What it sent before that, perhaps a Close frame, is read first.
  private func writingHasFailed(_ close: TransportClose) {
    withUnsafeTemporaryAllocation(byteCount: Self.chunkBytes, alignment: 16) { chunk in
      // More than that no socket holds.
      var rest = 16 * Self.roundBytes
      while rest > 0, phase == .open, case .bytes(let count) = stream.read(into: chunk) {
        rest -= count
        take(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(chunk)[..<count]))
      }
    }
    finish(end ?? close)
  }

  // MARK: The end

  func setEnd(_ close: TransportClose) {
    guard end == nil else { return }
    end = close
    endToLog = close
  }

  func dropMessages() {
    messages = []
    waitingBytes = 0
  }

  /// Closes the stream. Does nothing if it is closed.
  func finish(_ close: TransportClose) {
    guard phase != .closed else { return }
    setEnd(close)
    phase = .closed
    if let registration { loop.remove(registration) }
    if let timer { loop.cancel(timer.id) }
    timer = nil
    stream.close()
    output = ByteBuffer(capacity: 64)
    outputStart = 0
    pongToSend = nil
  }
}
