import Replication
import ReplicationBLIP
import ReplicationHTTP

extension ReplicatorTarget {
  /// A database on another machine.
  ///
  /// - `ws://host:port/name`, or `wss://…` with TLS: over a WebSocket. The other side is a `SyncListener`, Couchbase Lite's
  ///   listener, or Sync Gateway.
  /// - `http://host:port/name`, or `https://…` with TLS: over the HTTP API of CouchDB. The other side is CouchDB, PouchDB's
  ///   server, Couchbase Lite 1.x, Sync Gateway, or a `SyncListener` with `servesHTTP`. A name before `@` in the URL, with or
  ///   without a password, is that of the user.
  ///
  /// Throws an error of the domain `network` (`invalidURL`) for another URL.
  public static func url(_ url: String) throws -> ReplicatorTarget {
    let scheme = url.firstRange(of: "://").map { url[..<$0.lowerBound].lowercased() } ?? ""
    switch scheme {
    case "http", "https": return try .httpURL(url)
    case "ws", "wss": return try .webSocketURL(url)
    default:
      throw ReplicationError(
        .network, ReplicationError.NetworkCode.invalidURL.rawValue,
        "the URL of a database has the form ws://host:port/name or http://host:port/name; with TLS wss:// or https://"
      )
    }
  }
}
