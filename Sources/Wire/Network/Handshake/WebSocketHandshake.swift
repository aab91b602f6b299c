import Transport
import WebSocket

/// The HTTP side of a WebSocket handshake: the request's bytes, and what its answer means.
struct WebSocketHandshake: Sendable {
  /// What an answer means.
  enum Meaning: Equatable {
    /// The connection is a WebSocket now. The protocol is the one that was chosen; nil if none was offered.
    case accepted(protocol: String?)
    /// The server names another place, as a `Location`.
    case redirect(String)
    /// The server wants HTTP Basic.
    case challenge
  }

  /// Headers that the handshake itself sets.
  static let ownHeaders: Set<String> = [
    "host", "connection", "upgrade", "content-length", "transfer-encoding", "sec-websocket-version",
    "sec-websocket-key", "sec-websocket-protocol", "sec-websocket-extensions", "sec-websocket-accept",
  ]
  /// The most bytes of a request.
  static let maximumBytes = 64 << 10

  private let key: String
  private let protocols: [String]

  /// Makes a handshake with a key of its own.
  init(protocols: [String]) throws(TransportClose) {
    guard let key = WebSocketKey.make() else { throw .network(.unknown, "the system has no random numbers") }
    self.key = key
    self.protocols = protocols
  }

  // MARK: The request

  /// The bytes of a request. `sendsSecrets` says whether credentials and the caller's headers for them go along.
  func bytes(_ request: WebSocketRequest, _ url: WebSocketURL, authorizes: Bool, sendsSecrets: Bool)
    throws(TransportClose) -> [UInt8]
  {
    var headers: [(String, String)] = [("Host", url.hostHeader)]
    var cookies: [String] = []
    var isAgentSet = false
    for (name, value) in request.headers {
      try Self.check(name, value)
      switch name.lowercased() {
      case "authorization", "proxy-authorization": if !sendsSecrets { continue }
      case "cookie":
        if sendsSecrets { cookies.append(value) }
        continue
      case "user-agent": isAgentSet = true
      default: break
      }
      headers.append((name, value))
    }
    if !isAgentSet { headers.append(("User-Agent", "Touchstone")) }
    if sendsSecrets {
      switch request.authentication {
      case .basic(let name, let password, _):
        guard !name.contains(":") else { throw .network(.invalidURL, "a user's name with a colon") }
        let value = WebSocketKey.base64([UInt8]("\(name):\(password.value)".utf8))
        if authorizes { headers.append(("Authorization", "Basic \(value)")) }
      case .cookie(let name, let value):
        guard Self.isToken(name), Self.isCookieValue(value.value) else {
          throw .network(.invalidURL, "a cookie that can't be sent")
        }
        cookies.append("\(name)=\(value.value)")
      case .none: break
      }
    }
    if !cookies.isEmpty { headers.append(("Cookie", cookies.joined(separator: "; "))) }
    headers += [
      ("Connection", "Upgrade"), ("Upgrade", "websocket"), ("Sec-WebSocket-Version", "13"),
      ("Sec-WebSocket-Key", key),
    ]
    if !protocols.isEmpty {
      guard protocols.allSatisfy(Self.isToken) else { throw .network(.invalidURL, "a protocol's name") }
      headers.append(("Sec-WebSocket-Protocol", protocols.joined(separator: ",")))
    }
    let lines = ["GET \(url.target) HTTP/1.1"] + headers.map { "\($0.0): \($0.1)" }
    let bytes = [UInt8]((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    guard bytes.count <= Self.maximumBytes else {
      throw .network(.invalidURL, "a request of more than \(Self.maximumBytes) bytes")
    }
    return bytes
  }

  private static func check(_ name: String, _ value: String) throws(TransportClose) {
    guard isToken(name), value.utf8.allSatisfy({ $0 >= 32 && $0 != 127 || $0 == 9 }) else {
      throw .network(.invalidURL, "a header that can't be sent")
    }
    guard !ownHeaders.contains(name.lowercased()) else {
      throw .network(.invalidURL, "the header \(name) belongs to the handshake")
    }
  }

  private static func isToken(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(AnswerHead.isTokenByte)
  }

  private static func isCookieValue(_ text: String) -> Bool {
    text.utf8.allSatisfy { $0 > 32 && $0 < 127 && $0 != 59 && $0 != 44 }
  }

  // MARK: The answer

  /// What an answer means; throws what ends the connection.
  func meaning(_ answer: AnswerHead) throws(TransportClose) -> Meaning {
    switch answer.status {
    case 101: return .accepted(protocol: try checkAccepted(answer))
    case 301, 302, 303, 307, 308:
      guard let location = answer.values("location").first else { break }
      return .redirect(location)
    case 401: if Self.asksForBasic(answer) { return .challenge }
    // A success that isn't a WebSocket.
    case 200..<300: throw .webSocket(1002, "the server answered \(answer.status), which is no WebSocket")
    default: break
    }
    throw .http(answer.status, answer.reason)
  }

  private func checkAccepted(_ answer: AnswerHead) throws(TransportClose) -> String? {
    guard answer.lists("upgrade", "websocket"), answer.lists("connection", "upgrade") else {
      throw .webSocket(1002, "the server's answer isn't an upgrade to WebSocket")
    }
    guard answer.values("sec-websocket-accept") == [WebSocketKey.accept(key) ?? ""] else {
      throw .webSocket(1002, "the server's answer belongs to another request")
    }
    guard answer.values("sec-websocket-extensions").allSatisfy(\.isEmpty) else {
      throw .webSocket(1010, "the server uses an extension that wasn't offered")
    }
    let chosen = answer.values("sec-websocket-protocol")
    if protocols.isEmpty, chosen.isEmpty { return nil }
    guard chosen.count == 1, protocols.contains(chosen[0]) else {
      throw .http(403, "Server did not accept protocol")
    }
    return chosen[0]
  }

  private static func asksForBasic(_ answer: AnswerHead) -> Bool {
    answer.values("www-authenticate").contains { value in
      value.split(separator: ",").contains {
        $0.trimmingBlanks.lowercased().split(separator: " ").first == "basic"
      }
    }
  }
}
