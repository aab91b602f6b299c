import CCrypto
import System

/// The certificate that a client has shown. The client has its key: that was proved when the connection began.
package struct ClientCertificate: Sendable, Hashable {
  /// The certificate, as DER.
  package let der: [UInt8]
  /// The common name of its subject; nil if there is none.
  package let commonName: String?
  /// Its subject, in one line.
  package let subject: String
  /// The SHA-256 of `der`, as lower-case hexadecimal digits.
  package let fingerprint: String
  /// Other certificates that the client has sent with it, as DER.
  package let chain: [[UInt8]]

  init?(_ chain: [[UInt8]]) {
    guard let first = chain.first, let certificate = Certificate(der: first) else { return nil }
    der = first
    commonName = certificate.commonName
    subject = certificate.subject
    fingerprint = certificate.fingerprint
    self.chain = Array(chain.dropFirst())
  }
}

/// Which certificates of clients are good.
package struct ClientCertificateCheck: Sendable {
  private let body: @Sendable (ClientCertificate) -> Bool

  /// Those that `body` accepts. It is called once a connection, on a thread that serves many: it must not wait.
  package init(_ body: @escaping @Sendable (ClientCertificate) -> Bool) { self.body = body }

  /// Those that an authority has issued, for clients, and that haven't expired. `path` is a PEM file of one or more
  /// authorities. Throws an `HTTPServerError`.
  package init(authorities path: String) throws {
    let pem: [UInt8]
    do { pem = try AtomicFile.read(path, limit: 1 << 20, mayBePipe: true) } catch {
      throw HTTPServerError(.fileUnreadable, "can't read the certificates of authorities: \(error)")
    }
    let authorities = Certificate.all(pem: pem).map(\.der)
    guard !authorities.isEmpty else {
      throw HTTPServerError(.fileInvalid, "the file \(path) has no certificate in PEM format")
    }
    body = { Self.isIssued($0, by: authorities) }
  }

  func accepts(_ certificate: ClientCertificate) -> Bool { body(certificate) }

  private static func isIssued(_ client: ClientCertificate, by authorities: [[UInt8]]) -> Bool {
    guard let certificate = Certificate(der: client.der), let store = X509_STORE_new() else { return false }
    defer { X509_STORE_free(store) }
    for authority in authorities {
      if let authority = Certificate(der: authority) { X509_STORE_add_cert(store, authority.pointer) }
    }
    let others = client.chain.prefix(16).compactMap { Certificate(der: $0) }
    guard let context = X509_STORE_CTX_new(), let stack = OPENSSL_sk_new_null() else { return false }
    defer {
      X509_STORE_CTX_free(context)
      OPENSSL_sk_free(stack)
      ERR_clear_error()
    }
    return withExtendedLifetime(others) {
      for other in others { OPENSSL_sk_push(stack, UnsafeRawPointer(other.pointer)) }
      guard X509_STORE_CTX_init(context, store, certificate.pointer, stack) == 1,
        X509_STORE_CTX_set_purpose(context, X509_PURPOSE_SSL_CLIENT) == 1
      else { return false }
      return X509_verify_cert(context) == 1
    }
  }
}

extension ServerCore {
  /// Looks at the client's certificate with the first request of a connection.
  func checkCertificate(_ connection: ServerConnection) throws(Rejection) {
    let check: ClientCertificateCheck
    let isRequired: Bool
    switch configuration.clientCertificates {
    case .none: return
    case .requested(let one): (check, isRequired) = (one, false)
    case .required(let one): (check, isRequired) = (one, true)
    }
    if connection.certificate != nil { return }
    let chain = connection.shownCertificates
    guard !chain.isEmpty else {
      if isRequired { throw Rejection(403, "this server asks for a certificate of the client") }
      return
    }
    guard let certificate = ClientCertificate(chain), check.accepts(certificate) else {
      throw Rejection(403, "the certificate of the client isn't one that this server accepts")
    }
    connection.set(certificate)
  }
}
