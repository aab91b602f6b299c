import Blobs
import CCrypto

/// The MD5 of a stream of bytes. Used on one thread at a time.
final class MD5 {
  private let context: OpaquePointer?
  private var result: String?

  init() {
    context = EVP_MD_CTX_new()
    if let context { EVP_DigestInit_ex(context, EVP_md5(), nil) }
  }

  deinit { EVP_MD_CTX_free(context) }

  func update(_ bytes: UnsafeRawBufferPointer) {
    if let context { EVP_DigestUpdate(context, bytes.baseAddress, bytes.count) }
  }

  /// In base64; empty if libcrypto has no MD5.
  var base64: String {
    if let result { return result }
    var digest = [UInt8](repeating: 0, count: 16)
    var count: UInt32 = 0
    guard let context, EVP_DigestFinal_ex(context, &digest, &count) == 1, count == 16 else { return "" }
    let text = Blobs.base64(digest)
    result = text
    return text
  }
}

/// Base64 as attachments in JSON have it.
enum Base64 {
  /// Nil if it isn't base64 with its padding.
  static func decoded(_ text: String) -> [UInt8]? {
    let input = Array(text.utf8)
    guard input.count % 4 == 0, input.count <= Int(Int32.max) else { return nil }
    let padding = input.reversed().prefix { $0 == UInt8(ascii: "=") }.count
    guard padding <= 2, input.dropLast(padding).allSatisfy(isDigit) else { return nil }
    var bytes = [UInt8](repeating: 0, count: input.count / 4 * 3)
    guard EVP_DecodeBlock(&bytes, input, Int32(input.count)) == Int32(bytes.count) else { return nil }
    bytes.removeLast(padding)
    return bytes
  }

  private static func isDigit(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x41...0x5A, 0x61...0x7A, 0x30...0x39, UInt8(ascii: "+"), UInt8(ascii: "/"): true
    default: false
    }
  }
}
