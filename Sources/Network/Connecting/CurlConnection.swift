import BLIP
import CCurl
import Storage
import Synchronization

#if canImport(Glibc)
  import Glibc
#endif

/// A connection that libcurl makes: through a proxy and with TLS, if asked for. After that it carries bytes.
///
/// Not for concurrent use, but for use from one thread after another.
final class CurlConnection: @unchecked Sendable {
  private static let isReady: Bool = ccurl_global_init() == CURLE_OK

  private let curl: UnsafeMutableRawPointer
  private let errorText: UnsafeMutablePointer<CChar>
  private let isCancelled: JobCancellation
  private(set) var descriptor: CInt = -1

  init(_ cancellation: JobCancellation) throws(TransportClose) {
    guard Self.isReady, let curl = curl_easy_init() else {
      throw .network(.unknown, "libcurl has failed to start")
    }
    self.curl = curl
    isCancelled = cancellation
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
  }

  deinit {
    curl_easy_cleanup(curl)
    errorText.deallocate()
  }

  // MARK: Connecting

  /// Connects to the host of a URL, with at most `seconds` for all of it, also the handshakes of proxy and TLS. Waits.
  ///
  /// `sendsSecrets` says whether the client's certificate may be shown.
  func connect(_ url: WebSocketURL, _ request: WebSocketRequest, seconds: Double, sendsSecrets: Bool)
    throws(TransportClose)
  {
    try configure(url, request, seconds)
    if url.isSecure { try configureTLS(request, sendsSecrets) }
    let code = curl_easy_perform(curl)
    guard code == CURLE_OK else { throw failure(code, url) }
    var socket: curl_socket_t = -1
    guard ccurl_get_socket(curl, &socket) == CURLE_OK, socket >= 0 else {
      throw .network(.unknown, "libcurl has no socket")
    }
    descriptor = socket
    _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
  }

  private func configure(_ url: WebSocketURL, _ request: WebSocketRequest, _ seconds: Double)
    throws(TransportClose)
  {
    ccurl_set_pointer(curl, CURLOPT_ERRORBUFFER, errorText)
    let host = url.host.contains(":") ? "[\(url.host)]" : url.host
    try set(CURLOPT_URL, "\(url.isSecure ? "https" : "http")://\(host):\(url.port)/")
    // No signals: the process has more threads than this one.
    set(CURLOPT_NOSIGNAL, 1)
    set(CURLOPT_CONNECT_ONLY, 1)
    set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    set(CURLOPT_TCP_NODELAY, 1)
    set(CURLOPT_FRESH_CONNECT, 1)
    set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(seconds * 1000)))
    set(CURLOPT_NOPROGRESS, 0)
    ccurl_set_progress(
      curl,
      { context, _, _, _, _ in
        guard let context else { return 0 }
        return Unmanaged<JobCancellation>.fromOpaque(context).takeUnretainedValue().isCancelled ? 1 : 0
      }, Unmanaged.passUnretained(isCancelled).toOpaque())
    if let networkInterface = request.networkInterface { try set(CURLOPT_INTERFACE, networkInterface) }
    try configureProxy(request.proxy)
  }

  private func configureProxy(_ proxy: WebSocketRequest.Proxy) throws(TransportClose) {
    // A tunnel, also to a server without TLS.
    set(CURLOPT_HTTPPROXYTUNNEL, 1)
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

  private func configureTLS(_ request: WebSocketRequest, _ sendsSecrets: Bool) throws(TransportClose) {
    set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
    set(CURLOPT_CERTINFO, 1)
    // An HTTPS proxy is trusted as the system says, whatever is trusted for the server.
    switch request.trust {
    case .system:
      set(CURLOPT_SSL_VERIFYPEER, 1)
      set(CURLOPT_SSL_VERIFYHOST, 2)
    case .pinned(let bytes):
      let certificates = Certificate.read(bytes)
      guard !certificates.isEmpty else {
        throw .network(.tlsCertificateUntrusted, "the pinned certificate can't be read")
      }
      set(CURLOPT_SSL_VERIFYPEER, 1)
      // The host is checked after the handshake: see `checkServer`.
      set(CURLOPT_SSL_VERIFYHOST, 0)
      ccurl_set_pointer(curl, CURLOPT_CAINFO, nil)
      ccurl_set_pointer(curl, CURLOPT_CAPATH, nil)
      try set(CURLOPT_CAINFO_BLOB, certificates.flatMap(Certificate.pem))
    case .onlySelfSigned:
      set(CURLOPT_SSL_VERIFYPEER, 0)
      set(CURLOPT_SSL_VERIFYHOST, 0)
    }
    guard sendsSecrets, let identity = request.identity else { return }
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

  private func set(_ option: CURLoption, _ value: Int) { ccurl_set_long(curl, option, value) }

  private func set(_ option: CURLoption, _ text: String) throws(TransportClose) {
    guard !text.utf8.contains(0) else { throw .network(.invalidURL, "a NUL in a setting") }
    guard ccurl_set_pointer(curl, option, text) == CURLE_OK else {
      throw .network(.unknown, "libcurl doesn't take a setting")
    }
  }

  private func set(_ option: CURLoption, _ bytes: [UInt8]) throws(TransportClose) {
    guard ccurl_set_blob(curl, option, bytes, bytes.count) == CURLE_OK else {
      throw .network(.unknown, "libcurl doesn't take a setting")
    }
  }

  // MARK: The server's certificate

  /// The server's own certificate in DER; nil without TLS.
  var serverCertificate: [UInt8]? {
    var information: UnsafeMutablePointer<curl_certinfo>?
    guard ccurl_get_certificates(curl, &information) == CURLE_OK, let information,
      information.pointee.num_of_certs > 0, let first = information.pointee.certinfo
    else { return nil }
    var entry = first[0]
    while let current = entry {
      if let text = current.pointee.data.map({ String(cString: $0) }), text.hasPrefix("Cert:") {
        return Certificate.read([UInt8](text.utf8.dropFirst(5))).first
      }
      entry = current.pointee.next
    }
    return nil
  }

  // MARK: Bytes

  func read(into target: UnsafeMutableRawBufferPointer) -> (code: CURLcode, count: Int) {
    var count = 0
    return (curl_easy_recv(curl, target.baseAddress, target.count, &count), count)
  }

  func write(_ bytes: UnsafeRawBufferPointer) -> (code: CURLcode, count: Int) {
    var count = 0
    return (curl_easy_send(curl, bytes.baseAddress, bytes.count, &count), count)
  }

  /// libcurl's words for the last error; its words for the code if there are none.
  func text(_ code: CURLcode) -> String {
    let text = String(cString: errorText)
    return text.isEmpty ? String(cString: curl_easy_strerror(code)) : text
  }

  func number(_ information: CURLINFO) -> Int {
    var value = 0
    return ccurl_get_long(curl, information, &value) == CURLE_OK ? value : 0
  }
}
