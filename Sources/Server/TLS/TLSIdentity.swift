import CCrypto
import Glibc
import Storage

/// The certificate of a server, with its key.
package struct TLSIdentity: Sendable {
  /// The certificate, and those that lead to its authority, in PEM format.
  let certificatePEM: String
  let keyPEM: String
  /// Where it comes from, for messages.
  let source: String
  /// The SHA-256 of the certificate, as lower-case hexadecimal digits. Clients can pin it.
  package let fingerprint: String

  private static let maximumBytes = 1 << 20

  /// Reads PEM files. Throws an `HTTPServerError` that says which file is wrong, and how.
  package init(certificateFile: String, keyFile: String) throws {
    let certificate = try Self.read(certificateFile, "certificate")
    let key = try Self.read(keyFile, "key")
    try self.init(certificate, key, source: "\(certificateFile) and \(keyFile)")
  }

  private init(_ certificate: [UInt8], _ key: [UInt8], source: String) throws {
    guard let first = Certificate.all(pem: certificate).first else {
      throw HTTPServerError(.fileInvalid, "there is no certificate in PEM format in \(source)")
    }
    guard let bio = BIO_new_mem_buf(key, Int32(clamping: key.count)) else {
      throw HTTPServerError(.systemFailure, "libcrypto has no memory")
    }
    defer {
      BIO_free(bio)
      ERR_clear_error()
    }
    // A passphrase isn't asked for.
    guard let loaded = PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil) else {
      throw HTTPServerError(
        .fileInvalid,
        "there is no key in PEM format in \(source), or it is encrypted; store it without a passphrase")
    }
    defer { EVP_PKEY_free(loaded) }
    guard X509_check_private_key(first.pointer, loaded) == 1 else {
      throw HTTPServerError(.fileInvalid, "the key isn't that of the certificate in \(source)")
    }
    certificatePEM = String(decoding: certificate, as: UTF8.self)
    keyPEM = String(decoding: key, as: UTF8.self)
    fingerprint = first.fingerprint
    self.source = source
  }

  private static func read(_ path: String, _ what: String) throws -> [UInt8] {
    do {
      let bytes = try AtomicFile.read(path, limit: maximumBytes)
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
      let left = Certificate.all(pem: Array(old.certificatePEM.utf8)).first?.secondsLeft ?? 0
      if left > 30 * 86_400 { return old }
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
