import CCrypto
import CSSL

/// What all TLS connections with one certificate share: libssl's settings. Nobody changes them.
final class TLSContext: @unchecked Sendable {
  /// Whose certificate it shows.
  let identity: TLSIdentity
  private let pointer: OpaquePointer

  /// Throws an `HTTPServerError` if libssl refuses the certificate.
  init(_ identity: TLSIdentity, _ clientCertificates: HTTPServerConfiguration.ClientCertificates) throws {
    ERR_clear_error()
    guard let pointer = SSL_CTX_new(TLS_server_method()) else {
      throw HTTPServerError(.systemFailure, "libssl can't start: \(OpenSSLError.take())")
    }
    self.identity = identity
    self.pointer = pointer
    try set(identity)
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
    // A client that leaves without saying so has ended its side. Requests and messages show where they end.
    SSL_CTX_set_options(
      pointer, csslNoRenegotiation | csslServerPreference | csslIgnoreUnexpectedEnd)
    // Idle connections hold no buffers, and one that goes on elsewhere in memory is no fault. Without the automatic retry,
    // a call ends after one record, so that a client can't hold a thread with records that have no data.
    SSL_CTX_ctrl(
      pointer, SSL_CTRL_MODE,
      Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS), nil
    )
    SSL_CTX_ctrl(pointer, SSL_CTRL_CLEAR_MODE, Int(SSL_MODE_AUTO_RETRY), nil)
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_READ_AHEAD, 1, nil)
    // Tickets hold sessions; the server keeps none.
    SSL_CTX_ctrl(pointer, SSL_CTRL_SET_SESS_CACHE_MODE, Int(SSL_SESS_CACHE_OFF), nil)
    SSL_CTX_set_alpn_select_cb(pointer, Self.selectProtocol, nil)
    set(clientCertificates)
  }

  deinit { SSL_CTX_free(pointer) }

  private func set(_ identity: TLSIdentity) throws {
    var isSet = true
    for (index, certificate) in identity.certificates.enumerated() where isSet {
      isSet =
        index == 0
        ? SSL_CTX_use_certificate(pointer, certificate.pointer) == 1
        : SSL_CTX_ctrl(pointer, SSL_CTRL_CHAIN_CERT, 1, UnsafeMutableRawPointer(certificate.pointer)) == 1
    }
    guard isSet, SSL_CTX_use_PrivateKey(pointer, identity.key.pointer) == 1 else {
      throw HTTPServerError(
        .fileInvalid, "libssl refuses the certificate in \(identity.source): \(OpenSSLError.take())")
    }
  }

  private func set(_ clientCertificates: HTTPServerConfiguration.ClientCertificates) {
    let mode: Int32
    switch clientCertificates {
    case .none: return
    case .requested: mode = SSL_VERIFY_PEER
    case .required: mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
    }
    SSL_CTX_set_verify(pointer, mode, nil)
    // That the client has the key is proved. Whose certificate it is, the first request asks.
    SSL_CTX_set_cert_verify_callback(pointer, { _, _ in 1 }, nil)
    // A session that is resumed has lost what led to the client's authority, so none is.
    SSL_CTX_set_options(pointer, csslNoTickets)
    SSL_CTX_set_num_tickets(pointer, 0)
  }

  /// Makes the state of a new connection.
  func makeSession() -> OpaquePointer? { SSL_new(pointer) }

  private static let http: [UInt8] = Array("http/1.1".utf8)

  /// Chooses HTTP/1.1 from what the client offers: names, each behind a byte with its length (RFC 7301).
  private static let selectProtocol:
    @convention(c) (
      OpaquePointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, UnsafeMutablePointer<UInt8>?,
      UnsafePointer<UInt8>?, UInt32, UnsafeMutableRawPointer?
    ) -> Int32 = { _, name, length, offered, count, _ in
      guard let offered, let name, let length else { return SSL_TLSEXT_ERR_ALERT_FATAL }
      let names = UnsafeBufferPointer(start: offered, count: Int(count))
      var index = 0
      while index < names.count {
        let end = index + 1 + Int(names[index])
        guard end <= names.count else { break }
        if names[(index + 1)..<end].elementsEqual(TLSContext.http) {
          name.pointee = offered + index + 1
          length.pointee = names[index]
          return SSL_TLSEXT_ERR_OK
        }
        index = end
      }
      return SSL_TLSEXT_ERR_ALERT_FATAL
    }
}

/// What libcrypto and libssl say of a failure.
enum OpenSSLError {
  /// The reason of this thread's last failure. It is forgotten then.
  static func take() -> String {
    let number = ERR_peek_last_error()
    ERR_clear_error()
    guard number != 0 else { return "no reason" }
    if let reason = ERR_reason_error_string(number) { return String(cString: reason) }
    var text = [CChar](repeating: 0, count: 256)
    ERR_error_string_n(number, &text, text.count)
    return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }
}
