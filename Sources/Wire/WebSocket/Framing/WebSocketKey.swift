import CCrypto

/// The proof of a WebSocket handshake that the answer is one to this request (RFC 6455, section 4.2.2).
package enum WebSocketKey {
  private static let suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

  /// A new value for the header `Sec-WebSocket-Key`: 16 random bytes in base64. Nil if the kernel has no random bytes.
  package static func make() -> String? {
    var keys = MaskKeys()
    var bytes = [UInt8](repeating: 0, count: 16)
    let isFilled = bytes.withUnsafeMutableBufferPointer { bytes in
      bytes.baseAddress.map { keys.fill($0, 16) } ?? false
    }
    return isFilled ? base64(bytes) : nil
  }

  /// The value of `Sec-WebSocket-Accept` that answers a key. Nil if libcrypto refuses SHA-1.
  package static func accept(_ key: String) -> String? {
    let text = [UInt8]((key + suffix).utf8)
    var digest = [UInt8](repeating: 0, count: 20)
    var length: CUnsignedInt = 0
    guard EVP_Digest(text, text.count, &digest, &length, EVP_sha1(), nil) == 1, length == 20 else {
      return nil
    }
    return base64(digest)
  }

  /// Whether a request's key is 16 bytes in base64.
  package static func isValid(_ key: String) -> Bool {
    let bytes = [UInt8](key.utf8)
    guard bytes.count == 24, bytes.suffix(2) == [61, 61] else { return false }
    var decoded = [UInt8](repeating: 0, count: 18)
    return bytes.dropLast(2).allSatisfy { $0 != 61 } && EVP_DecodeBlock(&decoded, bytes, 24) == 18
  }

  /// Base64 with padding, without line ends.
  package static func base64(_ bytes: [UInt8]) -> String {
    var text = [UInt8](repeating: 0, count: (bytes.count + 2) / 3 * 4 + 1)
    let count = EVP_EncodeBlock(&text, bytes, CInt(bytes.count))
    return String(decoding: text.prefix(Int(count)), as: UTF8.self)
  }
}
