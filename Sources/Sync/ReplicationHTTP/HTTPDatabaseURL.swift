import Network
import Replication

/// The URL of a database of the CouchDB family: `http://[name[:password]@]host[:port]/path`, or `https://…`.
struct HTTPDatabaseURL: Sendable, Hashable {
  /// The URL without credentials and without a slash at its end.
  let url: WebSocketURL
  let name: String?
  let password: Secret?

  /// Nil if it isn't one: another scheme, no path, a query.
  init?(_ text: String) {
    guard let separator = text.firstRange(of: "://"),
      ["http", "https"].contains(text[..<separator.lowerBound].lowercased())
    else { return nil }
    let rest = text[separator.upperBound...]
    let authority = rest.prefix { $0 != "/" && $0 != "?" && $0 != "#" }
    var place = rest[...]
    if let at = authority.lastIndex(of: "@") {
      let parts = authority[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
      guard let name = Self.decoded(parts[0]), !name.isEmpty, !name.contains(":") else { return nil }
      self.name = name
      if parts.count > 1 {
        guard let password = Self.decoded(parts[1]) else { return nil }
        self.password = Secret(password)
      } else {
        password = nil
      }
      place = rest[rest.index(after: at)...]
    } else {
      name = nil
      password = nil
    }
    guard !place.contains("?"), !place.contains("#") else { return nil }
    var whole = text[..<separator.upperBound].lowercased() + place
    while whole.hasSuffix("/") { whole.removeLast() }
    guard let url = WebSocketURL(whole), url.target.utf8.count > 1 else { return nil }
    self.url = url
  }

  private static func decoded(_ text: Substring) -> String? {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      guard let high = rest.popFirst(), let low = rest.popFirst(),
        let value = UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16)
      else { return nil }
      bytes.append(value)
    }
    return String(validating: bytes, as: UTF8.self)
  }

  /// Identifies the database in checkpoints: the URL with its port, without credentials.
  var remoteID: String {
    let host = url.host.contains(":") ? "[\(url.host)]" : url.host
    return "\(url.isSecure ? "https" : "http")://\(host):\(url.port)\(url.target)"
  }

  /// Where the server logs in: beside the database.
  var session: WebSocketURL? {
    let parent = url.target.utf8.prefix { _ in true }
    guard let slash = parent.lastIndex(of: UInt8(ascii: "/")) else { return nil }
    return url.with(target: String(url.target[..<slash]) + "/_session")
  }

  /// Whether the server is this machine, where compression costs more than it saves.
  var isLoopback: Bool { url.host == "localhost" || url.host == "::1" || url.host.hasPrefix("127.") }

  /// A URL below the database. `path` is escaped.
  func at(_ path: String, _ query: [(String, String)] = []) -> WebSocketURL? {
    var target = url.target
    if !path.isEmpty { target += "/" + path }
    if !query.isEmpty {
      target += "?" + query.map { "\($0.0)=\(Self.escaped($0.1))" }.joined(separator: "&")
    }
    return url.with(target: target)
  }

  /// A text as a part of a path or a query.
  static func escaped(_ text: String) -> String {
    var escaped: [UInt8] = []
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: escaped.append(byte)
      default:
        let digits = Array("0123456789ABCDEF".utf8)
        escaped += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: escaped, as: UTF8.self)
  }

  /// A document's ID as a path. Design documents keep their slash.
  static func path(_ id: String) -> String {
    let design = "_design/"
    return id.hasPrefix(design) ? design + escaped(String(id.dropFirst(design.count))) : escaped(id)
  }
}
