/// The URL of a WebSocket: scheme, host, port, and what follows.
///
///   url := ("ws" | "wss" | "http" | "https") "://" host [":" port] [("/" | "?") …] ["#" …]
///
/// The host is a name, an IPv4 address, or an IPv6 address in brackets. Names and addresses, no credentials; all of it in
/// ASCII without spaces. A fragment is dropped.
package struct WebSocketURL: Sendable, Hashable, CustomStringConvertible {
  /// The most bytes of a URL.
  package static let maximumBytes = 8192

  /// Whether the connection has TLS: `wss` and `https`.
  package let isSecure: Bool
  /// The host in lower case; an IPv6 address without its brackets.
  package let host: String
  /// The port, 1 to 65535.
  package let port: Int
  /// The path, which begins with a slash, and the query.
  package let target: String

  /// Reads a URL. Nil if it isn't one of a WebSocket.
  package init?(_ text: String) { self.init(text, maximumBytes: Self.maximumBytes) }

  init?(_ text: String, maximumBytes: Int) {
    let bytes = text.utf8
    guard bytes.count <= maximumBytes, bytes.allSatisfy({ $0 > 0x20 && $0 < 0x7F }),
      let separator = text.firstRange(of: "://")
    else { return nil }
    switch text[..<separator.lowerBound].lowercased() {
    case "ws", "http": isSecure = false
    case "wss", "https": isSecure = true
    default: return nil
    }
    let rest = text[separator.upperBound...].prefix { $0 != "#" }
    let authority = rest.prefix { $0 != "/" && $0 != "?" }
    guard let (host, port) = Self.split(authority) else { return nil }
    self.host = host.lowercased()
    self.port = port ?? (isSecure ? 443 : 80)
    let target = rest[authority.endIndex...]
    self.target = (target.hasPrefix("/") ? "" : "/") + target
  }

  private static func split(_ authority: Substring) -> (host: Substring, port: Int?)? {
    let host: Substring
    let rest: Substring
    if authority.hasPrefix("[") {
      guard let end = authority.firstIndex(of: "]") else { return nil }
      host = authority[authority.index(after: authority.startIndex)..<end]
      rest = authority[authority.index(after: end)...]
      guard host.contains(":"), host.allSatisfy({ $0.isHexDigit || $0 == ":" || $0 == "." }) else {
        return nil
      }
    } else {
      host = authority.prefix { $0 != ":" }
      rest = authority[host.endIndex...]
      guard host.utf8.count <= 253, host.allSatisfy({ $0.isLetter || $0.isNumber || "-._~".contains($0) })
      else { return nil }
    }
    guard !host.isEmpty else { return nil }
    if rest.isEmpty || rest == ":" { return (host, nil) }
    let digits = rest.dropFirst()
    guard rest.hasPrefix(":"), digits.count <= 5, digits.allSatisfy(\.isNumber), let port = Int(digits),
      (1...65535).contains(port)
    else { return nil }
    return (host, port)
  }

  /// The host in brackets if it is an IPv6 address, and the port if it isn't the scheme's own.
  package var hostHeader: String {
    let name = host.contains(":") ? "[\(host)]" : host
    return port == (isSecure ? 443 : 80) ? name : "\(name):\(port)"
  }

  /// The URL without its query, for people.
  package var description: String {
    "\(isSecure ? "wss" : "ws")://\(hostHeader)\(target.prefix { $0 != "?" })"
  }

  /// What a `Location` means in an answer of this URL; nil if it isn't a URL of a WebSocket.
  package func resolve(_ location: String) -> WebSocketURL? {
    let scheme = isSecure ? "wss" : "ws"
    if location.contains("://"), location.first?.isLetter == true, !location.hasPrefix("/") {
      let isAbsolute = location.prefix { $0 != ":" }.allSatisfy {
        $0.isLetter || $0.isNumber || "+-.".contains($0)
      }
      if isAbsolute { return WebSocketURL(location) }
    }
    if location.hasPrefix("//") { return WebSocketURL("\(scheme):\(location)") }
    let base = "\(scheme)://\(hostHeader)"
    if location.hasPrefix("/") { return WebSocketURL(base + location) }
    let path = target.prefix { $0 != "?" }
    if location.hasPrefix("?") { return WebSocketURL(base + path + location) }
    guard !location.isEmpty, let slash = path.lastIndex(of: "/") else { return nil }
    let query = location.firstIndex(of: "?") ?? location.endIndex
    let merged = Self.withoutDots(path[...slash] + location[..<query])
    return WebSocketURL(base + merged + location[query...])
  }

  /// A path without the segments "." and "..".
  private static func withoutDots(_ path: some StringProtocol) -> String {
    var segments: [Substring] = []
    let parts = Substring(path).split(separator: "/", omittingEmptySubsequences: false)
    for (index, part) in parts.enumerated() {
      let isLast = index == parts.count - 1
      switch part {
      case ".": if isLast { segments.append("") }
      case "..":
        if segments.count > 1 { segments.removeLast() }
        if isLast { segments.append("") }
      default: segments.append(part)
      }
    }
    return segments.joined(separator: "/")
  }

  /// Whether what is secret may be sent to another URL too: to the same host and port, and never from TLS to none. From
  /// `ws` to `wss` the port may change from that of the one to that of the other.
  package func shares(secretsWith other: WebSocketURL) -> Bool {
    guard host == other.host, !isSecure || other.isSecure else { return false }
    return port == other.port || (!isSecure && other.isSecure && port == 80 && other.port == 443)
  }
}

extension WebSocketURL {
  /// The URL with the scheme http or https, whole.
  package var httpText: String { "\(isSecure ? "https" : "http")://\(hostHeader)\(target)" }
}

extension WebSocketURL {
  /// The same place with another path and query. Nil if it is too long, or has a byte that a URL can't have.
  package func with(target: String) -> WebSocketURL? {
    WebSocketURL("\(isSecure ? "https" : "http")://\(hostHeader)\(target)", maximumBytes: 128 << 10)
  }
}
