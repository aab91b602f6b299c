import Transport

/// The codes of the domain `network`, with the numbers of LiteCore.
package enum NetworkCode: Int, Sendable, CaseIterable {
  /// The name of a host couldn't be looked up now.
  case dnsFailure = 1
  /// There is no such host.
  case unknownHost = 2
  /// Connecting took too long.
  case timeout = 3
  /// The URL isn't one of a WebSocket, or the request can't be sent.
  case invalidURL = 4
  /// There were more than ten redirects.
  case tooManyRedirects = 5
  /// The TLS handshake failed, for another reason than those below.
  case tlsHandshakeFailed = 6
  /// The server's certificate has expired.
  case tlsCertificateExpired = 7
  /// The server's certificate isn't trusted.
  case tlsCertificateUntrusted = 8
  /// The server wants a certificate of the client.
  case tlsClientCertificateRequired = 9
  /// The server doesn't take the client's certificate, or it can't be read.
  case tlsClientCertificateRejected = 10
  /// The server's certificate is self-signed, or comes from an authority that isn't known.
  case tlsCertificateUnknownRoot = 11
  /// A redirect leads to no WebSocket.
  case invalidRedirect = 12
  /// Another failure.
  case unknown = 13
  /// The server's certificate was revoked.
  case tlsCertificateRevoked = 14
  /// The server's certificate is for another host.
  case tlsCertificateNameMismatch = 15
  /// There is no such network interface.
  case unknownInterface = 27

  /// Whether another try may help.
  var isTransient: Bool { self == .dnsFailure || self == .timeout }
}

extension TransportClose {
  static func network(_ code: NetworkCode, _ reason: String) -> TransportClose {
    TransportClose(domain: .network, code: code.rawValue, reason: reason, isTransient: code.isTransient)
  }

  /// An HTTP status that ends the connection.
  static func http(_ status: Int, _ reason: String) -> TransportClose {
    let transient = [408, 429, 500, 502, 503, 504]
    return TransportClose(
      domain: .http, code: status, reason: reason, isTransient: transient.contains(status))
  }
}
