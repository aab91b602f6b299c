/// Why a transport ended, and whether another try may help.
package struct TransportClose: Error, Sendable, Hashable, CustomStringConvertible {
  /// Whose code it is.
  package enum Domain: String, Sendable, Hashable {
    /// A WebSocket close code, 1000 to 4999.
    case webSocket
    /// An HTTP status, if the connection was refused before it was a WebSocket.
    case http
    /// An error number of the operating system.
    case posix
    /// Another error of the network, of names or of TLS; the transport says which.
    case network
  }

  /// Whose code it is.
  package let domain: Domain
  /// The code.
  package let code: Int
  /// The reason in words. It may be empty. A peer may have chosen it.
  package let reason: String
  /// Whether another try may help.
  package let isTransient: Bool

  /// Makes a reason to end.
  package init(domain: Domain, code: Int, reason: String, isTransient: Bool) {
    self.domain = domain
    self.code = code
    self.reason = reason
    self.isTransient = isTransient
  }

  /// Makes a WebSocket close. 1001 (going away), 1006 (abnormal) and 1011 (unexpected condition) are transient, as in
  /// Couchbase Lite.
  package static func webSocket(_ code: Int, _ reason: String = "") -> TransportClose {
    TransportClose(
      domain: .webSocket, code: code, reason: reason, isTransient: [1001, 1006, 1011].contains(code))
  }

  /// The normal end: WebSocket 1000.
  package static let normal = TransportClose.webSocket(1000)

  /// The reason in words, for people.
  package var description: String { "\(domain.rawValue) \(code)" + (reason.isEmpty ? "" : " “\(reason)”") }
}
