import CCrypto
import Glibc
import System

/// The certificate of a server, with its key.
package struct TLSIdentity: Sendable {
  /// The certificate, and those that lead to its authority.
  let certificates: [Certificate]
  let key: PrivateKey
  private let certificateFile: String
  private let keyFile: String
  /// The SHA-256 of the certificate, as lower-case hexadecimal digits. Clients can pin it.
  package let fingerprint: String

  private static let maximumBytes = 1 << 20

  /// Where it comes from, for messages.
  var source: String { "\(certificateFile) and \(keyFile)" }

  /// Reads PEM files. Throws an `HTTPServerError` that says which file is wrong, and how.
  package init(certificateFile: String, keyFile: String) throws {
    self.certificateFile = certificateFile
    self.keyFile = keyFile
    certificates = Certificate.all(pem: try Self.read(certificateFile, "certificate"))
    guard let first = certificates.first else {
      throw HTTPServerError(.fileInvalid, "there is no certificate in PEM format in \(certificateFile)")
    }
    var pem = try Self.read(keyFile, "key")
    defer { pem.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) } }
    guard let key = PrivateKey(pem: pem) else {
      throw HTTPServerError(
        .fileInvalid,
        "there is no key in PEM format in \(keyFile), or it is encrypted; store it without a passphrase")
    }
    guard key.fits(first) else {
      throw HTTPServerError(
        .fileInvalid, "the key in \(keyFile) isn't that of the certificate in \(certificateFile)")
    }
    self.key = key
    fingerprint = first.fingerprint
  }

  /// Reads its files again. Throws an `HTTPServerError`.
  func reread() throws -> TLSIdentity {
    try TLSIdentity(certificateFile: certificateFile, keyFile: keyFile)
  }

  private static func read(_ path: String, _ what: String) throws -> [UInt8] {
    do {
      let bytes = try AtomicFile.read(path, limit: maximumBytes, mayBePipe: true)
      guard !bytes.contains(0) else {
        throw HTTPServerError(.fileInvalid, "the \(what) \(path) isn't in PEM format")
      }
      return bytes
    } catch let error as StorageError {
      throw HTTPServerError(.fileUnreadable, "can't read the \(what): \(error)")
    }
  }

  /// The self-made identity in a directory: `server-cert.pem` and `server-key.pem`. If they aren't there, or expire within
  /// 30 days, they are made: a key of the curve P-256, and a certificate for ten years that names `hostNames`, localhost
  /// and the loopback addresses. Only the owner can read the key. Throws an `HTTPServerError`.
  package static func selfMade(in directory: String, hostNames: [String] = []) throws -> TLSIdentity {
    let certificateFile = directory + "/server-cert.pem"
    let keyFile = directory + "/server-key.pem"
    if access(certificateFile, F_OK) == 0 || access(keyFile, F_OK) == 0 {
      let old = try TLSIdentity(certificateFile: certificateFile, keyFile: keyFile)
      if old.certificates.first?.secondsLeft ?? 0 > 30 * 86_400 { return old }
    }
    let (certificate, key) = try SelfSignedCertificate.make(hostNames: hostNames)
    do {
      // The key first: a certificate without its key is an error, a key alone is replaced.
      try AtomicFile.write(key, to: keyFile, permissions: 0o600)
      try AtomicFile.write(certificate, to: certificateFile, permissions: 0o644)
    } catch {
      throw HTTPServerError(.fileUnreadable, "can't keep the certificate of the server: \(error)")
    }
    return try TLSIdentity(certificateFile: certificateFile, keyFile: keyFile)
  }
}

/// A private key of libcrypto's. Nobody changes it.
final class PrivateKey: @unchecked Sendable {
  let pointer: OpaquePointer

  init?(pem: [UInt8]) {
    // The BIO reads the bytes where they are, until it ends.
    let key = pem.withUnsafeBytes { bytes -> OpaquePointer? in
      guard let bio = BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: bytes.count)) else { return nil }
      defer {
        BIO_free(bio)
        ERR_clear_error()
      }
      // A passphrase isn't asked for.
      return PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
    }
    guard let key else { return nil }
    pointer = key
  }

  deinit { EVP_PKEY_free(pointer) }

  func fits(_ certificate: Certificate) -> Bool {
    defer { ERR_clear_error() }
    return X509_check_private_key(certificate.pointer, pointer) == 1
  }
}
