import BLIP
import Network
import Replication
import ReplicationNetwork
import Transport
import WebSocket

extension ReplicatorTarget {
  /// A database on another machine, over a WebSocket: `ws://host:port/name`, or `wss://…` with TLS. The other side is a
  /// `SyncListener`, Couchbase Lite's listener, or Sync Gateway.
  ///
  /// Throws an error of the domain `network` (`invalidURL`) for another URL.
  package static func webSocketURL(_ url: String) throws -> ReplicatorTarget {
    guard let parsed = WebSocketURL(url),
      ["ws://", "wss://"].contains(where: { url.lowercased().hasPrefix($0) })
    else {
      throw ReplicationError(
        .network, ReplicationError.NetworkCode.invalidURL.rawValue,
        "the URL of a database has the form ws://host:port/name, or wss://…")
    }
    return ReplicatorTarget(webSocketConnector(parsed))
  }

  /// The connector of a URL. Its remote ID is the URL with the port and `/_blipsync`, as Couchbase Lite has it.
  package static func webSocketConnector(_ url: WebSocketURL) -> BLIPConnector {
    let host = url.host.contains(":") ? "[\(url.host)]" : url.host
    let path = url.target.prefix { $0 != "?" }
    let suffix = "/_blipsync"
    let target =
      path.hasSuffix(suffix) ? String(path) : (path.hasSuffix("/") ? path.dropLast() : path) + suffix
    let full = "\(url.isSecure ? "wss" : "ws")://\(host):\(url.port)\(target)"
    let place = CookieJar.Place(host: url.host, path: target, isSecure: url.isSecure)
    return BLIPConnector(remoteID: full, name: full) { options, done in
      var request = WebSocketRequest(full, options)
      if let cookies = options.cookies?.header(to: place, without: options.cookieName) {
        request.headers.append(("Cookie", cookies))
      }
      WebSocketClient.connect(request, name: full) { result in
        switch result {
        case .success(let connection):
          options.cookies?.take(
            connection.headers.filter { $0.name == "set-cookie" }.map(\.value), from: place)
          done(
            .success(BLIPConnector.Opened(connection.transport, subprotocol: connection.chosenProtocol)))
        case .failure(let close): done(.failure(ReplicationError(end: close)))
        }
      }
    }
  }
}

extension WebSocketRequest {
  /// The request that opens a connection for replication.
  init(_ url: String, _ options: Replication.ConnectionOptions) {
    self.init(url: url, protocols: ReplicationProtocol.offered)
    take(options)
    headers = options.headers
    switch options.authenticator {
    case nil: break
    case .basic(let name, let password, let answersChallenge):
      authentication = .basic(name: name, password: Secret(password), answersChallenge: answersChallenge)
    case .login(let name, let password): authentication = .basic(name: name, password: Secret(password))
    case .bearer(let token): headers.append(("Authorization", "Bearer \(token)"))
    case .session(let id, let cookieName): authentication = .cookie(name: cookieName, value: Secret(id))
    // These are what `take` has taken.
    case .certificate, .pkcs12: break
    }
    self.options.heartbeat = options.heartbeat > 0 ? options.heartbeat : nil
  }
}

extension Replication.ConnectionOptions {
  /// The name of the cookie that the app gives.
  fileprivate var cookieName: String? {
    if case .session(_, let name) = authenticator { name } else { nil }
  }
}
