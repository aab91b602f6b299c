import Transport

/// The closing handshake.
///
/// Both sides send a Close frame, the server closes the socket, and the client waits for that. A socket that is closed
/// while bytes of the peer wait to be read loses what was written last, so they are read and dropped until then.
extension WebSocketCore {
  /// The user closes.
  func close(_ close: TransportClose) {
    guard end == nil else { return }
    dropMessages()
    setEnd(close)
    let code = close.domain == .webSocket ? close.code : 1011
    guard code == 1005 || CloseCode.isOnWire(code) else { return finish(close) }
    beginClosing(code, close.reason)
  }

  /// The peer closes, or answers.
  func peerHasClosed(_ code: Int, _ reason: String) {
    isCloseReceived = true
    setEnd(.webSocket(code, reason))
    beginClosing(code, "")
  }

  /// The peer has broken the rules. What it sends after that means nothing.
  func breakOff(_ violation: WebSocketViolation) {
    isBrokenOff = true
    setEnd(.webSocket(violation.closeCode, violation.reason))
    beginClosing(violation.closeCode, violation.reason)
  }

  private func beginClosing(_ code: Int, _ reason: String) {
    if phase == .open {
      phase = .closing
      closeBegan = .now
      closeProgress = closeBegan
    }
    guard phase == .closing, !isCloseSent else { return }
    isCloseSent = true
    sendControl { session, output in session.write(close: code, reason, to: &output) }
    // Nobody may be reading.
    needsAnotherRound = phase == .closing
  }

  /// All was written, with the Close frame.
  func outputIsWritten() {
    if isCloseReceived, role == .server {
      finish(.webSocket(1006))
    } else if isBrokenOff, !isWritingEnded {
      // The peer's Close frame won't be understood, so the peer's end of the stream is waited for.
      isWritingEnded = true
      stream.endWriting()
    }
  }
}
