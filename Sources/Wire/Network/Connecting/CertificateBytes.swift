import CCrypto

/// Certificates of X.509, as libcrypto reads them.
enum CertificateBytes {
  /// The certificates in bytes that are one in DER, or some in PEM, as DER. Empty if there are none.
  static func read(_ bytes: [UInt8]) -> [[UInt8]] {
    if let certificate = fromDER(bytes) {
      defer { X509_free(certificate) }
      return toDER(certificate).map { [$0] } ?? []
    }
    // The BIO reads the bytes where they are, until it ends.
    return bytes.withUnsafeBytes { bytes in
      guard let memory = BIO_new_mem_buf(bytes.baseAddress, CInt(clamping: bytes.count)) else { return [] }
      defer { BIO_free(memory) }
      var certificates: [[UInt8]] = []
      // A bundle of authorities has a few hundred.
      while certificates.count < 1000, let certificate = PEM_read_bio_X509(memory, nil, nil, nil) {
        defer { X509_free(certificate) }
        if let der = toDER(certificate) { certificates.append(der) }
      }
      // The end of the text is an error to libcrypto.
      ERR_clear_error()
      return certificates
    }
  }

  /// A certificate in PEM.
  static func pem(_ der: [UInt8]) -> [UInt8] {
    guard let certificate = fromDER(der) else { return [] }
    defer { X509_free(certificate) }
    guard let memory = BIO_new(BIO_s_mem()) else { return [] }
    defer { BIO_free(memory) }
    guard PEM_write_bio_X509(memory, certificate) == 1 else { return [] }
    var bytes = [UInt8](repeating: 0, count: Int(BIO_ctrl_pending(memory)))
    let count = BIO_read(memory, &bytes, CInt(clamping: bytes.count))
    return [UInt8](bytes.prefix(Int(max(0, count))))
  }

  /// Whether a certificate is signed with its own key.
  static func isSelfSigned(_ der: [UInt8]) -> Bool {
    guard let certificate = fromDER(der) else { return false }
    defer { X509_free(certificate) }
    let isSelfSigned = X509_self_signed(certificate, 1) == 1
    ERR_clear_error()
    return isSelfSigned
  }

  /// Whether the dates of a certificate include now.
  static func isValidNow(_ der: [UInt8]) -> Bool {
    guard let certificate = fromDER(der) else { return false }
    defer { X509_free(certificate) }
    return X509_cmp_time(X509_get0_notBefore(certificate), nil) < 0
      && X509_cmp_time(X509_get0_notAfter(certificate), nil) > 0
  }

  /// Whether a certificate is for a host: a name, or an address.
  static func isFor(_ host: String, _ der: [UInt8]) -> Bool {
    guard let certificate = fromDER(der) else { return false }
    defer { X509_free(certificate) }
    return X509_check_host(certificate, host, host.utf8.count, 0, nil) == 1
      || X509_check_ip_asc(certificate, host, 0) == 1
  }

  /// The SHA-256 of a certificate in DER. Empty if libcrypto refuses.
  static func fingerprint(_ der: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    guard EVP_Digest(der, der.count, &digest, nil, EVP_sha256(), nil) == 1 else { return [] }
    return digest
  }

  private static func fromDER(_ bytes: [UInt8]) -> OpaquePointer? {
    bytes.withUnsafeBufferPointer { bytes in
      var next = bytes.baseAddress
      let certificate = d2i_X509(nil, &next, bytes.count)
      guard let certificate else {
        ERR_clear_error()
        return nil
      }
      return certificate
    }
  }

  private static func toDER(_ certificate: OpaquePointer) -> [UInt8]? {
    let count = i2d_X509(certificate, nil)
    guard count > 0 else { return nil }
    var bytes = [UInt8](repeating: 0, count: Int(count))
    let written = bytes.withUnsafeMutableBufferPointer { bytes in
      var next = bytes.baseAddress
      return i2d_X509(certificate, &next)
    }
    return written == count ? bytes : nil
  }
}
