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

  func target(of remote: RemoteDatabase) throws -> ReplicatorTarget {
    try remote.url.hasPrefix("ws") ? .webSocketURL(remote.url) : .httpURL(remote.url)
  }

  /// The protocol, the host and the port of a URL, which may be that of the protocol.
  private static func parts(_ url: String) -> (scheme: String, host: String, port: Int)? {
    guard let colon = url.utf8.firstRange(of: "://".utf8) else { return nil }
    let scheme = url[..<colon.lowerBound].lowercased()
    let authority = url[colon.upperBound...].prefix { $0 != "/" && $0 != "?" }
    var host = authority
    var port = ["http": 80, "ws": 80, "https": 443, "wss": 443][scheme]
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
