import Transport

extension WebSocketRequest.Trust {
  /// Checks the certificate of a server, in DER, in what libcurl doesn't.
  func check(_ certificate: [UInt8]?, host: String) throws(TransportClose) {
    guard let certificate else { throw .network(.tlsCertificateUntrusted, "the server has no certificate") }
    switch self {
    case .system: break
    case .pinned(let bytes):
      guard CertificateBytes.read(bytes).contains(certificate) || CertificateBytes.isFor(host, certificate)
      else {
        throw .network(.tlsCertificateNameMismatch, "the server's certificate is for another host")
      }
    case .onlySelfSigned:
      guard CertificateBytes.isSelfSigned(certificate) else {
        throw .network(.tlsCertificateUntrusted, "the server's certificate isn't self-signed")
      }
      guard CertificateBytes.isValidNow(certificate) else {
        throw .network(.tlsCertificateExpired, "the server's certificate isn't valid now")
      }
    }
  }
}
