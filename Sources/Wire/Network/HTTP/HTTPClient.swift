import HTTP
import System
import Transport
import WebSocket

/// A client of HTTP/1.1 for one server: keeps connections open, says who it is, and follows redirects.
///
/// It may be used from any thread. Sinks are called on its own thread. Statuses of answers aren't errors here.
package final class HTTPClient: Sendable {
  /// The most redirects that are followed.
  static let maximumRedirects = 10
  private static let cookieNames = ["AuthSession", "SyncGatewaySession"]

  package let settings: HTTPClientSettings
  private let loop: CurlLoop

  /// What is known of the login.
  private struct Login {
    enum Phase {
      /// Nothing was asked yet.
      case new
      case running
      /// The cookie of the session.
      case cookie(name: String, value: Secret)
      /// The server has no sessions.
      case basic
      case failed(TransportClose)
    }
    var phase = Phase.new
    /// The number of logins that have ended.
    var generation = 0
    /// Requests that wait for the end of the login. They get its error.
    var waiting: [@Sendable (TransportClose?) -> Void] = []
    /// Whether Basic was asked for.
    var isChallenged = false
  }
  private let login = Lock(Login())

  /// Makes a client. No connection is made yet.
  package init(_ settings: HTTPClientSettings) throws(TransportClose) {
    self.settings = settings
    loop = try CurlLoop(maximumConnections: settings.maximumConnections)
  }

  /// What ended requests have sent and received, and their number.
  package var traffic: (sent: UInt64, received: UInt64, requests: UInt64) { loop.traffic }

  // MARK: Requests

  /// Sends a request. Its answer goes to the sink.
  @discardableResult
  package func send(_ request: HTTPClientRequest, into sink: any HTTPAnswerSink) -> any HTTPTask {
    let exchange = HTTPExchange(self, request, sink)
    exchange.begin()
    return exchange
  }

  /// Sends a request, and collects an answer of at most `limit` bytes. `done` is called on the client's thread.
  @discardableResult
  package func collect(
    _ request: HTTPClientRequest, limit: Int,
    _ done: @escaping @Sendable (Result<HTTPClientAnswer, TransportClose>) -> Void
  ) -> any HTTPTask {
    send(request, into: CollectingSink(limit: limit, done))
  }

  private static let secretHeaders = ["authorization", "cookie", "proxy-authorization"]

  /// Makes a transfer, which begins when it is posted. To another host nothing goes that is secret.
  func transfer(_ request: HTTPClientRequest, _ sink: any HTTPAnswerSink, sendsSecrets: Bool = true)
    throws(TransportClose) -> CurlTransfer
  {
    var (request, settings) = (request, settings)
    request.headers = settings.headers + request.headers
    if !sendsSecrets {
      request.headers.removeAll { Self.secretHeaders.contains($0.name.lowercased()) }
      settings.identity = nil
    }
    return try CurlTransfer(request, settings, sink)
  }

  func post(_ command: CurlLoop.Command) { loop.post(command) }

  // MARK: Who the client is

  /// How a request says who the client is, with the number of the login.
  enum Credentials {
    case headers([(name: String, value: String)], generation: Int)
    /// They aren't known yet; the closure that was given is called later.
    case later
    case failed(TransportClose)
  }

  func credentials(_ later: @escaping @Sendable (TransportClose?) -> Void) -> Credentials {
    switch settings.authentication {
    case .none: return .headers([], generation: 0)
    case .bearer(let token): return .headers([("Authorization", "Bearer \(token.value)")], generation: 0)
    case .cookie(let name, let value): return .headers([("Cookie", "\(name)=\(value.value)")], generation: 0)
    case .basic(let name, let password, let answersChallenge):
      let isSent = !answersChallenge || login.withLock { $0.isChallenged }
      return .headers(isSent ? [Self.basic(name, password)] : [], generation: isSent ? 1 : 0)
    case .session(let name, let password, let url):
      let (answer, isFirst) = login.withLock { login -> (Credentials, Bool) in
        switch login.phase {
        case .new:
          login.phase = .running
          login.waiting.append(later)
          return (.later, true)
        case .running:
          login.waiting.append(later)
          return (.later, false)
        case .cookie(let name, let value):
          return (.headers([("Cookie", "\(name)=\(value.value)")], generation: login.generation), false)
        case .basic: return (.headers([Self.basic(name, password)], generation: login.generation), false)
        case .failed(let error): return (.failed(error), false)
        }
      }
      if isFirst { logIn(name, password, url) }
      return answer
    }
  }

  /// Whether a request that was answered with 401 is sent once more with other credentials.
  func renews(after generation: Int) -> Bool {
    switch settings.authentication {
    case .none, .bearer, .cookie: return false
    case .basic:
      return login.withLock { login in
        login.isChallenged = true
        return generation == 0
      }
    case .session:
      return login.withLock { login in
        // Another request has renewed it meanwhile.
        guard login.generation == generation else { return true }
        switch login.phase {
        case .cookie:
          login.phase = .new
          return true
        // Another request, which was on its way with the same cookie, does so now.
        case .new, .running: return true
        case .basic, .failed: return false
        }
      }
    }
  }

  /// Takes a cookie that the server has renewed by itself.
  func note(_ head: HTTPAnswerHead) {
    guard case .session = settings.authentication, let (name, value) = Self.cookie(head) else { return }
    login.withLock { login in
      if case .cookie = login.phase { login.phase = .cookie(name: name, value: value) }
    }
  }

  private static func basic(_ name: String, _ password: Secret) -> (name: String, value: String) {
    ("Authorization", "Basic " + WebSocketKey.base64([UInt8]("\(name):\(password.value)".utf8)))
  }

  private func logIn(_ name: String, _ password: Secret, _ url: WebSocketURL) {
    var request = HTTPClientRequest("POST", url)
    request.headers = [("Content-Type", "application/x-www-form-urlencoded"), ("Accept", "application/json")]
    request.body = .bytes(Array("name=\(Self.form(name))&password=\(Self.form(password.value))".utf8))
    let sink = CollectingSink(limit: 64 << 10) { [self] result in
      let phase: Login.Phase
      switch result {
      case .failure(let error): phase = .failed(error)
      case .success(let answer):
        switch answer.status {
        case 200..<300:
          phase = Self.cookie(answer.head).map { .cookie(name: $0.name, value: $0.value) } ?? .basic
        // Such a server has no sessions.
        case 400, 403, 404, 405, 406, 415, 501: phase = .basic
        default: phase = .failed(.http(answer.status, "the login was answered with \(answer.status)"))
        }
      }
      var failure: TransportClose?
      if case .failed(let error) = phase { failure = error }
      let waiting = login.withLock { login in
        login.phase = phase
        // Another request, later, may try again after a failure of the network. Those that wait don't.
        if failure?.isTransient == true { login.phase = .new }
        login.generation += 1
        defer { login.waiting = [] }
        return login.waiting
      }
      for request in waiting { request(failure) }
    }
    do throws(TransportClose) { loop.post(.add(try transfer(request, sink))) } catch { sink.end(error) }
  }

  private static func form(_ text: String) -> String {
    var escaped = ""
    for byte in text.utf8 {
      let character = Character(UnicodeScalar(byte))
      if byte < 0x80, character.isLetter || character.isNumber || "-._~".contains(character) {
        escaped.append(character)
      } else {
        let digits = String(byte, radix: 16, uppercase: true)
        escaped += (digits.utf8.count == 1 ? "%0" : "%") + digits
      }
    }
    return escaped
  }

  private static func cookie(_ head: HTTPAnswerHead) -> (name: String, value: Secret)? {
    for header in head.headers.all("set-cookie") {
      let pair = header.prefix { $0 != ";" }.split(
        separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2, cookieNames.contains(pair[0].trimmed), !pair[1].isEmpty,
        pair[1].utf8.allSatisfy({ $0 > 32 && $0 < 127 && $0 != 59 && $0 != 44 })
      else { continue }
      return (pair[0].trimmed, Secret(String(pair[1])))
    }
    return nil
  }
}
