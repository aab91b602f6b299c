import CCrypto
import Glibc

/// Makes a key of the curve P-256 and a certificate that it signs itself.
enum SelfSignedCertificate {
  private static let seconds = 3_650 * 86_400
  private static let maximumNames = 100

  /// Returns the certificate and the key, in PEM format.
  static func make(hostNames: [String]) throws -> (certificate: [UInt8], key: [UInt8]) {
    guard hostNames.count <= maximumNames, hostNames.allSatisfy(isName) else {
      throw HTTPServerError(
        .invalidConfiguration,
        "a certificate names at most \(maximumNames) hosts, of letters, digits, dots, colons and hyphens")
    }
    guard let key = makeKey() else { throw failure("make a key") }
    defer { EVP_PKEY_free(key) }
    guard let certificate = X509_new() else { throw failure("make a certificate") }
    defer { X509_free(certificate) }
    try fill(certificate, key, hostNames)
    guard X509_sign(certificate, key, EVP_sha256()) > 0 else { throw failure("sign a certificate") }
    return (
      try pem { PEM_write_bio_X509($0, certificate) },
      try pem { PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
    )
  }

  private static func makeKey() -> OpaquePointer? {
    guard let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil) else { return nil }
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
      EVP_PKEY_generate(context, &key) == 1
    else { return nil }
    return key
  }

  private static func fill(_ certificate: OpaquePointer, _ key: OpaquePointer, _ hostNames: [String]) throws {
    var random = [UInt8](repeating: 0, count: 16)
    guard RAND_bytes(&random, 16) == 1 else { throw failure("make a serial number") }
    // Positive, and without a zero in front.
    random[0] = random[0] & 0x7F | 0x40
    let number = BN_bin2bn(random, 16, nil)
    defer { BN_free(number) }
    guard X509_set_version(certificate, 2) == 1,
      BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != nil,
      // An hour back, for clocks that are slow.
      X509_gmtime_adj(X509_getm_notBefore(certificate), -3_600) != nil,
      X509_gmtime_adj(X509_getm_notAfter(certificate), seconds) != nil,
      X509_set_pubkey(certificate, key) == 1
    else { throw failure("fill a certificate") }
    let name = X509_get_subject_name(certificate)
    let text = "Touchstone \(hostNames.first ?? "localhost")"
    let isNamed = text.withCString {
      $0.withMemoryRebound(to: UInt8.self, capacity: text.utf8.count) {
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, $0, Int32(min(64, text.utf8.count)), -1, 0)
      }
    }
    guard isNamed == 1, X509_set_issuer_name(certificate, name) == 1 else {
      throw failure("name a certificate")
    }
    var names = ["DNS:localhost", "IP:127.0.0.1", "IP:::1"]
    for name in hostNames {
      var v4 = in_addr()
      var v6 = in6_addr()
      let isAddress = inet_pton(AF_INET, name, &v4) == 1 || inet_pton(AF_INET6, name, &v6) == 1
      names.append((isAddress ? "IP:" : "DNS:") + name)
    }
    let extensions = [
      (NID_basic_constraints, "critical,CA:FALSE"), (NID_key_usage, "critical,digitalSignature"),
      (NID_ext_key_usage, "serverAuth"), (NID_subject_alt_name, names.joined(separator: ",")),
    ]
    for (number, value) in extensions {
      guard let one = X509V3_EXT_conf_nid(nil, nil, number, value) else {
        throw failure("name the hosts of a certificate")
      }
      defer { X509_EXTENSION_free(one) }
      guard X509_add_ext(certificate, one, -1) == 1 else { throw failure("fill a certificate") }
    }
  }

  /// What libcrypto's syntax for extensions can't take for something else.
  private static func isName(_ name: String) -> Bool {
    1...253 ~= name.utf8.count
      && name.utf8.allSatisfy { byte in
        (0x30...0x3A).contains(byte) || (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte)
          || byte == 0x2D || byte == 0x2E
      }
  }

  private static func pem(_ write: (OpaquePointer) -> Int32) throws -> [UInt8] {
    guard let bio = BIO_new(BIO_s_mem()) else { throw failure("write a certificate") }
    defer { BIO_free(bio) }
    guard write(bio) == 1 else { throw failure("write a certificate") }
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = BIO_read(bio, &bytes, Int32(bytes.count))
    guard count > 0 else { throw failure("write a certificate") }
    return Array(bytes[..<Int(count)])
  }

  private static func failure(_ what: String) -> HTTPServerError {
    let number = ERR_get_error()
    ERR_clear_error()
    var text = [CChar](repeating: 0, count: 256)
    ERR_error_string_n(number, &text, text.count)
    let reason = String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    return HTTPServerError(.systemFailure, "libcrypto can't \(what): \(reason)")
  }
}
