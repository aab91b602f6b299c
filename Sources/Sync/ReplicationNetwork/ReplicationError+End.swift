import Replication
import Transport

extension ReplicationError {
  /// The end of a connection, or of a request. `message` takes the place of its reason.
  package init(end close: TransportClose, _ message: String? = nil) {
    let domain: Domain =
      switch close.domain {
      case .webSocket: .webSocket
      case .http: .http
      case .posix: .posix
      case .network: .network
      }
    let reason = message ?? String(close.reason.prefix(1_000))
    self.init(domain, close.code, reason.isEmpty ? "the connection has ended" : reason)
  }
}
