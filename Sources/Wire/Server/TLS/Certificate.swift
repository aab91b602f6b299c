import Bytes
import CCrypto

/// An X.509 certificate of libcrypto's. Nobody changes it.
final class Certificate: @unchecked Sendable {
  let pointer: OpaquePointer

  /// Takes over a reference.
  init(_ pointer: OpaquePointer) { self.pointer = pointer }
  deinit { X509_free(pointer) }

  convenience init?(der: [UInt8]) {
    let pointer = der.withUnsafeBufferPointer { bytes in
      var next = bytes.baseAddress
      return d2i_X509(nil, &next, bytes.count)
    }
    guard let pointer else { return nil }
    self.init(pointer)
  }

  /// All certificates of a PEM text, in their order.
  static func all(pem: [UInt8]) -> [Certificate] {
    // The BIO reads the bytes where they are, until it ends.
    pem.withUnsafeBytes { bytes in
      guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return [] }
      defer { BIO_free(bio) }
      var found: [Certificate] = []
      while found.count < 1_024, let pointer = PEM_read_bio_X509(bio, nil, nil, nil) {
        found.append(Certificate(pointer))
      }
      ERR_clear_error()
      return found
    }
  }

  var der: [UInt8] {
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = i2d_X509(pointer, &bytes)
    guard count > 0, let bytes else { return [] }
    defer { CRYPTO_free(bytes, nil, 0) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }

  /// The SHA-256 of the whole certificate, as hexadecimal digits.
  var fingerprint: String {
    var digest = [UInt8](repeating: 0, count: 32)
    var count: UInt32 = 32
    X509_digest(pointer, EVP_sha256(), &digest, &count)
    return Hex.text(digest)
  }

  var commonName: String? {
    let name = X509_get_subject_name(pointer)
    let index = X509_NAME_get_index_by_NID(name, NID_commonName, -1)
    guard index >= 0, let entry = X509_NAME_get_entry(name, index) else { return nil }
    var bytes: UnsafeMutablePointer<UInt8>?
    let count = ASN1_STRING_to_UTF8(&bytes, X509_NAME_ENTRY_get_data(entry))
    guard count >= 0, let bytes else { return nil }
    defer { CRYPTO_free(bytes, nil, 0) }
    let text = UnsafeBufferPointer(start: bytes, count: Int(count))
    // A zero byte would let one name look like another.
    return text.contains(0) ? nil : String(decoding: text, as: UTF8.self)
  }

  var subject: String {
    var text = [CChar](repeating: 0, count: 1_024)
    X509_NAME_oneline(X509_get_subject_name(pointer), &text, Int32(text.count))
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  /// Seconds until it expires.
  var secondsLeft: Int {
    var (days, seconds): (Int32, Int32) = (0, 0)
    guard ASN1_TIME_diff(&days, &seconds, nil, X509_get0_notAfter(pointer)) == 1 else { return 0 }
    return Int(days) * 86_400 + Int(seconds)
  }
}
