import CCurl
import Synchronization
import System
import Transport

#if canImport(Glibc)
  import Glibc
#endif

/// A connection that libcurl makes: through a proxy and with TLS, if asked for. After that it carries bytes.
///
/// Not for concurrent use, but for use from one thread after another.
final class CurlConnection: @unchecked Sendable {
  private let curl: UnsafeMutableRawPointer
  var handle: CurlHandle { CurlHandle(curl: curl) }
  private let errorText: UnsafeMutablePointer<CChar>
  private let isCancelled: JobCancellation
  private(set) var descriptor: CInt = -1

  init(_ cancellation: JobCancellation) throws(TransportClose) {
    guard CurlHandle.isReady, let curl = curl_easy_init() else {
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
    if url.isSecure { try handle.configureTLS(request.trust, sendsSecrets ? request.identity : nil) }
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
    try handle.set(CURLOPT_URL, "\(url.isSecure ? "https" : "http")://\(host):\(url.port)/")
    // No signals: the process has more threads than this one.
    handle.set(CURLOPT_NOSIGNAL, 1)
    handle.set(CURLOPT_CONNECT_ONLY, 1)
    handle.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    handle.set(CURLOPT_TCP_NODELAY, 1)
    handle.set(CURLOPT_FRESH_CONNECT, 1)
    handle.set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(seconds * 1000)))
    handle.set(CURLOPT_NOPROGRESS, 0)
    ccurl_set_progress(
      curl,
      { context, _, _, _, _ in
        guard let context else { return 0 }
        return Unmanaged<JobCancellation>.fromOpaque(context).takeUnretainedValue().isCancelled ? 1 : 0
      }, Unmanaged.passUnretained(isCancelled).toOpaque())
    if let networkInterface = request.networkInterface { try handle.set(CURLOPT_INTERFACE, networkInterface) }
    // A tunnel, also to a server without TLS.
    handle.set(CURLOPT_HTTPPROXYTUNNEL, 1)
    try handle.configure(request.proxy)
  }

  // MARK: The server's certificate

  /// The server's own certificate in DER; nil without TLS.
  var serverCertificate: [UInt8]? { handle.serverCertificate }

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
  func text(_ code: CURLcode) -> String { CurlHandle.text(code, errorText) }

  func number(_ information: CURLINFO) -> Int { handle.number(information) }
}
