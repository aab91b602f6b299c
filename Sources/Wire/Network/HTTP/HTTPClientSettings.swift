/// How a client of HTTP connects, and who it says it is. The same for all its requests.
package struct HTTPClientSettings: Sendable {
  /// How the client says who it is.
  package enum Authentication: Sendable, Hashable {
    case none
    /// A name and a password, in the way of HTTP Basic: with each request; or, with `answersChallenge`, only after the
    /// server has answered 401.
    case basic(name: String, password: Secret, answersChallenge: Bool = false)
    /// A name and a password, for which the server gives a cookie: `POST` to the URL. It is renewed once for each request
    /// that is answered with 401. A server that has no such URL gets Basic.
    case session(name: String, password: Secret, url: WebSocketURL)
    /// The cookie of a session.
    case cookie(name: String, value: Secret)
    /// A token, in the header `Authorization`.
    case bearer(Secret)
  }

  package var authentication = Authentication.none
  /// More headers of each request. They come before those of the request itself.
  package var headers: [(name: String, value: String)] = []
  package var identity: WebSocketRequest.Identity?
  package var trust = WebSocketRequest.Trust.system
  package var proxy = WebSocketRequest.Proxy.environment
  /// Seconds until a connection stands. More than 0, at most 3600.
  package var connectTimeout = 15.0
  /// Seconds in which something has to arrive or leave; a request that waits for its sink doesn't count.
  package var idleTimeout = 60.0
  /// The interface to connect from: a name as `eth0`, or an address; nil for any.
  package var networkInterface: String?
  /// The most connections that are open.
  package var maximumConnections = 12
  /// Whether redirects to other hosts are followed. They don't get what is secret.
  package var followsRedirectsElsewhere = false
  /// The most bytes of the head of an answer.
  package var maximumHeadBytes = 256 << 10

  /// Makes settings without secrets.
  package init() {}
}
