import Bytes
import Fleece
import HTTP
import Replication
import Views

/// A database that a URL names: `http://`, `https://`, `ws://` or `wss://`, with what its server wants to know.
package struct RemoteDatabase: Sendable {
  /// The URL without a name and a password.
  package let url: String
  /// The name to log in with; nil: nobody in particular.
  package private(set) var user: String?
  /// The password. It is never shown.
  package private(set) var password: String?
  /// More headers of each request. Their values are never shown.
  package private(set) var headers: [(name: String, value: String)] = []
  /// The proxy that leads there; nil: what the environment says.
  package internal(set) var proxy: String?
  /// The longest time in seconds until a connection stands; nil: the default.
  package internal(set) var timeout: Double?

  /// The most headers, and the most bytes of a URL and of all headers.
  private static let (mostHeaders, mostURLBytes, mostHeaderBytes) = (64, 4_096, 16 << 10)
  private static let schemes = ["http", "https", "ws", "wss"]

  /// Whether a text is a URL and not a name.
  static func isURL(_ text: String) -> Bool { text.utf8.firstRange(of: "://".utf8) != nil }

  /// Reads a URL. Throws 400 that says what is wrong with it, without showing what may be a password.
  init(url text: String) throws {
    guard text.utf8.count <= Self.mostURLBytes, let colon = text.utf8.firstRange(of: "://".utf8) else {
      throw Self.invalid("it isn't a URL of at most \(Self.mostURLBytes) bytes")
    }
    let scheme = text[..<colon.lowerBound].lowercased()
    guard Self.schemes.contains(scheme) else {
      throw Self.invalid("its protocol isn't one of \(Self.schemes.joined(separator: ", "))")
    }
    guard text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "#") }) else {
      throw Self.invalid("it has blanks, control characters or a fragment")
    }
    let rest = text[colon.upperBound...]
    let end = rest.utf8.firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") } ?? rest.endIndex
    var host = rest[..<end]
    if let at = host.utf8.lastIndex(of: UInt8(ascii: "@")) {
      let parts = host[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(parts[0]), let secret = Self.decoded(parts.count > 1 ? parts[1] : "")
      else { throw Self.invalid("the name and the password aren't percent-encoded properly") }
      if !name.isEmpty { (user, password) = (name, secret) }
      host = host[host.utf8.index(after: at)...]
    }
    guard !host.isEmpty, host.utf8.first != UInt8(ascii: ":") else { throw Self.invalid("it names no host") }
    url = "\(scheme)://\(host.lowercased())\(rest[end...])"
  }

  /// Takes `headers` and `auth` of an endpoint that is an object. Throws 400 for what can't be one.
  mutating func take(_ endpoint: JSONObject) throws {
    if let value = endpoint["headers"], !value.isNull {
      guard let members = value.object, members.count <= Self.mostHeaders else {
        throw Self.invalid("`headers` must be an object of at most \(Self.mostHeaders) members")
      }
      var bytes = 0
      for (name, value) in members {
        guard let text = value.string, Self.isHeader(name, text) else {
          throw Self.invalid("the header `\(name.prefix(64))` must be a text without control characters")
        }
        bytes += name.utf8.count + text.utf8.count
        headers.append((name, text))
      }
      guard bytes <= Self.mostHeaderBytes else {
        throw Self.invalid("the headers have more than \(Self.mostHeaderBytes) bytes")
      }
    }
    guard let auth = endpoint["auth"], !auth.isNull else { return }
    guard let basic = auth["basic"].object, let name = basic["username"]?.string,
      let secret = basic["password"]?.string
    else { throw Self.invalid("`auth` must be {\"basic\": {\"username\": …, \"password\": …}}") }
    (user, password) = (name, secret)
  }

  private static func isHeader(_ name: String, _ value: String) -> Bool {
    let isToken =
      !name.isEmpty
      && name.utf8.allSatisfy {
        $0 &- 0x30 < 10 || ($0 | 0x20) &- 0x61 < 26 || "!#$%&'*+-.^_`|~".utf8.contains($0)
      }
    return isToken && value.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }
  }

  private static func decoded(_ text: some StringProtocol) -> String? {
    HTTPTarget.decode(Array(text.utf8)[...], plusIsBlank: false).flatMap {
      String(validating: $0, as: UTF8.self)
    }
  }

  private static func invalid(_ what: String) -> CouchDBError {
    CouchDBError(400, "bad_request", "a source or target can't be used: \(what)")
  }

  // MARK: What is shown and compared

  /// The URL as CouchDB shows it: with a slash at the end, and without a login.
  var shown: String {
    guard url.utf8.last != UInt8(ascii: "/"), !url.utf8.contains(UInt8(ascii: "?")) else { return url }
    return url + "/"
  }

  /// Whether it is reached over a WebSocket.
  var isWebSocket: Bool { url.hasPrefix("ws") }

  /// What makes it another replication: all but secrets.
  var identity: JSONValue {
    let plain = headers.filter { !Self.secretHeaders.contains($0.name.lowercased()) }
      .map { JSONValue.array([.string($0.name.lowercased()), .string($0.value)]) }
      .sorted { $0.description < $1.description }
    return [.string(shown), user.map { .string($0) } ?? .null, .array(plain)]
  }

  private static let secretHeaders: Set<String> = [
    "authorization", "cookie", "proxy-authorization", "x-api-key",
  ]

  /// The name and the password that it would log in with: also those of a header `Authorization`.
  package var login: (user: String, password: String)? {
    if let user { return (user, password ?? "") }
    guard let text = headers.first(where: { $0.name.lowercased() == "authorization" })?.value,
      text.lowercased().hasPrefix("basic ")
    else { return nil }
    var bytes: [UInt8] = []
    let isBase64 = Array(text.dropFirst(6).trimmed.utf8).withUnsafeBytes { encoded in
      Base64Decoder.decode(encoded) { bytes += $0 }
    }
    guard isBase64, let colon = bytes.firstIndex(of: UInt8(ascii: ":")) else { return nil }
    return (
      String(decoding: bytes[..<colon], as: UTF8.self),
      String(decoding: bytes[(colon + 1)...], as: UTF8.self)
    )
  }

  /// How connections to it are made.
  var connection: ConnectionOptions {
    var options = ConnectionOptions()
    if let user { options.authenticator = .login(name: user, password: password ?? "") }
    options.headers = headers
    if let proxy { options.proxy = .url(proxy) }
    if let timeout { options.timeout = timeout }
    return options
  }
}

extension RemoteDatabase: Equatable {
  package static func == (left: RemoteDatabase, right: RemoteDatabase) -> Bool {
    left.url.hasSameBytes(as: right.url) && left.user == right.user && left.password == right.password
      && left.proxy == right.proxy && left.timeout == right.timeout
      && left.headers.elementsEqual(right.headers) { $0.name == $1.name && $0.value == $1.value }
  }
}

extension RemoteDatabase: CustomStringConvertible {
  /// The URL, without secrets.
  package var description: String { shown }
}
