import Bytes
import HTTP

extension HTTPRequest {
  init(_ exchange: Exchange, _ head: RequestHead, _ context: UserContext) {
    self.init(
      method: head.method, target: head.target, headers: head.headers,
      body: HTTPRequestBody(exchange: exchange), context: context, origin: exchange)
  }

  /// The exchange that it is the request of; nil if another server has made it.
  var exchange: Exchange? { origin as? Exchange }

  /// The client's address; nil if another server has made the request.
  package var peer: PeerAddress? { exchange?.connection.peer }
  /// The client's certificate, which was checked; nil if there is none.
  package var clientCertificate: ClientCertificate? { exchange?.connection.certificate }
}

extension Exchange: HTTPRequestOrigin {
  var isSecure: Bool { core.configuration.tls != nil }
  var network: ByteString { connection.peer.network }
}
