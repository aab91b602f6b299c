/// How a connection is made, in what requests of HTTP and of WebSockets have in common.
package protocol ConnectionSettings {
  var identity: WebSocketRequest.Identity? { get set }
  var trust: WebSocketRequest.Trust { get set }
  var proxy: WebSocketRequest.Proxy { get set }
  var connectTimeout: Double { get set }
  var networkInterface: String? { get set }
}

extension WebSocketRequest: ConnectionSettings {}
extension HTTPClientSettings: ConnectionSettings {}
