import WebSocket

/// What to connect to, and how.
package struct WebSocketRequest: Sendable {
  /// How the client says who it is.
  package enum Authentication: Sendable, Hashable {
    case none
    /// A name and a password, in the way of HTTP Basic. They are sent with the first request; or, with
    /// `answersChallenge`, only after the server has answered 401 and asked for Basic.
    case basic(name: String, password: Secret, answersChallenge: Bool = false)
    /// The cookie of a session.
    case cookie(name: String, value: Secret)
  }

  /// A certificate of the client with its private key.
  package enum Identity: Sendable, Hashable {
    /// Both in PEM. The password is that of the key.
    case pem(certificate: [UInt8], key: Secret, password: Secret? = nil)
    /// Both in PKCS#12.
    case pkcs12([UInt8], password: Secret? = nil)
    /// Both in PKCS#12, in a file.
    case pkcs12File(String, password: Secret? = nil)
  }

  /// Which server is trusted.
  package enum Trust: Sendable, Hashable {
    /// One whose certificate for the host comes from an authority that the system trusts.
    case system
    /// One that has a certificate out of these, in DER or PEM, whatever host it is for; or one for the host that comes from
    /// an authority out of these. No other authority counts.
    case pinned([UInt8])
    /// One with any certificate that it has signed itself. This proves nothing by itself: look at the fingerprint.
    case onlySelfSigned
  }

  /// A proxy between.
  package enum Proxy: Sendable, Hashable {
    /// None.
    case none
    /// The one of the variables http_proxy, https_proxy, all_proxy and no_proxy, as libcurl reads them.
    case environment
    /// An URL `http://`, `https://`, `socks4://`, `socks4a://`, `socks5://` or `socks5h://` without credentials, and they.
    case url(String, name: String? = nil, password: Secret? = nil)
  }

  /// The URL: ws or wss; http and https mean the same.
  package var url: String
  /// The subprotocols that are offered, the best one first. The server has to choose one of them.
  package var protocols: [String]
  /// More headers of the request. Those of the handshake itself can't be set.
  package var headers: [(name: String, value: String)] = []
  package var authentication = Authentication.none
  package var identity: Identity?
  package var trust = Trust.system
  package var proxy = Proxy.environment
  /// Seconds until the answer has to be there, for each request. More than 0, at most 3600.
  package var connectTimeout = 15.0
  /// The interface to connect from: a name as `eth0`, or an address; nil for any.
  package var networkInterface: String?
  /// How the connection behaves. The heartbeat is 300 s at first.
  package var options = WebSocketOptions()

  /// Makes a request without secrets.
  package init(url: String, protocols: [String] = []) {
    self.url = url
    self.protocols = protocols
    options.heartbeat = 300
  }
}
