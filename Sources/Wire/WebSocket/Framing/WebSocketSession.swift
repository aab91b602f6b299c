import Bytes

/// The framing of WebSocket (RFC 6455) without sockets: bytes in and events out, messages in and bytes out.
///
/// It collects fragments, checks what a peer may send, and holds nothing but the message that is coming in, of at most
/// `limits.messageBytes`. Text messages are checked for their length and dropped, as Couchbase Lite does. It answers
/// nothing by itself.
///
/// Not for concurrent use.
package final class WebSocketSession {
  /// Which side of the connection this is. A client masks what it sends.
  package enum Role: Sendable, Hashable {
    case client
    case server
  }

  private enum Opcode {
    static let continuation: UInt8 = 0
    static let text: UInt8 = 1
    static let binary: UInt8 = 2
    static let close: UInt8 = 8
    static let ping: UInt8 = 9
    static let pong: UInt8 = 10
  }

  private let role: Role
  private let limit: UInt64
  private let codec = FrameCodec()

  /// Bytes of the current frame that haven't come; nil between frames.
  private var frameRest: UInt64?
  /// The opcode of the message that has begun and isn't complete.
  private var messageOpcode: UInt8?
  private var messageBytes: UInt64 = 0
  private var message: [UInt8] = []
  private var control: [UInt8] = []
  /// Whether the peer has closed or broken the rules. What comes after that is ignored.
  package private(set) var isOver = false

  /// Makes a session in which nothing was sent yet.
  package init(_ role: Role, limits: WebSocketLimits = WebSocketLimits()) {
    self.role = role
    limit = UInt64(max(1, limits.messageBytes))
  }

  // MARK: Receiving

  /// Takes bytes from the peer, and calls `take` for each event in them. Throws when the peer breaks the rules, after the
  /// events before that.
  package func receive(_ bytes: UnsafeRawBufferPointer, _ take: (WebSocketEvent) -> Void)
    throws(WebSocketViolation)
  {
    guard !isOver else { return }
    do {
      try codec.withInput(bytes) { () throws(WebSocketViolation) in
        while !isOver {
          switch codec.next() {
          case .piece(let piece): try receive(piece, take)
          case .needsMore: return
          case .malformed: throw .protocolError("a malformed frame header")
          }
        }
      }
    } catch {
      isOver = true
      (message, control) = ([], [])
      throw error
    }
  }

  private func receive(_ piece: FrameCodec.Piece, _ take: (WebSocketEvent) -> Void)
    throws(WebSocketViolation)
  {
    if frameRest == nil { try begin(piece) }
    let rest = (frameRest ?? 0) - UInt64(piece.bytes.count)
    frameRest = rest == 0 ? nil : rest
    if piece.opcode >= Opcode.close {
      control.append(contentsOf: piece.bytes)
      if rest == 0 { try endControl(piece.opcode, take) }
    } else if messageOpcode == Opcode.binary {
      let isEnd = rest == 0 && piece.isFinal
      if isEnd, message.isEmpty {
        // The usual case: a message that has come in one piece.
        messageOpcode = nil
        return take(.message([UInt8](piece.bytes)))
      }
      message.append(contentsOf: piece.bytes)
      guard isEnd else { return }
      messageOpcode = nil
      let whole = message
      message = []
      take(.message(whole))
    } else if rest == 0, piece.isFinal {
      messageOpcode = nil
    }
  }

  /// Checks the header of a frame.
  private func begin(_ frame: FrameCodec.Piece) throws(WebSocketViolation) {
    guard frame.reserved == 0 else { throw .protocolError("a reserved bit is set") }
    guard frame.isMasked == (role == .server) else {
      throw .protocolError(role == .server ? "a frame isn't masked" : "a frame is masked")
    }
    switch frame.opcode {
    case Opcode.continuation:
      guard messageOpcode != nil else { throw .protocolError("a continuation of nothing") }
    case Opcode.text, Opcode.binary:
      guard messageOpcode == nil else { throw .protocolError("a message inside another") }
      messageOpcode = frame.opcode
      messageBytes = 0
    case Opcode.close, Opcode.ping, Opcode.pong:
      // That it is short and not fragmented, wslay has checked.
      frameRest = frame.frameBytes
      return
    default: throw .protocolError("an unknown opcode \(frame.opcode)")
    }
    // The length has 63 bits, and the sum so far isn't above the limit.
    messageBytes += frame.frameBytes
    guard messageBytes <= limit else {
      throw WebSocketViolation(closeCode: 1009, reason: "a message of more than \(limit) bytes")
    }
    frameRest = frame.frameBytes
  }

  private func endControl(_ opcode: UInt8, _ take: (WebSocketEvent) -> Void) throws(WebSocketViolation) {
    let payload = control
    control = []
    switch opcode {
    case Opcode.ping: take(.ping(payload))
    case Opcode.pong: take(.pong(payload))
    default:
      let event = try Self.close(payload)
      isOver = true
      message = []
      take(event)
    }
  }

  private static func close(_ payload: [UInt8]) throws(WebSocketViolation) -> WebSocketEvent {
    if payload.isEmpty { return .close(code: 1005, reason: "") }
    guard payload.count >= 2 else { throw .protocolError("half a close code") }
    let code = Int(payload[0]) << 8 | Int(payload[1])
    guard CloseCode.isOnWire(code) else { throw .protocolError("the close code \(code)") }
    guard let reason = String(validating: payload[2...], as: UTF8.self) else {
      throw WebSocketViolation(closeCode: 1007, reason: "a close reason that isn't UTF-8")
    }
    return .close(code: code, reason: reason)
  }

  // MARK: Sending

  /// Appends a binary message, as one frame.
  package func write(message: [UInt8], to output: inout ByteBuffer) {
    write(Opcode.binary, message, to: &output)
  }

  /// Appends a ping. Of the payload at most 125 bytes are sent.
  package func write(ping payload: [UInt8], to output: inout ByteBuffer) {
    write(Opcode.ping, [UInt8](payload.prefix(125)), to: &output)
  }

  /// Appends a pong. Of the payload at most 125 bytes are sent.
  package func write(pong payload: [UInt8], to output: inout ByteBuffer) {
    write(Opcode.pong, [UInt8](payload.prefix(125)), to: &output)
  }

  /// Appends a Close frame. A code that may not be on the wire, such as 1005, is left out, and the reason with it. A reason
  /// of more than 123 bytes is cut.
  package func write(close code: Int, _ reason: String, to output: inout ByteBuffer) {
    guard CloseCode.isOnWire(code) else { return write(Opcode.close, [], to: &output) }
    let payload = [UInt8(code >> 8), UInt8(code & 255)] + CloseCode.cut(reason)
    write(Opcode.close, payload, to: &output)
  }

  private func write(_ opcode: UInt8, _ payload: [UInt8], to output: inout ByteBuffer) {
    payload.withUnsafeBytes {
      codec.write(opcode: opcode, isMasked: role == .client, $0, to: &output)
    }
  }
}
