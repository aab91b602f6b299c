/// Which numbers are close codes of WebSocket (RFC 6455, section 7.4, and the registry that it begins).
package enum CloseCode {
  /// Whether a Close frame may hold the code.
  package static func isOnWire(_ code: Int) -> Bool {
    switch code {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }

  /// The most bytes of a reason: those of a control frame, less those of the code.
  package static let reasonBytes = 123

  /// The beginning of a reason that fits a Close frame. It ends at a character's end.
  static func cut(_ reason: String) -> [UInt8] {
    guard reason.utf8.count > reasonBytes else { return [UInt8](reason.utf8) }
    var bytes = [UInt8](reason.utf8.prefix(reasonBytes + 1))
    // The byte that is dropped begins a character, or belongs to one that is dropped whole.
    while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
    return bytes
  }
}
