// What a record was encrypted with:
//
//   seal := session:12 nonce:12      24 bytes (RecordFormat)

/// The session and the nonce of one encryption.
struct Seal: Equatable {
  static let byteCount = 24
  static let nonceOffset = 12

  var session: UInt64
  /// The rest of the session in the lower 32 bits, and the first four bytes of the nonce above.
  var middle: UInt64
  var nonce: UInt64

  @inline(__always)
  var sessionID: SessionID { SessionID(high: session, low: UInt32(truncatingIfNeeded: middle)) }

  /// Returns the seal of a later chunk of the value.
  @inline(__always)
  func advanced(by count: Int) -> Seal {
    Seal(session: session, middle: middle, nonce: nonce &+ UInt64(count))
  }
}

extension Seal {
  @inline(__always)
  init(_ bytes: UnsafeRawPointer) {
    session = UInt64(littleEndian: bytes.loadUnaligned(as: UInt64.self))
    middle = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
    nonce = UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: 16, as: UInt64.self))
  }

  @inline(__always)
  func write(to bytes: UnsafeMutableRawPointer) {
    bytes.storeBytes(of: session.littleEndian, as: UInt64.self)
    bytes.storeBytes(of: middle.littleEndian, toByteOffset: 8, as: UInt64.self)
    bytes.storeBytes(of: nonce.littleEndian, toByteOffset: 16, as: UInt64.self)
  }
}
