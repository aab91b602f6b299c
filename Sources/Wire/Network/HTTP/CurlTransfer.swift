import CCurl
import HTTP
import Transport
import WebSocket

#if canImport(Glibc)
  import Glibc
#endif

/// One request with its answer, as libcurl makes it. Used on the loop's thread only, but for its making.
final class CurlTransfer: @unchecked Sendable {
  let curl: UnsafeMutableRawPointer
  let sink: any HTTPAnswerSink
  let handle: CurlHandle
  let request: HTTPClientRequest
  let settings: HTTPClientSettings
  let errorText: UnsafeMutablePointer<CChar>
  var headerList: UnsafeMutablePointer<curl_slist>?
  var bodyBytes: UnsafeMutableRawBufferPointer?

  private var head: HTTPAnswerHead?
  private var headBytes = 0
  private var hasHead = false
  /// Why this side has ended it.
  private var failure: TransportClose?
  private var moved: (curl_off_t, curl_off_t) = (0, 0)
  private var lastMove = MonotonicTime.now
  private var isPaused = false
  /// What the source of the body has given.
  private var givenBytes: UInt64 = 0
  /// What has gone both ways, with the heads.
  private(set) var sentBytes: UInt64 = 0
  private(set) var receivedBytes: UInt64 = 0

  init(_ request: HTTPClientRequest, _ settings: HTTPClientSettings, _ sink: any HTTPAnswerSink)
    throws(TransportClose)
  {
    guard CurlHandle.isReady, let curl = curl_easy_init() else {
      throw .network(.unknown, "libcurl has failed to start")
    }
    self.curl = curl
    self.sink = sink
    self.request = request
    self.settings = settings
    handle = CurlHandle(curl: curl)
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    try configure()
    try configureBody()
    try configureHeaders()
  }

  deinit {
    curl_easy_cleanup(curl)
    curl_slist_free_all(headerList)
    bodyBytes?.deallocate()
    errorText.deallocate()
  }

  // MARK: Calls of libcurl

  /// Checks the certificate of a new connection before anything is sent over it.
  func checkServer() -> CInt {
    let certificate = handle.serverCertificate
    // A connection that was used before was checked when it was new: all requests have the same settings.
    if certificate == nil, handle.number(CURLINFO_NUM_CONNECTS) == 0 { return CURL_PREREQFUNC_OK }
    do throws(TransportClose) {
      try settings.trust.check(certificate, host: request.url.host)
      return CURL_PREREQFUNC_OK
    } catch {
      failure = error
      return CURL_PREREQFUNC_ABORT
    }
  }

  func noteProgress(_ sent: curl_off_t, _ received: curl_off_t) {
    guard (sent, received) != moved else { return }
    moved = (sent, received)
    lastMove = .now
  }

  /// Ends the transfer from one of its calls.
  private func abort(_ error: any Error) -> Int {
    if failure == nil {
      failure = error as? TransportClose ?? .network(.unknown, "\(error)")
    }
    return 0
  }

  func takeHeader(_ line: UnsafeRawBufferPointer) -> Int {
    lastMove = .now
    headBytes += line.count
    guard headBytes <= settings.maximumHeadBytes else {
      return abort(
        TransportClose.malformed("the head of an answer has more than \(settings.maximumHeadBytes) bytes"))
    }
    // What follows a body in chunks.
    if hasHead { return line.count }
    var text = line[...]
    while let last = text.last, last == 0x0A || last == 0x0D { text = text.dropLast() }
    if text.starts(with: "HTTP/".utf8) {
      guard let status = Self.status(text) else {
        return abort(TransportClose.malformed("a status line can't be read"))
      }
      head = HTTPAnswerHead(status: status)
      return line.count
    }
    guard var head else { return abort(TransportClose.malformed("an answer without a status")) }
    if text.isEmpty {
      // An interim answer is followed by another one.
      guard head.status >= 200 else { return line.count }
      hasHead = true
      sink.begin(head)
    } else if let colon = text.firstIndex(of: UInt8(ascii: ":")) {
      let name = [UInt8](text[..<colon])
      let value = [UInt8]([UInt8](text[(colon + 1)...])[...].trimmed)
      self.head = nil
      name.withUnsafeBytes { name in value.withUnsafeBytes { head.headers.add(name: name, value: $0) } }
      self.head = head
    }
    return line.count
  }

  private static func status(_ line: Slice<UnsafeRawBufferPointer>) -> Int? {
    let parts = line.split(separator: 0x20, maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count >= 2, parts[1].count == 3 else { return nil }
    return Int(String(decoding: parts[1], as: UTF8.self)).flatMap { (100...999).contains($0) ? $0 : nil }
  }

  func takeBody(_ bytes: UnsafeRawBufferPointer) -> Int {
    lastMove = .now
    do {
      if try !sink.receive(bytes), !isPaused {
        isPaused = true
        curl_easy_pause(curl, CURLPAUSE_RECV)
      }
      return bytes.count
    } catch { return bytes.isEmpty ? 1 : abort(error) }
  }

  func giveBody(_ target: UnsafeMutableRawBufferPointer) -> Int {
    lastMove = .now
    guard case .source(let source) = request.body, !target.isEmpty else { return 0 }
    do {
      let count = try source.read(into: target)
      givenBytes += UInt64(count)
      if count == 0, let length = source.length, givenBytes != length {
        throw TransportClose.malformed("a body has \(givenBytes) bytes in place of \(length)")
      }
      return count
    } catch {
      _ = abort(error)
      return Int(CURL_READFUNC_ABORT)
    }
  }

  func seek(_ offset: curl_off_t, _ origin: CInt) -> CInt {
    guard case .source(let source) = request.body, offset == 0, origin == SEEK_SET else {
      return CURL_SEEKFUNC_FAIL
    }
    do {
      try source.rewind()
      givenBytes = 0
      return CURL_SEEKFUNC_OK
    } catch { return CURL_SEEKFUNC_FAIL }
  }

  // MARK: What the loop does

  func resume() {
    guard isPaused else { return }
    isPaused = false
    lastMove = .now
    curl_easy_pause(curl, CURLPAUSE_CONT)
  }

  /// Whether nothing has moved for too long.
  func isIdle(_ now: MonotonicTime) -> Bool {
    !isPaused && now.seconds(since: lastMove) > (request.idleTimeout ?? settings.idleTimeout)
  }

  static let idle = TransportClose.network(.timeout, "nothing has come from the server for too long")

  /// Tells the sink that it has ended. `reason` is this side's.
  func end(_ code: CURLcode, _ reason: TransportClose? = nil) {
    count()
    if let error = reason ?? failure { return sink.end(error) }
    guard code == CURLE_OK else { return sink.end(error(code)) }
    guard hasHead else { return sink.end(Self.brokenOff("the answer ends within its head")) }
    sink.end(nil)
  }

  private func count() {
    var number: curl_off_t = 0
    if ccurl_get_large(curl, CURLINFO_SIZE_UPLOAD_T, &number) == CURLE_OK {
      sentBytes += UInt64(max(0, number))
    }
    if ccurl_get_large(curl, CURLINFO_SIZE_DOWNLOAD_T, &number) == CURLE_OK {
      receivedBytes += UInt64(max(0, number))
    }
    sentBytes += UInt64(max(0, handle.number(CURLINFO_REQUEST_SIZE)))
    receivedBytes += UInt64(headBytes)
  }

  private static func brokenOff(_ text: String) -> TransportClose {
    TransportClose(domain: .posix, code: Int(ECONNRESET), reason: text, isTransient: true)
  }

  private func error(_ code: CURLcode) -> TransportClose {
    let text = CurlHandle.text(code, errorText)
    switch code {
    case CURLE_PARTIAL_FILE, CURLE_GOT_NOTHING: return Self.brokenOff(text)
    // An answer that isn't HTTP: libcurl takes it for one of HTTP/0.9, or of another version.
    case CURLE_UNSUPPORTED_PROTOCOL, CURLE_WEIRD_SERVER_REPLY:
      return .malformed("the answer isn't HTTP: \(text)")
    case CURLE_RECV_ERROR where text.contains("chunked"): return .malformed(text)
    case CURLE_RECV_ERROR, CURLE_SEND_ERROR:
      let lost = handle.lost(code, text)
      if let lost, lost.domain == .network { return lost }
      // The connection broke off, whatever the system calls it.
      if handle.number(CURLINFO_HTTP_CONNECTCODE) < 300 {
        return Self.brokenOff(text)
      }
    default: break
    }
    return handle.failure(code, text, host: request.url.host)
  }
}
