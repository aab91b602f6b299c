import CCurl
import Transport

/// The settings of libcurl that WebSocket connections and HTTP requests share. It doesn't own the handle.
struct CurlHandle {
  /// Whether libcurl has started.
  static let isReady: Bool = ccurl_global_init() == CURLE_OK

  let curl: UnsafeMutableRawPointer

  /// Sets the proxy.
  func configure(_ proxy: WebSocketRequest.Proxy) throws(TransportClose) {
    set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1)
    switch proxy {
    case .environment: break
    case .none: try set(CURLOPT_PROXY, "")
    case .url(let url, let name, let password):
      guard Self.isProxy(url) else { throw .network(.invalidURL, "the proxy's URL") }
      try set(CURLOPT_PROXY, url)
      // The list of hosts without a proxy is for the environment's.
      try set(CURLOPT_NOPROXY, "")
      if let name { try set(CURLOPT_PROXYUSERNAME, name) }
      if let password { try set(CURLOPT_PROXYPASSWORD, password.value) }
    }
  }

  private static func isProxy(_ url: String) -> Bool {
    let schemes = ["http://", "https://", "socks4://", "socks4a://", "socks5://", "socks5h://"]
    return schemes.contains { url.lowercased().hasPrefix($0) } && !url.contains("@")
      && url.utf8.allSatisfy { $0 > 32 && $0 < 127 }
  }

  /// Sets which server is trusted, and the client's certificate. What libcurl can't check is left to `Trust.check`.
  func configureTLS(_ trust: WebSocketRequest.Trust, _ identity: WebSocketRequest.Identity?)
    throws(TransportClose)
  {
    set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    set(CURLOPT_CERTINFO, 1)
    // An HTTPS proxy is trusted as the system says, whatever is trusted for the server.
    switch trust {
    case .system:
      set(CURLOPT_SSL_VERIFYPEER, 1)
      set(CURLOPT_SSL_VERIFYHOST, 2)
    case .pinned(let bytes):
      let certificates = CertificateBytes.read(bytes)
      guard !certificates.isEmpty else {
        throw .network(.tlsCertificateUntrusted, "the pinned certificate can't be read")
      }
      set(CURLOPT_SSL_VERIFYPEER, 1)
      // The host is checked after the handshake: see `Trust.check`.
      set(CURLOPT_SSL_VERIFYHOST, 0)
      ccurl_set_pointer(curl, CURLOPT_CAINFO, nil)
      ccurl_set_pointer(curl, CURLOPT_CAPATH, nil)
      try set(CURLOPT_CAINFO_BLOB, certificates.flatMap(CertificateBytes.pem))
    case .onlySelfSigned:
      set(CURLOPT_SSL_VERIFYPEER, 0)
      set(CURLOPT_SSL_VERIFYHOST, 0)
    }
    guard let identity else { return }
    let password: Secret?
    switch identity {
    case .pem(let certificate, let key, let secret):
      try set(CURLOPT_SSLCERTTYPE, "PEM")
      try set(CURLOPT_SSLCERT_BLOB, certificate)
      try set(CURLOPT_SSLKEYTYPE, "PEM")
      try set(CURLOPT_SSLKEY_BLOB, [UInt8](key.value.utf8))
      password = secret
    case .pkcs12(let bytes, let secret):
      try set(CURLOPT_SSLCERTTYPE, "P12")
      try set(CURLOPT_SSLCERT_BLOB, bytes)
      password = secret
    case .pkcs12File(let path, let secret):
      try set(CURLOPT_SSLCERTTYPE, "P12")
      try set(CURLOPT_SSLCERT, path)
      password = secret
    }
    // Without one, OpenSSL would ask on the terminal.
    try set(CURLOPT_KEYPASSWD, password?.value ?? "")
  }

  func set(_ option: CURLoption, _ value: Int) { ccurl_set_long(curl, option, value) }

  func set(_ option: CURLoption, _ text: String) throws(TransportClose) {
    guard !text.utf8.contains(0) else { throw .network(.invalidURL, "a NUL in a setting") }
    guard ccurl_set_pointer(curl, option, text) == CURLE_OK else {
      throw .network(.unknown, "libcurl doesn't take a setting")
    }
  }

  func set(_ option: CURLoption, _ bytes: [UInt8]) throws(TransportClose) {
    guard ccurl_set_blob(curl, option, bytes, bytes.count) == CURLE_OK else {
      throw .network(.unknown, "libcurl doesn't take a setting")
    }
  }

  // MARK: What it says

  /// The server's own certificate in DER; nil without TLS.
  var serverCertificate: [UInt8]? {
    var information: UnsafeMutablePointer<curl_certinfo>?
    guard ccurl_get_certificates(curl, &information) == CURLE_OK, let information,
      information.pointee.num_of_certs > 0, let first = information.pointee.certinfo
    else { return nil }
    var entry = first[0]
    while let current = entry {
      if let text = current.pointee.data.map({ String(cString: $0) }), text.hasPrefix("Cert:") {
        return CertificateBytes.read([UInt8](text.utf8.dropFirst(5))).first
      }
      entry = current.pointee.next
    }
    return nil
  }

  /// libcurl's words for the last error; its words for the code if there are none.
  static func text(_ code: CURLcode, _ errorText: UnsafePointer<CChar>) -> String {
    let text = String(cString: errorText)
    return text.isEmpty ? String(cString: curl_easy_strerror(code)) : text
  }

  func number(_ information: CURLINFO) -> Int {
    var value = 0
    return ccurl_get_long(curl, information, &value) == CURLE_OK ? value : 0
  }
}
