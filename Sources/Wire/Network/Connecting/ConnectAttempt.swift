import CCurl
import CSockets
import System
import Transport
import WebSocket

#if canImport(Glibc)
  import Glibc
#endif

/// One try to connect: all requests that it takes, with redirects and challenges. It waits, on a worker's thread.
struct ConnectAttempt {
  /// A connection whose handshake is done.
  struct Established {
    var connection: CurlConnection
    var url: WebSocketURL
    var chosenProtocol: String?
    var answer: AnswerHead
    /// What came behind the answer.
    var received: [UInt8]
    var certificate: [UInt8]?
  }

  /// The most redirects that are followed.
  static let maximumRedirects = 10

  let request: WebSocketRequest
  let cancellation: JobCancellation

  func run() throws(TransportClose) -> Established {
    guard var url = WebSocketURL(request.url) else {
      throw .network(.invalidURL, "the URL isn't one of a WebSocket")
    }
    var redirects = 0
    var sendsSecrets = true
    var authorizes = !answersChallenge
    while true {
      if cancellation.isCancelled { throw .cancelled }
      let (established, meaning) = try ask(url, authorizes: authorizes, sendsSecrets: sendsSecrets)
      switch meaning {
      case .accepted(let chosen):
        var established = established
        established.chosenProtocol = chosen
        return established
      case .challenge:
        guard !authorizes, sendsSecrets else { throw .http(401, established.answer.reason) }
        authorizes = true
      case .redirect(let location):
        redirects += 1
        guard redirects <= Self.maximumRedirects else {
          throw .network(.tooManyRedirects, "more than \(Self.maximumRedirects) redirects")
        }
        guard let next = url.resolve(location) else {
          throw .network(.invalidRedirect, "a redirect to what is no WebSocket")
        }
        sendsSecrets = sendsSecrets && url.shares(secretsWith: next)
        url = next
      }
    }
  }

  /// Whether there are credentials that wait for a challenge.
  private var answersChallenge: Bool {
    if case .basic(_, _, let answersChallenge) = request.authentication { answersChallenge } else { false }
  }

  // MARK: One request

  private func ask(_ url: WebSocketURL, authorizes: Bool, sendsSecrets: Bool) throws(TransportClose)
    -> (Established, WebSocketHandshake.Meaning)
  {
    let seconds = request.connectTimeout > 0 ? min(request.connectTimeout, 3600) : 15
    let deadline = MonotonicTime.now + seconds
    let upgrade = try WebSocketHandshake(protocols: request.protocols)
    let bytes = try upgrade.bytes(request, url, authorizes: authorizes, sendsSecrets: sendsSecrets)
    let connection = try CurlConnection(cancellation)
    try connection.connect(url, request, seconds: seconds, sendsSecrets: sendsSecrets)
    let certificate = connection.serverCertificate
    if url.isSecure { try request.trust.check(certificate, host: url.host) }
    try send(bytes, connection, deadline)
    let (answer, rest) = try receive(connection, deadline)
    let meaning = try upgrade.meaning(answer)
    return (
      Established(
        connection: connection, url: url, chosenProtocol: nil, answer: answer, received: rest,
        certificate: certificate), meaning
    )
  }

  private func send(_ bytes: [UInt8], _ connection: CurlConnection, _ deadline: MonotonicTime)
    throws(TransportClose)
  {
    var offset = 0
    while offset < bytes.count {
      let (code, count) = bytes.withUnsafeBytes {
        connection.write(UnsafeRawBufferPointer(rebasing: $0[offset...]))
      }
      switch code {
      case CURLE_OK: offset += count
      case CURLE_AGAIN: try wait(connection, CInt(POLLOUT), deadline)
      default: throw reasonOfLoss(connection, connection.lost(code) ?? .unexpectedEnd)
      }
    }
  }

  /// Why a connection can't be written. The server may have said it before it left, as a TLS alert.
  private func reasonOfLoss(_ connection: CurlConnection, _ close: TransportClose) -> TransportClose {
    let (code, _) = withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) {
      connection.read(into: $0)
    }
    guard code != CURLE_OK, code != CURLE_AGAIN else { return close }
    return connection.lost(code) ?? close
  }

  private func receive(_ connection: CurlConnection, _ deadline: MonotonicTime) throws(TransportClose)
    -> (AnswerHead, rest: [UInt8])
  {
    var bytes: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    var interimAnswers = 0
    while true {
      let (code, count) = chunk.withUnsafeMutableBytes { connection.read(into: $0) }
      switch code {
      case CURLE_OK:
        guard count > 0 else { throw .unexpectedEnd }
        bytes += chunk[..<count]
      case CURLE_AGAIN:
        try wait(connection, CInt(POLLIN), deadline)
        continue
      default: throw connection.lost(code) ?? .unexpectedEnd
      }
      do throws(AnswerHead.Malformed) {
        while let (head, length) = try AnswerHead.read(bytes) {
          bytes.removeFirst(length)
          // An interim answer, such as 100 or 103; another follows.
          guard (100..<200).contains(head.status), head.status != 101 else { return (head, bytes) }
          interimAnswers += 1
          guard interimAnswers <= 10 else { throw AnswerHead.Malformed(reason: "too many interim answers") }
        }
      } catch { throw .webSocket(1002, "the server's answer: \(error.reason)") }
    }
  }

  private func wait(_ connection: CurlConnection, _ events: CInt, _ deadline: MonotonicTime)
    throws(TransportClose)
  {
    while true {
      if cancellation.isCancelled { throw .cancelled }
      let rest = deadline.seconds(since: .now)
      guard rest > 0 else { throw .network(.timeout, "the server hasn't answered in time") }
      var entry = pollfd(fd: connection.descriptor, events: Int16(events), revents: 0)
      // In steps, to see a cancellation.
      let count = poll(&entry, 1, CInt((min(rest, 0.25) * 1000).rounded(.up)))
      if count > 0 { return }
      if count < 0, errno != EINTR { throw .posix(errno, "waiting for the server") }
    }
  }
}

extension TransportClose {
  /// The server has closed without an answer. Couchbase Lite calls it so too, and doesn't try again.
  static let unexpectedEnd = TransportClose.webSocket(400, "Unexpected EOF")
}
