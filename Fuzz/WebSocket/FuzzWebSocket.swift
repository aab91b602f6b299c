// libFuzzer's target for WebSocket: whatever a peer sends, a session throws a violation or goes on and holds its limits,
// and it says the same however the bytes arrive. And whatever a server answers, the reader of its head throws or goes on.
//
//   input := choices:byte  bytes     choices: 1 a server's session, else a client's; 2 an answer of HTTP; 4 small limits;
//                                    the rest: how many bytes arrive at a time

import FuzzDriver
import Network
import WebSocket

private func events(_ session: WebSocketSession, _ bytes: UnsafeRawBufferPointer, _ step: Int, _ most: Int)
  -> (
    [WebSocketEvent], WebSocketViolation?
  )
{
  var events: [WebSocketEvent] = []
  var offset = 0
  do throws(WebSocketViolation) {
    while offset < bytes.count {
      let end = min(bytes.count, offset + step)
      try session.receive(UnsafeRawBufferPointer(rebasing: bytes[offset..<end])) { events.append($0) }
      offset = end
    }
  } catch {
    precondition([1002, 1007, 1009].contains(error.closeCode), "\(error)")
    precondition(session.isOver, "a session that goes on")
    return (events, error)
  }
  for event in events {
    switch event {
    case .message(let message): precondition(message.count <= most, "a message above the limit")
    case .ping(let payload), .pong(let payload): precondition(payload.count <= 125, "a long control frame")
    case .close(let code, _): precondition(code == 1005 || CloseCode.isOnWire(code), "the code \(code)")
    }
  }
  return (events, nil)
}

@main enum FuzzWebSocket: FuzzTarget {
  static func test(_ input: UnsafeRawBufferPointer) {
    guard let choices = input.first else { return }
    let bytes = UnsafeRawBufferPointer(rebasing: input[1...])
    if choices & 2 != 0 { return AnswerHeadFuzzing.test([UInt8](bytes)) }
    var limits = WebSocketLimits()
    if choices & 4 != 0 { limits.messageBytes = 100 }
    let role: WebSocketSession.Role = choices & 1 != 0 ? .server : .client
    let whole = events(
      WebSocketSession(role, limits: limits), bytes, max(1, bytes.count), limits.messageBytes)
    let pieces = events(
      WebSocketSession(role, limits: limits), bytes, 1 + Int(choices >> 3), limits.messageBytes)
    precondition(whole.0 == pieces.0 && whole.1 == pieces.1, "the pieces matter")
  }
}
