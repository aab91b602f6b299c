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

  init(_ hosts: SyncListenerConfiguration.ReplicationHosts) {
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
    guard addresses.withLock({ $0.contains("\(plain)://\(host):\(port)") }),
      let start = remote.url.utf8.firstRange(of: "://".utf8)?.upperBound,
      let slash = remote.url.utf8[start...].firstIndex(of: UInt8(ascii: "/")),
      let segments = HTTPTarget(Array(remote.url.utf8[slash...]))?.segments?.filter({ $0 != ByteString("") }),
      segments.count == 1, let name = segments.first
    else { return nil }
    return name.string
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

  /// The protocol, the host and the port of a URL, which may be that of the protocol.
  private static func parts(_ url: String) -> (scheme: String, host: String, port: Int)? {
    guard let colon = url.utf8.firstRange(of: "://".utf8) else { return nil }
    let scheme = url[..<colon.lowerBound].lowercased()
    var authority = url[colon.upperBound...].prefix { $0 != "/" && $0 != "?" }
    if let at = authority.lastIndex(of: "@") { authority = authority[authority.index(after: at)...] }
    var host = authority
    var port: Int? = ["http": 80, "ws": 80, "https": 443, "wss": 443][scheme] ?? 1080
    if let last = authority.utf8.lastIndex(of: UInt8(ascii: ":")),
      case let digits = authority[authority.utf8.index(after: last)...], let number = Int(digits)
    {
      host = authority[..<last]
      port = number
    }
    guard let port, !host.isEmpty else { return nil }
    return (scheme, host.lowercased(), port)
  }
}
