import Bytes
import HTTP
import HTTPAPI
import Replication
import ReplicationBLIP
import ReplicationHTTP
import Storage

/// Where the replications that a listener runs connect to: its own databases, also where URLs name them, and other servers.
final class ListenerTargets: ReplicationTargets {
  /// `http` and `https` with the host and the port, as URLs of the listener have them.
  private let addresses = Lock<[String]>([])
  /// The hosts, perhaps with a port, that may be reached; nil: all.
  private let allowed: Set<String>?
  /// Where proxies before the listener are reached: like `addresses`, with the segments of their paths.
  private let publicURLs: [(address: String, path: [ByteString])]

  /// Throws `SyncListenerError` for a public URL that isn't one.
  init(_ hosts: SyncListenerConfiguration.ReplicationHosts, publicURLs: [String] = []) throws {
    self.publicURLs = try publicURLs.map { url in
      guard let (scheme, host, port) = Self.parts(url), scheme == "http" || scheme == "https",
        !url.utf8.contains(where: { [UInt8(ascii: "@"), UInt8(ascii: "?"), UInt8(ascii: "#")].contains($0) }),
        host.hasPrefix("[") || host.utf8.allSatisfy(Self.isInName), let path = Self.path(url),
        !path.contains(where: { $0 == ByteString(".") || $0 == ByteString("..") })
      else { throw SyncListenerError(.badRequest, "'\(url)' isn't a URL of the form http://HOST:PORT/PATH") }
      return ("\(scheme)://\(host):\(port)", path)
    }
    switch hosts {
    case .all: allowed = nil
    case .none: allowed = []
    case .hosts(let hosts): allowed = Set(hosts.map { $0.lowercased() })
    }
  }

  /// Takes the URLs of the listener, once it runs.
  func listen(at urls: [String]) {
    var known = urls
    for url in urls {
      guard let (scheme, host, port) = Self.parts(url) else { continue }
      // A listener for this machine is reached by its name too.
      if host.hasPrefix("127.") || host == "[::1]" || host == "0.0.0.0" || host == "[::]" {
        known += ["localhost", "127.0.0.1", "[::1]"].map { "\(scheme)://\($0):\(port)" }
      }
    }
    addresses.withLock { $0 = known }
  }

  func ownName(of remote: RemoteDatabase) -> String? {
    guard let (scheme, host, port) = Self.parts(remote.url) else { return nil }
    let plain = scheme == "ws" ? "http" : scheme == "wss" ? "https" : scheme
    let address = "\(plain)://\(host):\(port)"
    guard let segments = Self.path(remote.url), let name = segments.last else { return nil }
    let path = segments.dropLast()
    let isOwn = path.isEmpty && addresses.withLock { $0.contains(address) }
    let isPublic = publicURLs.contains { $0.address == address && path.elementsEqual($0.path) }
    return isOwn || isPublic ? name.string : nil
  }

  /// The segments of the path of a URL. Nil if it can't be read.
  private static func path(_ url: String) -> [ByteString]? {
    guard let start = url.utf8.firstRange(of: "://".utf8)?.upperBound else { return nil }
    // A query may follow the host at once, and then has the slash.
    let place = url.utf8[start...].firstIndex { $0 == UInt8(ascii: "/") || $0 == UInt8(ascii: "?") }
    guard let slash = place, url.utf8[slash] == UInt8(ascii: "/") else { return [] }
    return HTTPTarget(Array(url.utf8[slash...]))?.segments?.filter { $0 != ByteString("") }
  }

  func refusal(of remote: RemoteDatabase) -> String? {
    guard let allowed else { return nil }
    for url in [remote.url, remote.proxy].compactMap({ $0 }) {
      guard let (_, host, port) = Self.parts(url) else { return "the host of a URL or proxy can't be read" }
      if allowed.contains(host) || allowed.contains("\(host):\(port)") { continue }
      return allowed.isEmpty
        ? "this server replicates only databases of its own; --replicate-to names others"
        : "this server doesn't replicate with \(host):\(port); --replicate-to names those that it does"
    }
    return nil
  }

  func target(of remote: RemoteDatabase) throws -> ReplicatorTarget {
    try remote.url.hasPrefix("ws") ? .webSocketURL(remote.url) : .httpURL(remote.url)
  }

  /// Whether a byte can be one of the name of a host. Names in other scripts are there as bytes beyond ASCII.
  private static func isInName(_ byte: UInt8) -> Bool {
    byte &- 0x30 < 10 || (byte | 0x20) &- 0x61 < 26 || byte >= 0x80 || "-._".utf8.contains(byte)
  }

  /// The protocol, the host and the port of a URL, which may be that of the protocol. Nil for a port that isn't one, and for an
  /// address in brackets without an end.
  private static func parts(_ url: String) -> (scheme: String, host: String, port: Int)? {
    guard let colon = url.utf8.firstRange(of: "://".utf8) else { return nil }
    let scheme = url[..<colon.lowerBound].lowercased()
    var authority = url[colon.upperBound...].prefix { $0 != "/" && $0 != "?" }
    if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
    var host = authority
    var port = ["http": 80, "ws": 80, "https": 443, "wss": 443][scheme] ?? 1080
    // Colons within brackets belong to an address.
    var rest = authority
    if authority.hasPrefix("[") {
      guard let bracket = authority.utf8.firstIndex(of: UInt8(ascii: "]")) else { return nil }
      rest = authority[authority.utf8.index(after: bracket)...]
      guard rest.isEmpty || rest.hasPrefix(":") else { return nil }
    }
    if let last = rest.utf8.lastIndex(of: UInt8(ascii: ":")) {
      let digits = rest[rest.utf8.index(after: last)...]
      guard let number = UInt16(digits), number > 0, digits.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else {
        return nil
      }
      host = authority[..<last]
      port = Int(number)
    }
    guard !host.isEmpty else { return nil }
    return (scheme, host.lowercased(), port)
  }
}
