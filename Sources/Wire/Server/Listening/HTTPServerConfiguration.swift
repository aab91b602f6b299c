import HTTP

/// Where a server listens, whom it lets in, and how much it gives them.
package struct HTTPServerConfiguration: Sendable {
  /// Where a server listens.
  package enum Listen: Sendable, Equatable {
    /// A numeric IPv4 or IPv6 address: `127.0.0.1`, `::1`, `0.0.0.0`, `::`.
    case address(String)
    /// The addresses of a network interface, such as `eth0`.
    case interface(String)
  }

  /// Whether clients have to show a certificate. Only with `tls`.
  package enum ClientCertificates: Sendable {
    /// They aren't asked.
    case none
    /// They are asked. Those without one are let in; a certificate that `check` refuses isn't.
    case requested(ClientCertificateCheck)
    /// They can't do without.
    case required(ClientCertificateCheck)
  }

  /// Where to listen.
  package var listen = Listen.address("127.0.0.1")
  /// The port; 0 takes any.
  package var port: UInt16 = 0
  /// The server's certificate and key; nil is HTTP without TLS.
  package var tls: TLSIdentity?
  /// Whether clients have to show a certificate.
  package var clientCertificates = ClientCertificates.none
  /// Who may ask.
  package var authenticator: any Authenticator = NoAuthenticator()
  /// What clients may ask.
  package var limits = HTTPServerLimits()
  /// The number of threads that serve connections.
  package var threads = 2
  /// The maximum number of threads that run handlers of requests that take long. Those that compute have half as many of their own, those that wait for an index too, and
  /// short ones a quarter for reading and a quarter for writing (`HTTPWorkload`).
  package var handlerThreads = 32
  /// How many handlers may wait for their clients besides, each on a thread: for a body, or until an answer is taken. If more
  /// wait, slow clients are cut off (`HTTPServerLimits.busySeconds`). Handlers that compute, read and write have a quarter of that each.
  package var blockedHandlerThreads = 96
  /// Whether the header `Host` must name this machine. It keeps web pages of others from reaching a server on the
  /// loopback interface through a name that resolves to it (DNS rebinding). Nil checks when it listens on a loopback
  /// address.
  package var checksHost: Bool?
  /// More names that `Host` may have, without a port.
  package var hostNames: [String] = []
  /// The value of the header `Server`; nil leaves it out.
  package var serverName: String? = "Touchstone"
  /// Makes the body of an answer that the server itself gives: a status and what was wrong.
  package var errorAnswer: @Sendable (_ status: Int, _ reason: String) -> HTTPAnswer = { status, reason in
    HTTPAnswer(status: status, text: reason + "\n")
  }

  /// Makes a configuration that listens on a port of 127.0.0.1.
  package init() {}
}
