import CCurl
import Transport
import WebSocket

/// What libcurl is told of a request, before it begins.
extension CurlTransfer {
  private var context: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  private static func transfer(_ context: UnsafeMutableRawPointer?) -> CurlTransfer? {
    context.map { Unmanaged<CurlTransfer>.fromOpaque($0).takeUnretainedValue() }
  }

  func configure() throws(TransportClose) {
    ccurl_set_pointer(curl, CURLOPT_ERRORBUFFER, errorText)
    ccurl_set_pointer(curl, CURLOPT_PRIVATE, context)
    try handle.set(CURLOPT_URL, request.url.httpText)
    // The path goes as it is.
    handle.set(CURLOPT_PATH_AS_IS, 1)
    handle.set(CURLOPT_NOSIGNAL, 1)
    handle.set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
    handle.set(CURLOPT_HTTP09_ALLOWED, 0)
    handle.set(CURLOPT_FOLLOWLOCATION, 0)
    handle.set(CURLOPT_TCP_NODELAY, 1)
    handle.set(CURLOPT_TCP_KEEPALIVE, 1)
    handle.set(CURLOPT_BUFFERSIZE, 128 << 10)
    handle.set(CURLOPT_UPLOAD_BUFFERSIZE, 128 << 10)
    let seconds = settings.connectTimeout > 0 ? min(settings.connectTimeout, 3600) : 15
    handle.set(CURLOPT_CONNECTTIMEOUT_MS, max(1, Int(seconds * 1000)))
    if let networkInterface = settings.networkInterface {
      try handle.set(CURLOPT_INTERFACE, networkInterface)
    }
    try handle.configure(settings.proxy)
    if request.url.isSecure { try handle.configureTLS(settings.trust, settings.identity) }
    ccurl_set_writer(curl, CURLOPT_HEADERFUNCTION) { bytes, size, count, context in
      CurlTransfer.transfer(context)?.takeHeader(UnsafeRawBufferPointer(start: bytes, count: size * count))
        ?? 0
    }
    ccurl_set_pointer(curl, CURLOPT_HEADERDATA, context)
    ccurl_set_writer(curl, CURLOPT_WRITEFUNCTION) { bytes, size, count, context in
      CurlTransfer.transfer(context)?.takeBody(UnsafeRawBufferPointer(start: bytes, count: size * count)) ?? 0
    }
    ccurl_set_pointer(curl, CURLOPT_WRITEDATA, context)
    handle.set(CURLOPT_NOPROGRESS, 0)
    ccurl_set_progress(
      curl,
      { context, _, received, _, sent in
        CurlTransfer.transfer(context)?.noteProgress(sent, received)
        return 0
      }, context)
    if request.url.isSecure {
      ccurl_set_before_request(curl) { context, _, _, _, _ in
        CurlTransfer.transfer(context)?.checkServer() ?? CURL_PREREQFUNC_ABORT
      }
      ccurl_set_pointer(curl, CURLOPT_PREREQDATA, context)
    }
  }

  func configureBody() throws(TransportClose) {
    switch request.body {
    case .none:
      if request.method == "HEAD" { handle.set(CURLOPT_NOBODY, 1) }
      if request.method == "POST" || request.method == "PUT" {
        handle.set(CURLOPT_POST, 1)
        ccurl_set_large(curl, CURLOPT_POSTFIELDSIZE_LARGE, 0)
        ccurl_set_pointer(curl, CURLOPT_POSTFIELDS, errorText)
      }
    case .bytes(let bytes):
      // libcurl reads them while it sends.
      let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
      copy.copyBytes(from: bytes)
      bodyBytes = copy
      handle.set(CURLOPT_POST, 1)
      ccurl_set_large(curl, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes.count))
      ccurl_set_pointer(curl, CURLOPT_POSTFIELDS, copy.baseAddress)
    case .source(let source):
      // Another request may have read it.
      do { try source.rewind() } catch { throw .network(.unknown, "\(error)") }
      handle.set(CURLOPT_UPLOAD, 1)
      if let length = source.length {
        ccurl_set_large(curl, CURLOPT_INFILESIZE_LARGE, curl_off_t(clamping: length))
      }
      ccurl_set_reader(curl) { target, size, count, context in
        CurlTransfer.transfer(context)?.giveBody(
          UnsafeMutableRawBufferPointer(start: target, count: size * count)) ?? Int(CURL_READFUNC_ABORT)
      }
      ccurl_set_pointer(curl, CURLOPT_READDATA, context)
      ccurl_set_seeker(curl) { context, offset, origin in
        CurlTransfer.transfer(context)?.seek(offset, origin) ?? CURL_SEEKFUNC_FAIL
      }
      ccurl_set_pointer(curl, CURLOPT_SEEKDATA, context)
    }
    try handle.set(CURLOPT_CUSTOMREQUEST, request.method)
  }

  func configureHeaders() throws(TransportClose) {
    switch request.decoding {
    case .decoded: try handle.set(CURLOPT_ACCEPT_ENCODING, "gzip")
    case .encoded: try append("Accept-Encoding", "gzip")
    case .none: break
    }
    var hasAgent = false
    for (name, value) in request.headers {
      if name.lowercased() == "user-agent" { hasAgent = true }
      try append(name, value)
    }
    if !hasAgent { try append("User-Agent", "Touchstone") }
    // A server's word before the body isn't waited for; and curl's own types are for forms.
    try append(line: "Expect:")
    if !request.headers.contains(where: { $0.name.lowercased() == "content-type" }) {
      try append(line: "Content-Type:")
    }
    if !request.headers.contains(where: { $0.name.lowercased() == "accept" }) {
      try append(line: "Accept: */*")
    }
    ccurl_set_pointer(curl, CURLOPT_HTTPHEADER, headerList)
  }

  private func append(_ name: String, _ value: String) throws(TransportClose) {
    guard !name.isEmpty, name.utf8.allSatisfy(AnswerHead.isTokenByte),
      value.utf8.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }),
      name.utf8.count + value.utf8.count < 64 << 10
    else { throw .network(.invalidURL, "a header that can't be sent") }
    // A header without a value ends with a semicolon for libcurl.
    try append(line: value.isEmpty ? "\(name);" : "\(name): \(value)")
  }

  private func append(line: String) throws(TransportClose) {
    guard let list = curl_slist_append(headerList, line) else {
      throw .network(.unknown, "libcurl doesn't take a header")
    }
    headerList = list
  }
}
