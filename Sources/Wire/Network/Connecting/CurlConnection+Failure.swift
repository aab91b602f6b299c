import CCurl
import Transport
import WebSocket

#if canImport(Glibc)
  import Glibc
#endif

/// What libcurl's errors are for a transport (docs/websocket.md has the table).
extension CurlConnection {
  /// The end that a failed call is.
  func failure(_ code: CURLcode, _ url: WebSocketURL) -> TransportClose {
    handle.failure(code, text(code), host: url.host)
  }

  /// The end that a broken connection is; nil if the system has no error for it.
  func lost(_ code: CURLcode) -> TransportClose? { handle.lost(code, text(code)) }
}

extension CurlHandle {
  /// The end that a failed call is. `text` says it in words.
  func failure(_ code: CURLcode, _ text: String, host: String) -> TransportClose {
    let status = number(CURLINFO_HTTP_CONNECTCODE)
    switch code {
    case CURLE_COULDNT_RESOLVE_HOST: return .network(Self.lookupFailure(host), text)
    case CURLE_COULDNT_RESOLVE_PROXY: return .network(.dnsFailure, text)
    case CURLE_OPERATION_TIMEDOUT: return .network(.timeout, text)
    case CURLE_URL_MALFORMAT: return .network(.invalidURL, text)
    case CURLE_PEER_FAILED_VERIFICATION: return .network(verificationFailure(text), text)
    case CURLE_SSL_CERTPROBLEM: return .network(.tlsClientCertificateRejected, text)
    case CURLE_SSL_CONNECT_ERROR: return .network(Self.alert(text) ?? .tlsHandshakeFailed, text)
    case CURLE_INTERFACE_FAILED: return .network(.unknownInterface, text)
    case CURLE_ABORTED_BY_CALLBACK: return .cancelled
    case CURLE_RECV_ERROR where status >= 300, CURLE_COULDNT_CONNECT where status >= 300:
      return .http(status, "the proxy refuses: \(status)")
    default: return lost(code, text) ?? .network(.unknown, text)
    }
  }

  /// The end that a broken connection is; nil if the system has no error for it.
  func lost(_ code: CURLcode, _ text: String) -> TransportClose? {
    if let alert = Self.alert(text) { return .network(alert, text) }
    let number = CInt(truncatingIfNeeded: number(CURLINFO_OS_ERRNO))
    return number == 0 ? nil : .posix(number, code == CURLE_COULDNT_CONNECT ? "connecting" : "the connection")
  }

  /// Why a name can't be looked up. libcurl doesn't say, so the system is asked again.
  private static func lookupFailure(_ host: String) -> NetworkCode {
    var found: UnsafeMutablePointer<addrinfo>?
    let code = getaddrinfo(host, nil, nil, &found)
    if let found { freeaddrinfo(found) }
    // -5 is EAI_NODATA: the name has no address.
    return code == EAI_NONAME || code == -5 ? .unknownHost : .dnsFailure
  }

  private func verificationFailure(_ text: String) -> NetworkCode {
    // Numbers of OpenSSL: X509_V_ERR_….
    switch number(CURLINFO_SSL_VERIFYRESULT) {
    case 10: .tlsCertificateExpired
    case 18, 19, 20: .tlsCertificateUnknownRoot
    case 23: .tlsCertificateRevoked
    case 62, 64: .tlsCertificateNameMismatch
    case 0: .tlsCertificateNameMismatch
    default: .tlsCertificateUntrusted
    }
  }

  /// What an alert of the server's TLS says about the client's certificate; nil if it says nothing.
  private static func alert(_ text: String) -> NetworkCode? {
    guard text.contains("alert") else { return nil }
    if text.contains("certificate required") { return .tlsClientCertificateRequired }
    let refusals = [
      "alert bad certificate", "alert unsupported certificate", "alert certificate revoked",
      "alert certificate expired", "alert certificate unknown", "alert unknown ca", "alert access denied",
    ]
    return refusals.contains { text.contains($0) } ? .tlsClientCertificateRejected : nil
  }
}

extension TransportClose {
  static let cancelled = TransportClose(
    domain: .posix, code: Int(ECANCELED), reason: "connecting was cancelled", isTransient: false)
}
