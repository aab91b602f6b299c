// How a connection over the network is made. Values only: sockets belong to other modules.

/// Says who the user is, to a server that asks.
public enum ReplicatorAuthenticator: Sendable {
  /// A name and a password, sent with the first request as HTTP's basic authentication.
  /// With `answersChallenge` only after the server has asked for it.
  case basic(name: String, password: String, answersChallenge: Bool = false)
  /// A name and a password, for which the server gives a cookie (`POST /_session`). It is renewed when it has expired. A
  /// server without sessions, and one of WebSockets, gets basic authentication.
  case login(name: String, password: String)
  /// A token, in the header `Authorization`.
  case bearer(token: String)
  /// A session of Sync Gateway, or of another server that sets a cookie: its ID and the cookie's name.
  case session(id: String, cookieName: String = "SyncGatewaySession")
  /// A certificate of this side, and its private key: the bytes of PEM texts.
  case certificate(pem: [UInt8], keyPEM: [UInt8])
  /// Both in a PKCS#12 archive.
  case pkcs12([UInt8], password: String?)
}

/// Which certificate of a server is accepted over TLS.
public enum ReplicatorServerTrust: Sendable, Hashable {
  /// One that an authority which the system trusts has issued for the host.
  case systemRoots
  /// This one, for any host, or one that this authority has issued for the host: the bytes of a certificate in DER or PEM.
  case pinned([UInt8])
  /// Any that has signed itself. This keeps the connection secret from listeners, but the server may be anybody.
  case selfSigned
}

/// Through which proxy connections go.
public enum ReplicatorProxy: Sendable, Hashable {
  /// What the environment says: `https_proxy`, `http_proxy`, `no_proxy`.
  case environment
  /// None.
  case none
  /// This one: `http://host:port`, `https://…`, `socks5h://…`; and the credentials that it asks for.
  case url(String, name: String? = nil, password: String? = nil)
}

/// How a connection over the network is made.
public struct ConnectionOptions: Sendable {
  /// Who the user is. Nil: nobody in particular.
  public var authenticator: ReplicatorAuthenticator?
  /// More headers of the request that opens the connection, in order.
  public var headers: [(name: String, value: String)] = []
  /// Which certificate of the server is accepted.
  public var serverTrust = ReplicatorServerTrust.systemRoots
  /// Through which proxy the connection goes.
  public var proxy = ReplicatorProxy.environment
  /// Seconds between pings that find out whether the peer is there. 0: none.
  public var heartbeat = 300.0
  /// The longest time in seconds until the connection stands.
  public var timeout = 15.0
  /// Whether the other database is made if it doesn't exist. Only over HTTP.
  public var createsDatabase = false
  /// What the server of a database that is made is told of it: names and values of a query string, such as
  /// `partitioned`.
  package var creationParameters: [(name: String, value: String)] = []
  /// The network interface, its address or its name. Nil: what the system chooses.
  public var networkInterface: String?
  /// The cookies that servers have set. Nil: none are kept.
  package var cookies: CookieJar?
  /// The pause in seconds before a request over HTTP is repeated for the first time.
  package var firstPause = 0.25

  /// Creates the default options.
  public init() {}
}
